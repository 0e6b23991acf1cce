import { assert, assertEquals } from "@std/assert";
import { LoopLag } from "../../../peer/loop_lag.ts";

/** A clock that stands still until it is set, and tells when the gauge's timer has looked at it. */
function makeClock() {
  let looks = 0;
  const clock = {
    nowMs: 0,
    look: () => {
      looks += 1;
      return clock.nowMs;
    },
    looked: async () => {
      const before = looks;
      for (let tries = 0; looks < before + 2; tries++) {
        assert(tries < 1000);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
  };
  return clock;
}

Deno.test("a loop that is held up has a stall as long, told once", async () => {
  const clock = makeClock();
  using lag = new LoopLag(clock.look);
  assertEquals(lag.take(), 0);
  clock.nowMs = 220;
  await clock.looked();
  assertEquals(lag.take(), 0.2);
  assertEquals(lag.take(), 0);
});

Deno.test("the longest of several stalls is told", async () => {
  const clock = makeClock();
  using lag = new LoopLag(clock.look);
  for (const stallMs of [30, 500, 40]) {
    clock.nowMs += 20 + stallMs;
    await clock.looked();
  }
  assertEquals(lag.take(), 0.5);
});

Deno.test("a stall that goes on while it is asked counts", () => {
  const clock = makeClock();
  using lag = new LoopLag(clock.look);
  clock.nowMs = 1_020;
  assertEquals(lag.take(), 1);
});

Deno.test("on the machine's own clock a busy loop is found, without waiting for its timer", () => {
  using lag = new LoopLag();
  const untilMs = performance.now() + 100;
  while (performance.now() < untilMs);
  assert(lag.take() >= 0.05);
});
