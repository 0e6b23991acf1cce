import { assert, assertEquals } from "@std/assert";
import { sha256Hex } from "../../../../peer/core/digest.ts";
import { PieceEvents } from "../../../../peer/task/piece_events.ts";
import { createPieceProvider } from "../../../../peer/task/provider.ts";
import { MemoryStore } from "../../../testutil/memory_store.ts";

const ID = "a".repeat(64);
const META = { generation: "g1", content_length: 5, piece_length: 262144, ranges: true };
const BYTES = new TextEncoder().encode("hello");

async function filled(): Promise<MemoryStore & { opens: number }> {
  const store = new MemoryStore();
  await using task = await store.create({ task_id: ID, url: "http://origin/f", tag: "", filter: "" }, META);
  await task.write(BYTES, 0);
  task.commit(0, sha256Hex(BYTES));
  const open = store.open.bind(store);
  const counting = Object.assign(store, { opens: 0 });
  store.open = (taskId) => {
    counting.opens += 1;
    return open(taskId);
  };
  return counting;
}

Deno.test("hold() gives the pieces of exactly the generation asked for", async () => {
  await using store = await filled();
  await using provider = createPieceProvider(store, new PieceEvents());
  await using held = await provider.hold(ID, "g1");
  assert(held !== null);
  const buffer = new Uint8Array(5);
  assertEquals(await held.read(buffer, 0), 5);
  assertEquals(buffer, BYTES);
  assertEquals(await provider.hold(ID, "g2"), null);
  assertEquals(await provider.hold("b".repeat(64), "g1"), null);
});

Deno.test("a task that is held again and again is opened once", async () => {
  await using store = await filled();
  await using provider = createPieceProvider(store, new PieceEvents());
  for (let count = 0; count < 5; count++) {
    await using held = await provider.hold(ID, "g1");
    assert(held !== null);
  }
  await Promise.all([1, 2, 3].map(async () => {
    await using _held = await provider.hold(ID, "g1");
  }));
  assertEquals(store.opens, 1);
});

Deno.test("a task that was dropped is opened anew, and who reads from it goes on", async () => {
  await using store = await filled();
  const events = new PieceEvents();
  await using provider = createPieceProvider(store, events);
  await using before = await provider.hold(ID, "g1");
  await store.remove(ID);
  events.gone(ID, "g1");
  assertEquals(await provider.hold(ID, "g1"), null);
  assertEquals(await before!.read(new Uint8Array(5), 0), 5);
});

Deno.test("a store that fails to open is asked again the next time", async () => {
  await using store = await filled();
  await using provider = createPieceProvider(store, new PieceEvents());
  const open = store.open.bind(store);
  store.open = () => Promise.reject(new Error("disk"));
  let failed = false;
  await provider.hold(ID, "g1").catch(() => failed = true);
  assert(failed);
  store.open = open;
  await using held = await provider.hold(ID, "g1");
  assert(held !== null);
});

Deno.test("a holding hears of new pieces until it stops listening", async () => {
  await using store = await filled();
  const events = new PieceEvents();
  await using provider = createPieceProvider(store, events);
  await using held = await provider.hold(ID, "g1");
  const heard: (number | null)[] = [];
  const stop = held!.watch((piece) => heard.push(piece));
  events.held(ID, "g1", 3);
  events.held(ID, "g2", 4);
  stop();
  events.held(ID, "g1", 5);
  assertEquals(heard, [3]);
});
