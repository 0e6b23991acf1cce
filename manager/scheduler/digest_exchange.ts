/**
 * Keeps the list of piece digests whole and everywhere: sends what was learned
 * to all members but those that reported it, and asks holders when the list has
 * holes, as after a restart of the scheduler.
 */
import { batches, type PieceDigest } from "../../peer/core/wire/scheduler.ts";
import type { SwarmPorts } from "./resource.ts";
import type { Roster } from "./roster.ts";
import type { Task } from "./task.ts";

export interface ExchangeDeps {
  readonly task: Task;
  readonly members: Roster;
  readonly ports: SwarmPorts;
  /** Whether members can get pieces from the host. */
  readonly isReachable: (hostId: string) => boolean;
}

/** Sends the digests learned since the last call. */
export function sendFreshDigests({ task, members, ports }: ExchangeDeps): void {
  const fresh = task.digests.takeFresh();
  if (fresh.length === 0) return;
  const reporters = new Set(fresh.map(({ reporterId }) => reporterId));
  // The same message objects for all who reported nothing: they are put into text once.
  const all = messages(task, fresh.map(({ number, sha256 }) => [number, sha256]));
  for (const { hostId } of members.ordered) {
    const others = () => fresh.filter(({ reporterId }) => reporterId !== hostId);
    const own = reporters.has(hostId) ? messages(task, others().map((it) => [it.number, it.sha256])) : all;
    for (const message of own) ports.send(hostId, message);
  }
}

/** Sends everything that is known to one host. */
export function sendAllDigests(hostId: string, { task, ports }: ExchangeDeps): void {
  for (const message of messages(task, task.digests.all())) ports.send(hostId, message);
}

/** Asks the next holder for its digests, when there are holes and nobody is being asked. */
export function askForDigests(deps: ExchangeDeps, nowMs: number): void {
  const { task, ports } = deps;
  const hostId = task.digests.ask(() => askable(deps), nowMs);
  const holding = hostId === undefined ? undefined : task.current(hostId);
  if (hostId === undefined || holding === undefined) return;
  holding.asked = true;
  ports.send(hostId, { type: "want_digests", task_id: task.id, generation: holding.meta.generation });
}

/** Holders whose pieces members can get, and who have not been asked yet. */
function* askable({ task, isReachable }: ExchangeDeps) {
  for (const [hostId, { pieceCount, complete, asked, meta }] of task.holdings) {
    if (asked || pieceCount === 0 || meta.generation !== task.meta?.generation) continue;
    if (isReachable(hostId)) yield { hostId, pieceCount, complete };
  }
}

function messages({ id, meta }: Task, digests: PieceDigest[]) {
  if (meta === null) return [];
  return batches(digests).map((pieces) =>
    ({ type: "digests", task_id: id, generation: meta.generation, pieces }) as const
  );
}
