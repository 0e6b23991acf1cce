import { assertEquals } from "@std/assert";
import { OriginPace } from "../../../../manager/scheduler/origin_pace.ts";

for (
  const [firsts, nexts, pieces, want] of [
    [[], [], 1, 1],
    [[], [], 255, 1],
    [[], [], 1000, 2],
    [[100], [], 1000, 2],
    [[], [10], 1000, 5],
    [[10], [100], 10_000, 1],
    [[510], [10], 10_000, 150],
    [[510], [10], 640, 10],
    [[5], [0], 1000, 15],
    [[0], [0], 1000, 7],
    [[5], [0, 0, 100], 10_000, 3],
  ] as [number[], number[], number, number][]
) {
  Deno.test(`first pieces after ${firsts}, others after ${nexts} ms, ${pieces} pieces: leases of ${want}`, () => {
    const pace = new OriginPace();
    for (const ms of firsts) pace.first(ms);
    for (const ms of nexts) pace.next(ms);
    assertEquals(pace.count(pieces), want);
  });
}
