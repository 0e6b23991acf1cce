/** A complete content's file has the date of its origin, so that links of it tell whether the origin has a newer one. */
// covers: peer/storage/content.ts
import { assertEquals } from "@std/assert";
import { openDiskStore } from "../../../../peer/storage/disk_store.ts";
import { fill, metaOf, specOf } from "../../../conformance/piece_store.ts";

const CONFIG = { taskExpireTimeMs: 0, diskGCThresholdBytes: 0, diskGCThresholdPercent: 0, keepStorage: true };
const DATE = "Tue, 05 Mar 2024 06:07:08 GMT";

Deno.test("a complete content is dated as its origin dates it, and is taken at its word after a restart", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const dataDir = `${folder}/data`;
    let path: string;
    {
      await using store = await openDiskStore({ dataDir, bootId: "boot 1", config: CONFIG });
      await using task = await store.create(specOf(1), { ...metaOf(3000), last_modified: DATE });
      await fill(task, 1);
      task.complete(null);
      path = task.path;
      assertEquals((await Deno.stat(path)).mtime?.toUTCString(), DATE);
    }
    await using store = await openDiskStore({ dataDir, bootId: "boot 2", config: CONFIG });
    await using again = await store.open(specOf(1).task_id);
    assertEquals([again?.info.complete, (await Deno.stat(path)).mtime?.toUTCString()], [true, DATE]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

for (const date of [undefined, "", "yesterday"]) {
  Deno.test(`a content of the date ${JSON.stringify(date)} keeps the time when it came`, async () => {
    const folder = await Deno.makeTempDir();
    try {
      await using store = await openDiskStore({ dataDir: `${folder}/data`, bootId: "boot 1", config: CONFIG });
      const dated = date === undefined ? {} : { last_modified: date };
      await using task = await store.create(specOf(1), { ...metaOf(3000), ...dated });
      await fill(task, 1);
      task.complete(null);
      assertEquals(Date.now() - ((await Deno.stat(task.path)).mtime?.getTime() ?? 0) < 60_000, true);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
