import { assertEquals } from "@std/assert";
import { heldTask } from "../../../../peer/core/wire/scheduler.ts";
import { heldTasks } from "../../../../peer/task/held.ts";
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
