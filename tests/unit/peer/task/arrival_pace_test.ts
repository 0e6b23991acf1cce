import { assertAlmostEquals, assertEquals } from "@std/assert";
import { ArrivalPace, PATIENCE_MS_MAX, PATIENCE_MS_MIN } from "../../../../peer/task/arrival_pace.ts";

for (
  const [intervalMs, patienceMs] of [[1, PATIENCE_MS_MIN], [50, PATIENCE_MS_MIN], [200, 800], [
    5_000,
    PATIENCE_MS_MAX,
  ]] as const
) {
  Deno.test(`a host whose pieces come every ${intervalMs} ms starves after ${patienceMs} ms`, () => {
    const pace = new ArrivalPace();
    for (let at = 0; at < 100; at++) pace.arrived(at * intervalMs);
    assertAlmostEquals(pace.patienceMs, patienceMs, 1);
  });
}

Deno.test("a host that got nothing yet, or one piece, starves after the least time", () => {
  const pace = new ArrivalPace();
  assertEquals(pace.patienceMs, PATIENCE_MS_MIN);
  pace.arrived(60_000);
  assertEquals(pace.patienceMs, PATIENCE_MS_MIN);
});

Deno.test("one long pause does not make a host patient for long", () => {
  const pace = new ArrivalPace();
  for (const atMs of [0, 10, 20, 5_020]) pace.arrived(atMs);
  assertEquals(pace.patienceMs, PATIENCE_MS_MAX);
  for (let piece = 1; piece <= 20; piece++) pace.arrived(5_020 + piece * 10);
  assertEquals(pace.patienceMs, PATIENCE_MS_MIN);
});
