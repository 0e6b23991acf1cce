/**
 * Decides which host fetches a task for the others: rendezvous hashing, so that
 * every scheduler and every restart choose alike, and a host that leaves moves
 * its own tasks only.
 */
import { sha256Hex } from "../../peer/core/digest.ts";

/** The id with the highest digest of task and id; undefined when there is none. */
export function rendezvous(taskId: string, hostIds: Iterable<string>): string | undefined {
  let best: { hostId: string; score: string } | undefined;
  for (const hostId of hostIds) {
    const score = sha256Hex(`${taskId}\n${hostId}`);
    if (best === undefined || score > best.score) best = { hostId, score };
  }
  return best?.hostId;
}
