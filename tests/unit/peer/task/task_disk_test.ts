import { assert, assertEquals, assertThrows } from "@std/assert";
import { PieceEvents } from "../../../../peer/task/piece_events.ts";
import { TaskDisk } from "../../../../peer/task/task_disk.ts";
import { SPEC, storedContent } from "./stored_content.ts";

/** A task of which piece 0 is on disk, and what is told of it. */
async function diskWith() {
  const content = await storedContent({ size: 40, held: [0] });
  await content.task[Symbol.asyncDispose]();
  const events = new PieceEvents();
  const heard: string[] = [];
  for (const generation of ["g1", "g2"]) {
    events.watch(SPEC.task_id, generation, (piece) => heard.push(`${generation} ${piece === null ? "gone" : piece}`));
  }
  const disk = new TaskDisk({ store: content.store, events, onStored: () => heard.push("changed") }, SPEC);
  return { ...content, disk, heard };
}

Deno.test("open() gives what is on disk, or null", async () => {
  const { disk, store } = await diskWith();
  assertEquals(disk.stored, null);
  const stored = await disk.open();
  assertEquals([stored?.info.meta.generation, stored?.info.pieceCount, disk.stored === stored], ["g1", 1, true]);
  await disk.drop();
  assertEquals([await disk.open(), await store.open(SPEC.task_id)], [null, null]);
});

Deno.test("take() keeps the generation that is there", async () => {
  const { disk, meta, heard } = await diskWith();
  const opened = await disk.open();
  const taken = await disk.take(meta);
  assertEquals([taken === opened, taken.info.pieceCount, heard], [true, 1, []]);
});

Deno.test("take() puts an empty generation in the place of another, and says that the old one is gone", async () => {
  const { disk, meta, heard, store } = await diskWith();
  const opened = await disk.open();
  const taken = await disk.take({ ...meta, generation: "g2" });
  assertEquals([taken.info.meta.generation, taken.info.pieceCount, disk.stored === taken], ["g2", 0, true]);
  assertEquals(heard, ["g1 gone", "changed"]);
  assertEquals(store.list().map((info) => info.meta.generation), ["g2"]);
  assertThrows(() => opened!.commit(1, "a".repeat(64)), TypeError, "closed");
});

Deno.test("take() makes the first generation of a task that is not there", async () => {
  const { disk, meta, heard } = await diskWith();
  await disk.drop();
  heard.length = 0;
  assertEquals((await disk.take(meta)).info.pieceCount, 0);
  assertEquals(heard, []);
});

Deno.test("close() leaves on disk what is there, and can be followed by open()", async () => {
  const { disk, heard } = await diskWith();
  const stored = await disk.open();
  await disk.close();
  assertEquals([disk.stored, heard], [null, ["changed"]]);
  assertThrows(() => stored!.commit(1, "a".repeat(64)), TypeError, "closed");
  assertEquals((await disk.open())?.info.pieceCount, 1);
});

Deno.test("drop() and close() of a task that was not opened harm nothing", async () => {
  const { disk, heard, store } = await diskWith();
  await disk.close();
  assert(await store.open(SPEC.task_id) !== null);
  await disk.drop();
  await disk.drop();
  assertEquals(await store.open(SPEC.task_id), null);
  assertEquals(heard, ["changed", "changed", "changed"]);
});
