import { assertEquals } from "@std/assert";
import { heldTask } from "../../../../peer/core/wire/scheduler.ts";
import { HeldNews, heldTasks } from "../../../../peer/task/held.ts";
import { SPEC, storedContent } from "./stored_content.ts";

Deno.test("a task with pieces is held, in the words of the wire", async () => {
  const { store, meta } = await storedContent({ size: 40, held: [1], now: () => 1_700_000_000_000 });
  const held = heldTasks(store);
  assertEquals(held, [{
    ...SPEC,
    meta,
    piece_count: 1,
    complete: false,
    last_used_at: "2023-11-14T22:13:20.000Z",
  }]);
  assertEquals(heldTask.parse(held[0]), held[0]);
});

Deno.test("a complete task is held, an empty content too", async () => {
  const whole = await storedContent({ size: 40, held: [0, 1, 2] });
  whole.task.complete(null);
  assertEquals(heldTasks(whole.store).map(({ piece_count, complete }) => [piece_count, complete]), [[3, true]]);
  const empty = await storedContent({ size: 0 });
  empty.task.complete(null);
  assertEquals(heldTasks(empty.store).map(({ piece_count, complete }) => [piece_count, complete]), [[0, true]]);
});

Deno.test("a task of which nothing is here is not held", async () => {
  assertEquals(heldTasks((await storedContent({ size: 40 })).store), []);
});

Deno.test("a task that has just begun is no news; it is when it holds something, and when that is gone", async () => {
  const { store, task } = await storedContent({ size: 40 });
  const news = new HeldNews(store);
  const changed = new Set([SPEC.task_id]);
  assertEquals(news.take(changed), { held: [], dropped: [] });
  task.commit(0, "0".repeat(64));
  assertEquals(news.take(new Set()), { held: [], dropped: [] });
  assertEquals(news.take(changed).held.map(({ piece_count }) => piece_count), [1]);
  await task[Symbol.asyncDispose]();
  await store.remove(SPEC.task_id);
  assertEquals(news.take(changed), { held: [], dropped: [SPEC.task_id] });
  assertEquals(news.take(changed), { held: [], dropped: [] });
});

Deno.test("what was on disk before counts as told", async () => {
  const { store, task } = await storedContent({ size: 40, held: [1] });
  const news = new HeldNews(store);
  await task[Symbol.asyncDispose]();
  await store.remove(SPEC.task_id);
  assertEquals(news.take(new Set([SPEC.task_id])).dropped, [SPEC.task_id]);
});
