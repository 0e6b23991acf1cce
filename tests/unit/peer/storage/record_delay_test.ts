// covers: peer/storage/disk_store.ts
import { assert, assertEquals } from "@std/assert";
import { openDiskStore } from "../../../../peer/storage/disk_store.ts";
import { fill, metaOf, specOf } from "../../../conformance/piece_store.ts";

const config = { taskExpireTimeMs: 0, diskGCThresholdBytes: 0, diskGCThresholdPercent: 0, keepStorage: true };

/** Pieces that a store finds which opens a copy of the folder: what a process leaves that is killed now. */
async function recordedIn(folder: string): Promise<number | undefined> {
  const copy = `${await Deno.makeTempDir()}/data`;
  try {
    await copyFolder(folder, copy);
    await using store = await openDiskStore({ dataDir: copy, config, bootId: "boot 1" });
    return store.list()[0]?.pieceCount;
  } finally {
    await Deno.remove(copy.slice(0, -"/data".length), { recursive: true });
  }
}

Deno.test("pieces are recorded together a moment later, and at the latest when the task is closed", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await using store = await openDiskStore({ dataDir: folder, config, bootId: "boot 1", flushDelayMs: 50 });
    {
      await using task = await store.create(specOf(1), metaOf(3000));
      await fill(task, 1, [0, 1]);
      for (let tries = 0; await recordedIn(folder) !== 2; tries++) assert(tries < 100);
      await fill(task, 1, [2]);
    }
    assertEquals(await recordedIn(folder), 3);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to);
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(`${from}/${name}`, `${to}/${name}`);
    else await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}
