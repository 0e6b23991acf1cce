import { assert, assertEquals } from "@std/assert";
import { LoopTurn } from "../../../../peer/storage/loop_turn.ts";

/** A turn on a clock and a loop of its own. */
function invented() {
  const loop = { nowMs: 0, ends: [] as (() => void)[] };
  const turn = new LoopTurn(() => loop.nowMs, (callback) => loop.ends.push(callback));
  const end = () => loop.ends.splice(0).forEach((callback) => callback());
  return { loop, turn, end };
}

Deno.test("chunks of one turn go on until 10 ms are spent, then all wait for the next", async () => {
  const { loop, turn, end } = invented();
  for (; loop.nowMs < 10; loop.nowMs += 2) assertEquals(turn.spent(), null);
  const [one, two] = [turn.spent(), turn.spent()];
  assert(one !== null && one === two);
  assertEquals(loop.ends.length, 1, "the end is asked for once");
  let isNext = false;
  one.then(() => isNext = true);
  await Promise.resolve();
  assertEquals(isNext, false);
  end();
  await one;
  assertEquals(turn.spent(), null, "a new turn begins");
});

Deno.test("the first chunk after a second without any does not wait", () => {
  const { loop, turn } = invented();
  for (let count = 0; count < 5; count++) {
    assertEquals(turn.spent(), null);
    loop.nowMs += 1000;
  }
});

Deno.test("chunks that take long wait one by one", () => {
  const { loop, turn, end } = invented();
  turn.spent();
  for (let count = 0; count < 5; count++) {
    loop.nowMs += 200;
    assert(turn.spent() !== null);
    end();
  }
});

Deno.test("timers run while chunks never have to wait", async () => {
  const turn = new LoopTurn();
  let isDue = false;
  const timer = setTimeout(() => isDue = true, 0);
  for (let count = 0; count < 1e7 && !isDue; count++) await turn.spent();
  clearTimeout(timer);
  assert(isDue);
});
