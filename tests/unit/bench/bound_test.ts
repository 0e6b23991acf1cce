// The bounds that figures of the bench are held against: tests/bench/bound.ts
import { assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import {
  cutBound,
  efficiency,
  finisherBound,
  fluidBound,
  median,
  oneCopyBound,
  type Rates,
  starTime,
  stretch,
} from "../../bench/bound.ts";

const equal = (count: number, rate: number): Rates[] => Array.from({ length: count }, () => ({ up: rate, down: rate }));

const FLUID: [string, Parameters<typeof fluidBound>[0], number][] = [
  ["the source's uplink bounds a swarm of equals", { size: 100, sourceUp: 10, hosts: equal(16, 10) }, 10],
  ["the slowest downlink bounds", { size: 100, sourceUp: 50, hosts: [{ up: 50, down: 50 }, { up: 5, down: 5 }] }, 20],
  ["all uplinks together bound hosts that hardly send", {
    size: 100,
    sourceUp: 100,
    hosts: equal(9, 10).map(({ up }) => ({ up, down: 1000 })),
  }, 900 / 190],
  ["a link without limit bounds nothing", { size: 100, sourceUp: 10, hosts: equal(4, Infinity) }, 10],
  ["holders help the source", { size: 100, sourceUp: 10, hosts: equal(1, 40), holdersUp: 40 }, 2.5],
];
for (const [claim, demand, seconds] of FLUID) {
  Deno.test(`fluidBound(): ${claim}`, () => assertAlmostEquals(fluidBound(demand), seconds));
}

Deno.test("fluidBound() and oneCopyBound() throw for a swarm without hosts", () => {
  assertThrows(() => fluidBound({ size: 1, sourceUp: 1, hosts: [] }), RangeError);
  assertThrows(() => oneCopyBound({ size: 1, sourceUp: 1, hosts: [] }), RangeError);
});

Deno.test("oneCopyBound() is above the fluid bound where a fast source could send more than one copy", () => {
  const demand = { size: 100, sourceUp: 100, hosts: equal(10, 10).map(({ up }) => ({ up, down: 1000 })) };
  assertEquals(oneCopyBound(demand), 9);
  assertAlmostEquals(fluidBound(demand), 5);
});

Deno.test("oneCopyBound() of one host is its own download", () => {
  assertEquals(oneCopyBound({ size: 100, sourceUp: 50, hosts: equal(1, 20) }), 5);
});

Deno.test("finisherBound() lets fast hosts finish first, and ends at the fluid bound", () => {
  const demand = { size: 100, sourceUp: 50, hosts: [{ up: 10, down: 10 }, { up: 50, down: 50 }] };
  assertEquals(finisherBound(1, demand), 2);
  assertEquals(finisherBound(2, demand), fluidBound(demand));
});

for (const k of [0, 3, 1.5, NaN]) {
  Deno.test(`finisherBound() throws for finisher ${k} of 2`, () => {
    assertThrows(() => finisherBound(k, { size: 1, sourceUp: 1, hosts: equal(2, 1) }), RangeError);
  });
}

Deno.test("cutBound(): a thin link bounds the rack behind it, however many hosts stand there", () => {
  assertEquals(cutBound(100, 10, equal(8, 50)), 10);
  assertEquals(cutBound(100, 10, [{ up: 0, down: 50 }, { up: 0, down: 50 }]), 20);
});

Deno.test("starTime() grows with the hosts", () => {
  assertEquals(starTime({ size: 100, sourceUp: 10, hosts: equal(16, 10) }), 160);
  assertEquals(starTime({ size: 100, sourceUp: 10, hosts: equal(1, 5) }), 20);
});

Deno.test("stretch() and efficiency() are each other's inverse, and have an answer for nothing", () => {
  assertEquals(stretch(11, 10), 1.1);
  assertEquals(efficiency(20, 10), 0.5);
  assertEquals(stretch(1, 0), Infinity);
  assertEquals(efficiency(0, 1), 0);
});

Deno.test("median() takes the middle, or the mean of both middles", () => {
  assertEquals(median([3, 1, 2]), 2);
  assertEquals(median([4, 1, 2, 3]), 2.5);
  assertEquals(median([]), NaN);
});
