import { assertEquals, assertThrows } from "@std/assert";
import { JOB_STATES, nextState, outcomeOf, type StateCounts } from "../../../../manager/jobs/job.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

Deno.test("a pending job takes each outcome", () => {
  assertEquals([nextState("PENDING", "succeed"), nextState("PENDING", "fail"), nextState("PENDING", "cancel")], [
    "SUCCESS",
    "FAILURE",
    "CANCELED",
  ]);
});

for (const state of JOB_STATES.filter((state) => state !== "PENDING")) {
  Deno.test(`a job in state ${state} never changes`, () => {
    for (const event of ["succeed", "fail", "cancel"] as const) {
      assertThrows(() => nextState(state, event), LacewingError);
    }
  });
}

const OUTCOMES: [StateCounts, string][] = [
  [{}, "FAILURE"],
  [{ SUCCESS: 1 }, "SUCCESS"],
  [{ SUCCESS: 1, SKIPPED: 2 }, "SUCCESS"],
  [{ SKIPPED: 1 }, "SUCCESS"],
  [{ SUCCESS: 9, FAILURE: 1 }, "FAILURE"],
  [{ SUCCESS: 9, PENDING: 1 }, "PENDING"],
  [{ FAILURE: 9, PENDING: 1 }, "PENDING"],
  [{ CANCELED: 1, SUCCESS: 1 }, "CANCELED"],
];
for (const [counts, outcome] of OUTCOMES) {
  Deno.test(`tasks ${JSON.stringify(counts)} make ${outcome}`, () => assertEquals<string>(outcomeOf(counts), outcome));
}
