import { assertEquals } from "@std/assert";
import { DEPTH_MIN, RequestDepth } from "../../../../peer/task/request_depth.ts";

function times(count: number, work: () => void): void {
  for (let time = 0; time < count; time++) work();
}

for (const [max, start] of [[1, 1], [3, 3], [8, 8], [16, 8], [256, 8]] as const) {
  Deno.test(`RequestDepth of at most ${max} starts with ${start} and ends with ${max} when nobody refuses`, () => {
    const depth = new RequestDepth(max);
    assertEquals(depth.count, start);
    times(4 * max, () => depth.succeeded());
    assertEquals(depth.count, max);
  });
}

Deno.test("RequestDepth falls with refusals, never below its least", () => {
  const depth = new RequestDepth(16);
  times(100, () => depth.succeeded());
  times(4, () => depth.refused());
  assertEquals(depth.count, 14);
  times(100, () => depth.refused());
  assertEquals(depth.count, DEPTH_MIN);
  const one = new RequestDepth(1);
  one.refused();
  assertEquals(one.count, 1);
});

Deno.test("RequestDepth grows again after refusals, ten times more slowly than it fell", () => {
  const depth = new RequestDepth(16);
  times(100, () => depth.succeeded());
  times(2, () => depth.refused());
  times(10, () => depth.succeeded());
  assertEquals(depth.count, 15);
  times(30, () => depth.succeeded());
  assertEquals(depth.count, 16);
});
