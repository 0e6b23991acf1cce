import { assertEquals } from "@std/assert";
import { type RatePart, RateShare } from "../../../../cli/recursive/rate_share.ts";

function sum(parts: readonly RatePart[]): number {
  return parts.reduce((whole, { bytesPerSecond }) => whole + bytesPerSecond, 0);
}

Deno.test("one file has the whole rate, many have equal parts of it", () => {
  assertEquals(new RateShare(800, 8).take(0).bytesPerSecond, 800);
  const share = new RateShare(800, 8);
  const parts = Array.from({ length: 8 }, () => share.take(20));
  assertEquals(parts.map(({ bytesPerSecond }) => bytesPerSecond), Array(8).fill(100));
});

Deno.test("no limit is no limit for each", () => {
  const share = new RateShare(0, 8);
  assertEquals([share.take(5).bytesPerSecond, share.take(0).bytesPerSecond], [0, 0]);
});

Deno.test("what a file leaves goes to the next one while any wait, and to those that run when none do", () => {
  const share = new RateShare(800, 8);
  const parts = Array.from({ length: 8 }, () => share.take(20));
  const heard: number[] = [];
  for (const part of parts) part.onGrow = (rate) => heard.push(rate);
  share.release(parts[0]!, 5);
  assertEquals(heard, []);
  const next = share.take(4);
  assertEquals(next.bytesPerSecond, 100);
  share.release(next, 0);
  assertEquals(heard, []);
  for (const part of parts.slice(1, 7)) share.release(part, 0);
  assertEquals(parts[7]!.bytesPerSecond > 500, true);
  assertEquals(heard.at(-1), parts[7]!.bytesPerSecond);
});

Deno.test("the parts never add up to more than the whole, whatever comes and goes", () => {
  let seed = 7;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const share = new RateShare(1_000_003, 8);
  const running: RatePart[] = [];
  for (let step = 0; step < 5000; step++) {
    const waiting = random() < 0.5 ? 0 : Math.floor(random() * 20);
    if (running.length < 8 && random() < 0.5) {
      const part = share.take(waiting);
      part.onGrow = () => {};
      running.push(part);
    } else if (running.length > 0) {
      share.release(running.splice(Math.floor(random() * running.length), 1)[0]!, waiting);
    }
    // A part is at least 1 B/s: less would be no limit.
    assertEquals(sum(running) <= 1_000_003 + 8, true, `step ${step}`);
  }
});
