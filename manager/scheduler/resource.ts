/**
 * What a scheduler knows, as plain state: hosts, who holds what of a task, and
 * who takes part in it. No decisions here. A holding is what a host has on
 * disk, whether it takes part or not; a member takes part now.
 */
import type {
  HostFacts,
  HostMessage,
  Neighbour,
  SchedulerMessage,
  TaskMeta,
  WireError,
} from "../../peer/core/wire/scheduler.ts";
import type { Random } from "../../peer/core/clock.ts";

/** Settings of every scheduler of a manager. */
export interface SchedulerConfig {
  /** Degree of the neighbour graph above a full mesh, 10 to 16. */
  readonly neighbours: number;
  /** Leases of one task at once. */
  readonly sourceConnectionsPerTask: number;
  /** A lease holder that says nothing for so long loses its lease; a host its place. */
  readonly hostTimeoutMs: number;
}

/** A live host. */
export interface Host {
  readonly facts: HostFacts;
  /** RFC 3339. */
  readonly connectedAt: string;
  uploads: number;
  downloads: number;
  freeBytes: number;
  /** Tasks that it holds or takes part in. */
  readonly taskIds: Set<string>;
}

/** What one host has on disk of a task. */
export interface Holding {
  meta: TaskMeta;
  /** Pieces that it is known to have; a member may have more. */
  pieceCount: number;
  complete: boolean;
  /** Whether it need not be asked for its digests: it was, or it had nothing when it said what it holds. */
  asked: boolean;
}

/** One host's part in a task. */
export interface Member {
  readonly hostId: string;
  readonly type: "normal" | "seed";
  /** Rises with each join. */
  readonly joinNumber: number;
  joinedAtMs: number;
  canSource: boolean;
  anonymous: boolean;
  /** Wants a part only: it gets leases for what it starves for. */
  partial: boolean;
  /** Why it can no longer read the origin for this task, or null. */
  refused: WireError | null;
  /** Failed leases since the last piece, and when the next lease may come. */
  failures: number;
  notBeforeMs: number;
  /** Leases that were taken back from it since its last piece. */
  lapses: number;
  leasedBytes: number;
  leaseCount: number;
  /** Was told that nobody can read the origin. */
  toldFailed: boolean;
}

/** A host that joins; what it said then is not in it yet. @param joinNumber higher than those before */
export function createMember(
  { id, type }: Pick<HostFacts, "id" | "type">,
  joinNumber: number,
  nowMs: number,
): Member {
  return {
    hostId: id,
    type,
    joinNumber,
    joinedAtMs: nowMs,
    canSource: false,
    anonymous: false,
    partial: false,
    refused: null,
    failures: 0,
    notBeforeMs: 0,
    lapses: 0,
    leasedBytes: 0,
    leaseCount: 0,
    toldFailed: false,
  };
}

/** What a task's swarm needs of its scheduler. */
export interface SwarmPorts {
  readonly config: SchedulerConfig;
  readonly random: Random;
  host(hostId: string): Host | undefined;
  /** Live seed peers of the cluster, ascending. */
  seedIds(): readonly string[];
  send(hostId: string, message: SchedulerMessage): void;
  nextLeaseId(): number;
  nextJoinNumber(): number;
  /** Orders a seed peer to fetch the task, on the swarm's own account. */
  orderSeed(hostId: string): void;
  /** Orders a host to throw the task away. */
  orderDrop(hostId: string): void;
}

/** A message of one type. */
export type MessageOf<Type extends HostMessage["type"]> = Extract<HostMessage, { type: Type }>;

/** A host as its neighbours see it. */
export function toNeighbour({ facts }: Host): Neighbour {
  const address = facts.ip.includes(":") ? `[${facts.ip}]:${facts.upload_port}` : `${facts.ip}:${facts.upload_port}`;
  return { host_id: facts.id, address, type: facts.type, idc: facts.idc };
}
