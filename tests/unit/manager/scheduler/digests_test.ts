import { assertEquals } from "@std/assert";
import { type AskCandidate, DigestList } from "../../../../manager/scheduler/digests.ts";

const holder = (hostId: string, pieceCount: number, complete = false): AskCandidate => ({
  hostId,
  pieceCount,
  complete,
});

Deno.test("the first digest of a piece stands, its last reporter of the same digest is remembered", () => {
  const list = new DigestList(3);
  assertEquals([list.add(0, "x", "a", 0), list.add(0, "y", "b", 0), list.reporterOf(0)], [true, false, "a"]);
  assertEquals(list.add(0, "x", "c", 0), false);
  assertEquals([list.all(), list.reporterOf(0)], [[[0, "x"]], "c"]);
  assertEquals([list.countBy("a"), list.countBy("b"), list.countBy("c")], [0, 0, 1]);
});

Deno.test("pieces beyond the content are ignored", () => {
  const list = new DigestList(3);
  assertEquals([list.add(3, "x", "a", 0), list.count, list.has(3)], [false, 0, false]);
});

Deno.test("takeFresh() gives what is new, once", () => {
  const list = new DigestList(3);
  list.add(1, "x", "a", 0);
  assertEquals(list.takeFresh(), [{ number: 1, sha256: "x", reporterId: "a" }]);
  assertEquals(list.takeFresh(), []);
});

Deno.test("ask() prefers complete holders, then those with most pieces, then the lower id", () => {
  const candidates = [holder("d", 1), holder("c", 5), holder("b", 5), holder("a", 2, true)];
  const order = [];
  for (let left = candidates; left.length > 0;) {
    const hostId = new DigestList(9).ask(() => left, 0)!;
    order.push(hostId);
    left = left.filter((candidate) => candidate.hostId !== hostId);
  }
  assertEquals(order, ["a", "b", "c", "d"]);
});

Deno.test("ask() asks one at a time until the answer is whole, three seconds are over or the host is gone", () => {
  const list = new DigestList(9);
  assertEquals(list.ask(() => [holder("a", 4)], 0), "a");
  assertEquals(list.ask(() => [holder("b", 4)], 2_999), undefined);
  list.answered("a", 2, 2_999);
  assertEquals(list.ask(() => [holder("b", 4)], 5_000), undefined);
  list.answered("a", 2, 5_000);
  assertEquals(list.ask(() => [holder("b", 4)], 5_000), "b");
  assertEquals(list.ask(() => [holder("c", 4)], 8_000), "c");
  list.stopAsking("x");
  assertEquals(list.askedHostId, "c");
  list.stopAsking("c");
  assertEquals([list.askedHostId, list.ask(() => [], 8_000)], [null, undefined]);
});

Deno.test("ask() asks nobody when the list is whole or the content is empty", () => {
  const list = new DigestList(1);
  assertEquals(list.ask(() => [holder("a", 1)], 0), "a");
  list.add(0, "x", "b", 0);
  assertEquals([list.ask(() => [holder("c", 1)], 0), list.askedHostId], [undefined, null]);
  assertEquals(new DigestList(0).ask(() => [holder("a", 0)], 0), undefined);
});

Deno.test("digests gather for a 64th of what all pieces take, half a second at most, and not at all for one or the last", () => {
  const gatherMs = (size: number, pieceMs: number, count: number) => {
    const list = new DigestList(size);
    for (let number = 0; number < count; number++) list.add(number, "x", "a", 1_000 + number * pieceMs);
    return list.gatherMs;
  };
  for (
    const [size, pieceMs, count, expected] of [
      [256, 40, 1, 0],
      [256, 40, 2, 160],
      [256, 40, 100, 160],
      [256, 40, 256, 0],
      [64, 40, 10, 0],
      [1024, 40, 10, 500],
      [1024, 400, 10, 500],
      // Half a second brings no two of them together.
      [1024, 600, 10, 0],
      [1024, 0, 10, 0],
    ] as const
  ) assertEquals(gatherMs(size, pieceMs, count), expected, `${size} pieces, ${pieceMs} ms, ${count} known`);
});
