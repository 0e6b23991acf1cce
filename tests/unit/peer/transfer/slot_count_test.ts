import { assert, assertEquals } from "@std/assert";
import { SlotCount, SLOTS_MIN } from "../../../../peer/transfer/slot_count.ts";

const PIECE = 256 * 1024;

/** Uploads for so long over a link of `linkRate` to children that take `childRate` each, bytes per millisecond. */
function run(
  slots: SlotCount,
  { linkRate, childRate, fromMs = 0, ms = 4_000, isBusy = true }: {
    linkRate: number;
    childRate: number;
    fromMs?: number;
    ms?: number;
    isBusy?: boolean;
  },
): number[] {
  const counts: number[] = [];
  for (let nowMs = fromMs; nowMs < fromMs + ms;) {
    nowMs += PIECE / Math.min(linkRate, childRate * slots.count);
    slots.ended(PIECE, { isBusy }, nowMs);
    counts.push(slots.count);
  }
  return counts;
}

for (
  const { what, linkRate, childRate, max, min, most } of [
    { what: "an uplink that one child fills", linkRate: 6_250, childRate: 6_250, max: 16, min: 4, most: 4 },
    { what: "an uplink that two children fill", linkRate: 6_250, childRate: 3_125, max: 16, min: 4, most: 4 },
    { what: "an uplink that eight children fill", linkRate: 12_500, childRate: 1_562, max: 16, min: 6, most: 9 },
    { what: "an uplink that nothing fills", linkRate: 1e9, childRate: 6_250, max: 16, min: 16, most: 16 },
    { what: "a host that may send one at once", linkRate: 1e9, childRate: 6_250, max: 1, min: 1, most: 1 },
  ]
) {
  Deno.test(`SlotCount ends between ${min} and ${most} for ${what}`, () => {
    const slots = new SlotCount(max);
    run(slots, { linkRate, childRate, ms: 4_000 });
    const counts = run(slots, { linkRate, childRate, fromMs: 4_000, ms: 60_000 }).sort((a, b) => a - b);
    const median = counts[counts.length >> 1]!;
    assert(median >= min && median <= most, `${median}`);
    assert(counts.at(-1)! <= max);
  });
}

Deno.test("SlotCount starts with its least and learns nothing while nobody waits", () => {
  const slots = new SlotCount(16);
  const counts = run(slots, { linkRate: 1e9, childRate: 6_250, isBusy: false });
  assertEquals(new Set(counts), new Set([SLOTS_MIN]));
});

Deno.test("SlotCount comes down again when fewer send as much", () => {
  const slots = new SlotCount(16);
  run(slots, { linkRate: 1e6, childRate: 6_250 });
  assertEquals(slots.count, 16);
  const counts = run(slots, { linkRate: 6_250, childRate: 6_250, fromMs: 4_000, ms: 120_000 });
  assert(counts.slice(-100).some((count) => count === SLOTS_MIN), `${counts.slice(-100)}`);
});

Deno.test("SlotCount has tried another count for a small part of the time only", () => {
  const slots = new SlotCount(16);
  const counts = run(slots, { linkRate: 6_250, childRate: 6_250, ms: 60_000 });
  const tried = counts.filter((count) => count !== SLOTS_MIN).length;
  assert(tried > 0 && tried < counts.length / 5, `${tried} of ${counts.length}`);
});
