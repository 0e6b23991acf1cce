import { assert, assertEquals } from "@std/assert";
import { SlowCalls, type SlowCallsConfig } from "../../../../peer/storage/slow_calls.ts";

/** Calls every `everyMs`, as long as `msOf` says at that time. @returns when those on the main thread began */
function callsOf(
  config: SlowCallsConfig,
  { untilMs, everyMs, msOf }: { untilMs: number; everyMs: number; msOf: (atMs: number) => number },
): number[] {
  const calls = new SlowCalls(config);
  const made: number[] = [];
  for (let nowMs = 0; nowMs < untilMs; nowMs += everyMs) {
    if (calls.isPaused(nowMs)) continue;
    made.push(nowMs);
    calls.took(msOf(nowMs), nowMs + msOf(nowMs));
  }
  return made;
}

Deno.test("quick calls are all made here", () => {
  assertEquals(callsOf({ slowMs: 2, onceMs: 2 }, { untilMs: 100, everyMs: 1, msOf: () => 1.9 }).length, 100);
});

Deno.test("a slow call pauses those to come for 250 ms where one is enough", () => {
  const msOf = (atMs: number) => atMs === 10 ? 5 : 0;
  const made = callsOf({ slowMs: 2, onceMs: 5 }, { untilMs: 400, everyMs: 1, msOf });
  assertEquals(made.filter((at) => at > 10)[0], 10 + 5 + 250);
});

Deno.test("of two slow calls that are wanted, the second must be near", () => {
  const config = { slowMs: 5, onceMs: 50 };
  const pausesAfter = (distance: number) => {
    const calls = new SlowCalls(config);
    calls.took(5, 0);
    for (let count = 1; count < distance; count++) calls.took(0, 0);
    calls.took(5, 0);
    return calls.isPaused(1);
  };
  assertEquals([1, 8, 9, 100].map(pausesAfter), [true, true, false, false]);
});

for (const onceMs of [20, 21]) {
  Deno.test(`a disk that stays slow is tried ever more rarely, a quick one at once again (20 ms, once ${onceMs} ms)`, () => {
    const msOf = (atMs: number) => atMs < 30_000 ? 20 : 0;
    const made = callsOf({ slowMs: 2, onceMs }, { untilMs: 60_000, everyMs: 50, msOf });
    const tries = made.filter((at) => at < 30_000).slice(onceMs > 20 ? 1 : 0);
    const gaps = tries.slice(1).map((at, index) => at - tries[index]!);
    assertEquals(gaps, gaps.toSorted((a, b) => a - b));
    assert(tries.length < 10 && gaps.at(-1)! >= 8_000 && gaps.at(-1)! < 8_200, `${gaps}`);
    const after = made.filter((at) => at >= 30_000);
    assertEquals(after.length, (60_000 - after[0]!) / 50);
  });
}
