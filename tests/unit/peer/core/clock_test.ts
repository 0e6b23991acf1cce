import { assert, assertEquals, assertRejects } from "@std/assert";
import { seededRandom, systemClock } from "../../../../peer/core/clock.ts";

Deno.test("systemClock.sleep() resolves not before its time", async () => {
  const startedAtMs = systemClock.nowMs();
  await systemClock.sleep(5);
  // The timer counts whole milliseconds of its own clock.
  assert(systemClock.nowMs() - startedAtMs >= 4);
});

Deno.test("systemClock.sleep() rejects with the reason of a signal that is aborted already", async () => {
  const reason = new Error("over");
  assertEquals(await assertRejects(() => systemClock.sleep(60_000, AbortSignal.abort(reason))), reason);
});

Deno.test("systemClock.sleep() rejects with the reason when aborted meanwhile, and leaves no timer", async () => {
  const controller = new AbortController();
  const reason = new Error("over");
  const sleeping = assertRejects(() => systemClock.sleep(60_000, controller.signal));
  controller.abort(reason);
  assertEquals(await sleeping, reason);
});

Deno.test("systemClock.sleep() leaves no listener on a signal that outlives it", async () => {
  const { signal } = new AbortController();
  const listeners = new Set<unknown>();
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => (listeners.add(args[1]), add(...args));
  signal.removeEventListener = (...args: Parameters<typeof remove>) => (listeners.delete(args[1]), remove(...args));
  await systemClock.sleep(1, signal);
  assertEquals(listeners.size, 0);
});

Deno.test("systemClock.sleep() of 30 days does not end at once: a timer holds 24.8 days at most", async () => {
  const asked: number[] = [];
  const original = globalThis.setTimeout;
  // Fires at once, as a timer beyond its bound would, and notes what was asked.
  globalThis.setTimeout = ((callback: () => void, ms: number) => {
    asked.push(ms);
    queueMicrotask(callback);
    return 0;
  }) as unknown as typeof setTimeout;
  try {
    await systemClock.sleep(30 * 86_400_000);
  } finally {
    globalThis.setTimeout = original;
  }
  assertEquals(asked, [2_147_483_647, 30 * 86_400_000 - 2_147_483_647]);
});

Deno.test("systemClock.nowMs() never runs backwards", () => {
  let last = systemClock.nowMs();
  for (let turn = 0; turn < 1000; turn++) {
    const now = systemClock.nowMs();
    assert(now >= last);
    last = now;
  }
});

Deno.test("seededRandom() says the same numbers for the same seed and others for another", () => {
  const numbers = (seed: number) => Array.from({ length: 20 }, seededRandom(seed));
  assertEquals(numbers(7), numbers(7));
  assert(numbers(7).every((number, at) => number !== numbers(8)[at]));
});

for (const seed of [0, 1, 42, -1, 2 ** 32, 1.5]) {
  Deno.test(`seededRandom(${seed}) stays in [0, 1) and is spread evenly`, () => {
    const random = seededRandom(seed);
    const buckets = new Array<number>(10).fill(0);
    for (let turn = 0; turn < 10_000; turn++) {
      const number = random();
      assert(number >= 0 && number < 1);
      buckets[Math.floor(number * 10)]! += 1;
    }
    // 1,000 each; 6 standard deviations are 180.
    assert(buckets.every((count) => Math.abs(count - 1000) < 180), String(buckets));
  });
}
