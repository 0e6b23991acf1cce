import { assert, assertEquals } from "@std/assert";
import { seededRandom } from "../../../../peer/core/clock.ts";
import { backoffMs, retryAfterMs } from "../../../../peer/source/retry.ts";

Deno.test("backoffMs() doubles up to 5 s, half of it by chance", () => {
  assertEquals([0, 1, 2, 9, 1000].map((attempt) => backoffMs(attempt, () => 0)), [100, 200, 400, 2500, 2500]);
  const random = seededRandom(1);
  for (let round = 0; round < 100; round++) {
    const ms = backoffMs(2, random);
    assert(ms >= 400 && ms <= 800, String(ms));
  }
});

for (
  const [value, ms] of [
    ["0", 0],
    ["120", 120_000],
    [" 5 ", 5000],
    ["Thu, 01 Jan 1970 00:00:11 GMT", 10_000],
    ["Thursday, 01-Jan-70 00:00:11 GMT", 10_000],
    ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
    [null, null],
    ["", null],
    ["-1", null],
    ["1.5", null],
    ["soon", null],
    ["1970", 1_970_000],
    ["1970-01-01", null],
    ["99999999999999", null],
    ["Mon", null],
  ] as const
) {
  Deno.test(`retryAfterMs(${JSON.stringify(value)}) is ${ms}`, () => assertEquals(retryAfterMs(value, 1000), ms));
}
