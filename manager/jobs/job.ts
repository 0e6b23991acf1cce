/**
 * Decides which state a job may take, and what its outcome is. Pure. A job is
 * PENDING until its outcome is known; an ended job never changes again.
 * SUCCESS means that every task is complete everywhere; anything less fails.
 */
import { LacewingError } from "../../peer/core/errors.ts";

export const JOB_STATES = ["PENDING", "SUCCESS", "FAILURE", "CANCELED"] as const;
export type JobState = typeof JOB_STATES[number];
export type JobEvent = "succeed" | "fail" | "cancel";

/** `SKIPPED` is content that is not preheated on purpose (foreign layers); it does not count. */
export type TaskState = JobState | "SKIPPED";

const NEXT: Record<JobState, Partial<Record<JobEvent, JobState>>> = {
  PENDING: { succeed: "SUCCESS", fail: "FAILURE", cancel: "CANCELED" },
  SUCCESS: {},
  FAILURE: {},
  CANCELED: {},
};

/** @throws {LacewingError} `conflict` when the job has ended. */
export function nextState(state: JobState, event: JobEvent): JobState {
  const next = NEXT[state][event];
  if (next === undefined) throw new LacewingError("conflict", `Cannot ${event} a job in state ${state}: it has ended`);
  return next;
}

/** Whether the outcome is known. */
export function hasEnded(state: JobState): boolean {
  return state !== "PENDING";
}

/** How many tasks are in each state. */
export type StateCounts = Readonly<Partial<Record<TaskState, number>>>;

/** What the tasks so far make of their job or cluster; no tasks at all are a failure. */
export function outcomeOf(counts: StateCounts): JobState {
  const of = (state: TaskState) => counts[state] ?? 0;
  if (of("PENDING") > 0) return "PENDING";
  if (of("FAILURE") > 0) return "FAILURE";
  if (of("CANCELED") > 0) return "CANCELED";
  return of("SUCCESS") + of("SKIPPED") > 0 ? "SUCCESS" : "FAILURE";
}
