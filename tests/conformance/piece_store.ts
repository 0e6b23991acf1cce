/**
 * What every piece store does, as one suite that each implementation runs.
 * Small pieces keep it quick: the store takes the piece length as it comes.
 */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { sha256Hex } from "../../peer/core/digest.ts";
import { pieceCount, pieceRange } from "../../peer/core/piece.ts";
import type { TaskMeta, TaskSpec } from "../../peer/core/wire/scheduler.ts";
import type { PieceStore, StoredTask } from "../../peer/storage/piece_store.ts";
import { contentBytes } from "../testutil/content.ts";

/** Makes an empty store whose clock the test holds. */
export type MakeStore = (options: { now: () => number; taskExpireTimeMs: number }) => Promise<PieceStore>;

export const PIECE_LENGTH = 1000;

/** A task by a number, the same each time. */
export function specOf(number: number): TaskSpec {
  return { task_id: sha256Hex(`task ${number}`), url: `http://origin.test/${number}`, tag: "", filter: "" };
}

export function metaOf(contentLength: number, generation = "g1"): TaskMeta {
  return { generation, content_length: contentLength, piece_length: PIECE_LENGTH, ranges: true };
}

/** Writes and commits pieces of an invented content; all of them by default. @returns the whole content */
export async function fill(task: StoredTask, seed: number, numbers?: readonly number[]): Promise<Uint8Array> {
  const { content_length: contentLength, piece_length: pieceLength } = task.info.meta;
  const layout = { contentLength, pieceLength };
  const content = contentBytes(seed, 0, contentLength);
  for (const number of numbers ?? Array.from({ length: pieceCount(layout) }, (_, index) => index)) {
    const { offset, length } = pieceRange(number, layout);
    const bytes = content.subarray(offset, offset + length);
    await task.write(bytes, offset);
    task.commit(number, sha256Hex(bytes));
  }
  return content;
}

/** Every byte that `read` gives of a task. */
export async function readAll(task: StoredTask): Promise<Uint8Array> {
  const buffer = new Uint8Array(task.info.meta.content_length + 100);
  return buffer.subarray(0, await task.read(buffer, 0));
}

export function testPieceStore(name: string, make: MakeStore): void {
  const test = (claim: string, run: (store: PieceStore, clock: { nowMs: number }) => Promise<void>) =>
    Deno.test(`${name} ${claim}`, async () => {
      const clock = { nowMs: 1_000_000 };
      await using store = await make({ now: () => clock.nowMs, taskExpireTimeMs: 1000 });
      await run(store, clock);
    });

  testContents(test);
  testHandles(test);
  testRecords(test);
}

type Test = (claim: string, run: (store: PieceStore, clock: { nowMs: number }) => Promise<void>) => void;

function testContents(test: Test): void {
  for (const length of [0, 1, PIECE_LENGTH - 1, PIECE_LENGTH, PIECE_LENGTH + 1, 10 * PIECE_LENGTH]) {
    test(`gives back a content of ${length} B`, async (store) => {
      await using task = await store.create(specOf(1), metaOf(length));
      const content = await fill(task, length);
      assertEquals(task.pieces.size, Math.ceil(length / PIECE_LENGTH));
      assert(task.pieces.isFull);
      assertEquals(await readAll(task), content);
      task.complete(null);
      assert(task.info.complete);
    });
  }

  test("takes the pieces in any order and all at once", async (store) => {
    await using task = await store.create(specOf(1), metaOf(50 * PIECE_LENGTH));
    const order = Array.from({ length: 50 }, (_, index) => (index * 37) % 50);
    await Promise.all(order.map((number) => fill(task, 3, [number])));
    assertEquals(await readAll(task), contentBytes(3, 0, 50 * PIECE_LENGTH));
  });

  test("counts a piece only when it is committed", async (store) => {
    await using task = await store.create(specOf(1), metaOf(3000));
    await task.write(new Uint8Array(1000).fill(7), 1000);
    assertEquals([task.pieces.count, task.info.pieceCount, task.digestOf(1)], [0, 0, null]);
    task.commit(1, "ab".repeat(32));
    assertEquals([...task.pieces], [1]);
    assertEquals(task.digests(), [[1, "ab".repeat(32)]]);
  });

  test("keeps the first digest of a piece that is committed twice", async (store) => {
    await using task = await store.create(specOf(1), metaOf(3000));
    task.commit(1, "ab".repeat(32));
    task.commit(1, "cd".repeat(32));
    assertEquals([task.digestOf(1), task.pieces.count], ["ab".repeat(32), 1]);
  });

  test("reads fewer bytes only at the content's end", async (store) => {
    await using task = await store.create(specOf(1), metaOf(2500));
    const content = await fill(task, 1);
    const buffer = new Uint8Array(1000);
    assertEquals(await task.read(buffer, 1200), 1000);
    assertEquals(buffer, content.slice(1200, 2200));
    assertEquals(await task.read(buffer, 2000), 500);
    assertEquals(await task.read(buffer, 2500), 0);
    assertEquals(await task.read(new Uint8Array(0), 10), 0);
  });

  for (const [offset, length] of [[2500, 1], [2000, 501], [-1, 1]] as const) {
    test(`refuses to write ${length} B at ${offset} of 2500`, async (store) => {
      await using task = await store.create(specOf(1), metaOf(2500));
      await assertRejects(() => task.write(new Uint8Array(length), offset), RangeError);
    });
  }

  for (const number of [-1, 3, 0.5, NaN]) {
    test(`refuses to commit piece ${number} of 3`, async (store) => {
      await using task = await store.create(specOf(1), metaOf(2500));
      assertThrows(() => task.commit(number, "ab".repeat(32)), RangeError);
    });
  }

  test("refuses to complete a content with a missing piece", async (store) => {
    await using task = await store.create(specOf(1), metaOf(2500));
    await fill(task, 1, [0, 2]);
    assertThrows(() => task.complete(null), TypeError);
    assertEquals(task.info.complete, false);
  });
}

function testHandles(test: Test): void {
  test("opens no task that is not there", async (store) => {
    assertEquals(await store.open(specOf(1).task_id), null);
    assertEquals(await store.open("no task id"), null);
    await store.remove(specOf(1).task_id);
  });

  test("gives two handles one state", async (store) => {
    await using first = await store.create(specOf(1), metaOf(3000));
    await using second = await store.open(specOf(1).task_id);
    await fill(first, 5, [2]);
    assertEquals([...second!.pieces], [2]);
    assertEquals(second!.digestOf(2), first.digestOf(2));
    await fill(second!, 5, [0, 1]);
    second!.complete("sha256:" + "0".repeat(64));
    assertEquals(first.info.verified, "sha256:" + "0".repeat(64));
    assertEquals(await readAll(first), contentBytes(5, 0, 3000));
  });

  test("keeps a handle usable after another one was closed", async (store) => {
    await using first = await store.create(specOf(1), metaOf(3000));
    await using second = await store.open(specOf(1).task_id);
    await first[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    const content = await fill(second!, 5);
    assertEquals(await readAll(second!), content);
  });

  test("finds everything again after the last handle was closed", async (store) => {
    const content = await (async () => {
      await using task = await store.create(specOf(1), metaOf(3000));
      return await fill(task, 5, [0, 2]);
    })();
    await using task = await store.open(specOf(1).task_id);
    assertEquals([...task!.pieces], [0, 2]);
    assertEquals(task!.digestOf(2), sha256Hex(content.subarray(2000)));
  });

  test("refuses a closed handle", async (store) => {
    const task = await store.create(specOf(1), metaOf(3000));
    await task[Symbol.asyncDispose]();
    assertThrows(() => task.commit(0, "ab".repeat(32)), TypeError);
  });

  test("opens and closes one task many times at once", async (store) => {
    await using task = await store.create(specOf(1), metaOf(3000));
    const content = await fill(task, 5);
    await task[Symbol.asyncDispose]();
    await Promise.all(Array.from({ length: 40 }, async () => {
      await using again = await store.open(specOf(1).task_id);
      assertEquals(await readAll(again!), content);
    }));
  });

  test("lets an open handle read on after its task was removed", async (store) => {
    await using task = await store.create(specOf(1), metaOf(3000));
    const content = await fill(task, 5);
    await store.remove(specOf(1).task_id);
    assertEquals(await readAll(task), content);
    task.commit(0, "ab".repeat(32));
    assertEquals([await store.open(specOf(1).task_id), store.list()], [null, []]);
  });

  test("keeps an old generation's reader apart from the new generation", async (store) => {
    await using old = await store.create(specOf(1), metaOf(3000, "g1"));
    const before = await fill(old, 5);
    await using young = await store.create(specOf(1), metaOf(3000, "g2"));
    assertEquals([young.pieces.count, store.list().length], [0, 1]);
    const after = await fill(young, 6);
    assertEquals([await readAll(old), await readAll(young)], [before, after]);
    await using opened = await store.open(specOf(1).task_id);
    assertEquals(opened?.info.meta.generation, "g2");
  });

  test("makes the same generation anew as an empty one", async (store) => {
    await using old = await store.create(specOf(1), metaOf(3000, "g1"));
    const before = await fill(old, 5);
    await using young = await store.create(specOf(1), metaOf(3000, "g1"));
    assertEquals(young.pieces.count, 0);
    await fill(young, 6);
    assertEquals(await readAll(old), before);
  });
}

function testRecords(test: Test): void {
  test("lists every task, last used first", async (store, clock) => {
    for (const number of [1, 2, 3]) {
      clock.nowMs += 10;
      await using _task = await store.create(specOf(number), metaOf(100 * number));
    }
    clock.nowMs += 10;
    await using _again = await store.open(specOf(1).task_id);
    assertEquals(store.list().map(({ meta }) => meta.content_length), [100, 300, 200]);
    assertEquals(store.list()[0]?.lastUsedAtMs, clock.nowMs);
  });

  test("tells when the origin was asked last", async (store, clock) => {
    await using task = await store.create(specOf(1), metaOf(100));
    assertEquals(task.info.checkedAtMs, clock.nowMs);
    clock.nowMs += 500;
    task.checked();
    assertEquals(store.list()[0]?.checkedAtMs, clock.nowMs);
  });

  test("counts the bytes of valid pieces as stored", async (store) => {
    await using task = await store.create(specOf(1), metaOf(10_000));
    assertEquals(store.usage().storedBytes, 0);
    await fill(task, 1, [0, 1, 2]);
    assertEquals(store.usage().storedBytes, 3000);
    const { freeBytes, totalBytes } = store.usage();
    assert(freeBytes > 0 && totalBytes >= freeBytes);
  });

  test("evicts what was idle for the expire time, and nothing that is open", async (store, clock) => {
    for (const number of [1, 2, 3]) await (await store.create(specOf(number), metaOf(100)))[Symbol.asyncDispose]();
    await using _open = await store.open(specOf(2).task_id);
    clock.nowMs += 900;
    await using _used = await store.open(specOf(3).task_id);
    await _used![Symbol.asyncDispose]();
    clock.nowMs += 200;
    assertEquals(await store.collectGarbage(), [specOf(1).task_id]);
    assertEquals(store.list().length, 2);
    assertEquals(await store.open(specOf(1).task_id), null);
  });

  test("keeps spec and meta as they were given", async (store) => {
    const spec = { ...specOf(1), tag: "t", filter: "a&b", digest: "sha256:" + "0".repeat(64) };
    const meta = { ...metaOf(100), etag: '"e"', last_modified: "Mon, 01 Jan 2024 00:00:00 GMT", ranges: false };
    await using task = await store.create(spec, meta);
    assertEquals([task.info.spec, task.info.meta], [spec, meta]);
  });
}
