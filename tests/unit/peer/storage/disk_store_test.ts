// The contract itself is claimed in tests/conformance/piece_store.ts; here stands what only a disk can do.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { sha256Hex } from "../../../../peer/core/digest.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { pieceRange } from "../../../../peer/core/piece.ts";
import { type DiskStoreOptions, openDiskStore, type StorageConfig } from "../../../../peer/storage/disk_store.ts";
import { fill, metaOf, readAll, specOf } from "../../../conformance/piece_store.ts";
import { contentBytes } from "../../../testutil/content.ts";

const KEEP: StorageConfig = {
  taskExpireTimeMs: 0,
  diskGCThresholdBytes: 0,
  diskGCThresholdPercent: 0,
  keepStorage: true,
};
const ID = specOf(1).task_id;

function open(dataDir: string, options: Partial<Omit<DiskStoreOptions, "config">> & { config?: object } = {}) {
  return openDiskStore({
    dataDir,
    bootId: "boot 1",
    flushDelayMs: 0,
    ...options,
    config: { ...KEEP, ...options.config },
  });
}

function testInFolder(claim: string, run: (folder: string) => Promise<void>): void {
  Deno.test(claim, async () => {
    const folder = await Deno.makeTempDir();
    try {
      await run(`${folder}/data`);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

/** A store's folder with one complete task of 3,000 B. @returns its file */
async function prepare(folder: string, { complete = true } = {}): Promise<string> {
  await using store = await open(folder);
  await using task = await store.create(specOf(1), metaOf(3000));
  await fill(task, 1);
  if (complete) task.complete(null);
  return task.path;
}

async function dataFiles(folder: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) { for await (const file of Deno.readDir(`${folder}/${name}`)) names.push(file.name); }
  }
  return names.sort();
}

testInFolder("openDiskStore() makes a folder for its owner alone, with files that others may read", async (folder) => {
  const path = await prepare(folder);
  assertEquals((await Deno.stat(folder)).mode! & 0o777, 0o700);
  assertEquals((await Deno.stat(path)).mode! & 0o777, 0o644);
  assertEquals(path, `${folder}/${ID.slice(0, 3)}/${ID}.g1.data`);
});

testInFolder("a content's file is sparse until pieces arrive", async (folder) => {
  await using store = await open(folder);
  await using task = await store.create(specOf(1), { ...metaOf(2 ** 40), piece_length: 2 ** 24 });
  const { size, blocks } = await Deno.stat(task.path);
  assertEquals([size, blocks], [2 ** 40, 0]);
});

testInFolder("a store finds its tasks again after it was closed", async (folder) => {
  await prepare(folder);
  await using store = await open(folder);
  assertEquals(store.list().map(({ pieceCount, complete }) => [pieceCount, complete]), [[3, true]]);
  await using task = await store.open(ID);
  assertEquals([...task!.pieces], [0, 1, 2]);
  assertEquals(task!.digestOf(1), sha256Hex(contentBytes(1, 1000, 1000)));
  assertEquals(await readAll(task!), contentBytes(1, 0, 3000));
});

testInFolder("a second store on one folder is refused and hurts nothing", async (folder) => {
  await using store = await open(folder);
  await using task = await store.create(specOf(1), metaOf(3000));
  const content = await fill(task, 1);
  const refusal = await assertRejects(() => open(folder), LacewingError);
  assertEquals(refusal.code, "already_running");
  const other = await assertRejects(() => open(folder, { config: { keepStorage: false } }), LacewingError);
  assertEquals(other.code, "already_running");
  assertEquals(await readAll(task), content);
});

testInFolder("a generation's name cannot lead out of the folder", async (folder) => {
  await using store = await open(folder);
  for (const generation of ["../../../evil", "/etc/passwd", "a/b", "..", "nul\0", "\u00fc"]) {
    await using task = await store.create(specOf(1), metaOf(10, generation));
    assert(/^[0-9a-f]{32}$/.test(task.path.split(".").at(-2) ?? ""), task.path);
    assert((await Deno.realPath(task.path)).startsWith(`${folder}/${ID.slice(0, 3)}/`));
  }
  assertEquals((await dataFiles(folder)).length, 1);
});

testInFolder("create() refuses an id that is none, and more pieces than memory can hold", async (folder) => {
  await using store = await open(folder);
  await assertRejects(() => store.create({ ...specOf(1), task_id: "../x" }, metaOf(10)), TypeError);
  const error = await assertRejects(
    () => store.create(specOf(1), { ...metaOf(2 ** 50), piece_length: 1 }),
    LacewingError,
  );
  assertEquals(error.code, "protocol");
  assertEquals(store.list(), []);
});

testInFolder("pieces outlive a store that was never closed", async (folder) => {
  // The folder is copied under the open store: what a killed process leaves behind.
  const copy = `${folder}.copy`;
  {
    await using store = await open(folder);
    await using task = await store.create(specOf(1), metaOf(3000));
    await fill(task, 1, [0, 2]);
    await Promise.resolve();
    await copyFolder(folder, copy);
  }
  await using store = await open(copy);
  await using task = await store.open(ID);
  assertEquals([...task!.pieces], [0, 2]);
});

testInFolder("a killed process leaves only whole and right pieces", async (folder) => {
  const length = 64 * 1024 * 1024 + 5;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", ...mapArguments(), "tests/testutil/store_writer.ts", folder, ID, String(length)],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let told = "";
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    told += decoder.decode(chunk, { stream: true });
    if (told.split("\n").length > 200) break;
  }
  child.kill("SIGKILL");
  await child.status;
  const committed = told.split("\n").slice(0, -1).map(Number);

  await using store = await open(folder, { bootId: undefined });
  await using task = await store.open(ID);
  const layout = { contentLength: length, pieceLength: 16 * 1024 };
  const lost = committed.filter((number) => !task!.pieces.has(number));
  assert(lost.length <= 4, `lost ${lost}`);
  for (const [number, digest] of task!.digests()) {
    const { offset, length } = pieceRange(number, layout);
    const bytes = new Uint8Array(length);
    assertEquals(await task!.read(bytes, offset), length);
    assertEquals(sha256Hex(bytes), digest);
    assertEquals(bytes, contentBytes(9, offset, length));
  }
});

testInFolder("an edited file loses its wrong pieces, and stays as its user left it", async (folder) => {
  const path = await prepare(folder);
  const output = `${folder}.out`;
  await Deno.link(path, output);
  await edit(output, 1500);
  {
    await using store = await open(folder);
    await using task = await store.open(ID);
    assertEquals([...task!.pieces], [0, 2]);
    assertEquals([task!.info.complete, task!.info.verified], [false, null]);
    await fill(task!, 1, [1]);
    assertEquals(await readAll(task!), contentBytes(1, 0, 3000));
    assertEquals((await Deno.readFile(output))[1500], 0xff ^ contentBytes(1, 1500, 1)[0]!);
  }
  await using store = await open(folder);
  assertEquals(store.list()[0]?.pieceCount, 3);
});

testInFolder("a file that was only touched is checked once and stays complete", async (folder) => {
  const path = await prepare(folder);
  await Deno.utime(path, 1000, 1000);
  for (const _ of [1, 2]) {
    await using store = await open(folder);
    await using task = await store.open(ID);
    assert(task!.info.complete && task!.pieces.isFull);
  }
});

testInFolder("a linked output that was cut short is left alone", async (folder) => {
  const path = await prepare(folder);
  const output = `${folder}.out`;
  await Deno.link(path, output);
  await Deno.truncate(output, 1200);
  await using store = await open(folder);
  await using task = await store.open(ID);
  assertEquals([...task!.pieces], [0]);
  assertEquals([(await Deno.stat(output)).size, (await Deno.stat(path)).size], [1200, 3000]);
});

for (const complete of [true, false]) {
  const kind = complete ? "complete" : "half-written";
  testInFolder(`a truncated file of a ${kind} task keeps the pieces that are left`, async (folder) => {
    const path = await prepare(folder, { complete });
    await Deno.truncate(path, 2100);
    await using store = await open(folder);
    await using task = await store.open(ID);
    assertEquals([...task!.pieces], [0, 1]);
    assertEquals(task!.info.complete, false);
    await fill(task!, 1, [2]);
    assertEquals(await readAll(task!), contentBytes(1, 0, 3000));
  });

  testInFolder(`a missing file of a ${kind} task forgets every piece`, async (folder) => {
    const path = await prepare(folder, { complete });
    await Deno.remove(path);
    await using store = await open(folder);
    await using task = await store.open(ID);
    assertEquals([task!.pieces.count, task!.info.complete], [0, false]);
    await fill(task!, 1);
    assertEquals(await readAll(task!), contentBytes(1, 0, 3000));
  });
}

for (
  const [boot, clean, valid] of [
    ["boot 1", false, [0, 1, 2]],
    ["boot 2", true, [0, 1, 2]],
    ["boot 2", false, [0, 2]],
    [null, false, [0, 1, 2]],
  ] as const
) {
  const before = clean ? "a clean stop" : "a crash";
  testInFolder(`after ${before} and in ${boot ?? "an unnamed boot"}, pieces ${valid} are valid`, async (folder) => {
    const copy = `${folder}.copy`;
    {
      await using store = await open(folder);
      await using task = await store.create(specOf(1), metaOf(3000));
      await fill(task, 1);
      await Promise.resolve();
      await copyFolder(folder, copy);
    }
    const crashed = clean ? folder : copy;
    // Bytes that never reached the disk; the half-written task has no time recorded that would tell.
    await edit(`${crashed}/${ID.slice(0, 3)}/${ID}.g1.data`, 1500);
    for (const _ of [1, 2]) {
      await using store = await open(crashed, { bootId: boot });
      await using task = await store.open(ID);
      assertEquals([...task!.pieces], [...valid]);
    }
  });
}

testInFolder("a task stays doubtful after a crash until it is opened", async (folder) => {
  const copy = `${folder}.copy`;
  {
    await using store = await open(folder);
    await using task = await store.create(specOf(1), metaOf(3000));
    await fill(task, 1);
    await Promise.resolve();
    await copyFolder(folder, copy);
  }
  await edit(`${copy}/${ID.slice(0, 3)}/${ID}.g1.data`, 500);
  await (await open(copy, { bootId: "boot 2" }))[Symbol.asyncDispose]();
  await using store = await open(copy, { bootId: "boot 3" });
  await using task = await store.open(ID);
  assertEquals([...task!.pieces], [1, 2]);
});

testInFolder("a damaged database is moved aside and the store starts empty", async (folder) => {
  await prepare(folder);
  await Deno.writeFile(`${folder}/pieces.db`, contentBytes(4, 0, 20_000));
  const logged: string[] = [];
  const log = { ...silent(), error: (message: string) => logged.push(message) };
  await using store = await open(folder, { log });
  assertEquals(store.list(), []);
  assertEquals(await dataFiles(folder), []);
  assertEquals((await Deno.stat(`${folder}/pieces.db.damaged`)).size, 20_000);
  assertEquals(logged.length, 1);
  await using task = await store.create(specOf(2), metaOf(10));
  assertEquals(task.pieces.size, 1);
});

testInFolder("files without a record are removed at the start, and only those", async (folder) => {
  const path = await prepare(folder);
  const orphan = specOf(7).task_id;
  await Deno.mkdir(`${folder}/${orphan.slice(0, 3)}`, { recursive: true });
  await Deno.writeTextFile(`${folder}/${orphan.slice(0, 3)}/${orphan}.g9.data`, "x");
  await Deno.writeTextFile(path.replace(".g1.", ".g0."), "x");
  await Deno.writeTextFile(`${path}.new`, "x");
  await Deno.writeTextFile(`${folder}/${ID.slice(0, 3)}/notes.txt`, "mine");
  await using store = await open(folder);
  assertEquals(await dataFiles(folder), [`${ID}.g1.data`, "notes.txt"]);
  assertEquals(store.list().length, 1);
});

testInFolder("a store that keeps nothing leaves an empty folder", async (folder) => {
  await prepare(folder);
  const config = { keepStorage: false };
  {
    await using store = await open(folder, { config });
    assertEquals([store.list(), await dataFiles(folder)], [[], []]);
    await using task = await store.create(specOf(2), metaOf(10));
    await fill(task, 1);
  }
  assertEquals(await dataFiles(folder), []);
  assertEquals([...Deno.readDirSync(folder)].filter(({ isFile }) => isFile), []);
});

testInFolder("collectGarbage() evicts the least recently used above the threshold", async (folder) => {
  const clock = { nowMs: 1000 };
  await using store = await open(folder, { now: () => clock.nowMs, config: { diskGCThresholdBytes: 5000 } });
  for (const number of [1, 2, 3]) {
    clock.nowMs += 10;
    await using task = await store.create(specOf(number), metaOf(3000));
    await fill(task, number);
  }
  await using _oldest = await store.open(specOf(1).task_id);
  assertEquals(await store.collectGarbage(), [specOf(2).task_id, specOf(3).task_id]);
  assertEquals((await dataFiles(folder)).length, 1);
});

testInFolder("a full disk is told by its folder's name", async (folder) => {
  if (!await mountTiny(folder)) return;
  try {
    const store = await open(folder);
    const task = await store.create(specOf(1), { ...metaOf(8 * 2 ** 20), piece_length: 2 ** 20 });
    const error = await assertRejects(() => fill(task, 1), LacewingError);
    assertEquals(error.code, "disk_full");
    assert(error.message.includes(folder), error.message);
    assert(task.pieces.count < 4);
    await task[Symbol.asyncDispose]();
    await store.remove(ID);
    assertEquals([store.list(), await dataFiles(folder)], [[], []]);
    const smaller = await store.create(specOf(2), metaOf(3000));
    await fill(smaller, 2);
    await smaller[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    await using again = await open(folder);
    assertEquals(again.list().map(({ pieceCount }) => pieceCount), [3]);
  } finally {
    await new Deno.Command("umount", { args: [folder] }).output();
  }
});

testInFolder("a folder that cannot be made is told by its name", async (folder) => {
  await Deno.writeTextFile(folder, "a file");
  const error = await assertRejects(() => open(folder), LacewingError);
  assertEquals(error.code, "file");
  assert(error.message.includes(folder));
});

async function edit(path: string, offset: number): Promise<void> {
  const bytes = await Deno.readFile(path);
  bytes[offset]! ^= 0xff;
  using file = await Deno.open(path, { write: true });
  await file.write(bytes);
  // A second later, as a user would.
  await file.utime(new Date(), new Date(Date.now() + 1000));
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to);
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(`${from}/${name}`, `${to}/${name}`);
    else await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}

/** Mounts 3 MiB over a folder where the rights allow it; only then can a disk be filled. */
async function mountTiny(folder: string): Promise<boolean> {
  await Deno.mkdir(folder);
  if (Deno.build.os !== "linux") return false;
  const { success } = await new Deno.Command("mount", {
    args: ["-t", "tmpfs", "-o", "size=3m", "tmpfs", folder],
    stderr: "null",
  }).output().catch(() => ({ success: false }));
  return success;
}

/** The import map that this process runs with, for a child of its own. */
function mapArguments(): string[] {
  return import.meta.resolve("@std/yaml").startsWith("file:") ? ["--import-map", "import_map.npm.json"] : [];
}

function silent() {
  const nothing = () => {};
  return { debug: nothing, info: nothing, warn: nothing, error: nothing, room: () => silentRoom };
}

const silentRoom = { debug() {}, info() {}, warn() {}, error() {}, room: () => silentRoom };
