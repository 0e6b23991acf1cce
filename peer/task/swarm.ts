/**
 * The port between the engine and the schedulers: a membership of one task.
 * Losing the scheduler is an event, not an error: the engine goes on with the
 * neighbours it knows and then with the origin.
 */
import type { Neighbour, PieceDigest, TaskMeta, TaskSpec, WireError } from "../core/wire/scheduler.ts";

/** Leave to read pieces from the origin; without a generation the layout is unknown. */
export interface Lease {
  readonly leaseId: number;
  readonly generation: string | null;
  readonly first: number;
  readonly count: number;
}

/** What this host has of the task when it joins (again). */
export interface JoinState {
  readonly meta?: TaskMeta;
  readonly pieceCount: number;
  readonly canSource: boolean;
  /** The origin is asked without private headers, so that any host may read it instead. */
  readonly anonymous: boolean;
  /** Only part of the content is wanted here: the scheduler leases nothing unasked. */
  readonly partial: boolean;
  /** The span that the scheduler's answer belongs to. */
  readonly traceparent?: string;
}

export interface SwarmListener {
  /** Asked at each (re)connection. */
  joinState(): JoinState;
  /** @param options.confirm whether the origin is to be asked if it still has this generation */
  onTask(meta: TaskMeta | null, neighbours: readonly Neighbour[], options?: { confirm: boolean }): void;
  onMeta(meta: TaskMeta): void;
  onNeighbours(add: readonly Neighbour[], remove: readonly string[]): void;
  /** Hosts of this one's idc that bring pieces over from others; null where all of it do. Comes before the neighbours. */
  onCarriers(hostIds: readonly string[] | null): void;
  onDigests(generation: string, pieces: readonly PieceDigest[]): void;
  onLease(lease: Lease): void;
  onRevoke(leaseId: number): void;
  onWantDigests(generation: string): void;
  onFailed(error: WireError): void;
  /** No scheduler answers for this task now. */
  onDown(): void;
}

export interface Membership {
  meta(meta: TaskMeta): void;
  pieces(generation: string, pieces: readonly PieceDigest[]): void;
  leaseEnd(leaseId: number, error?: WireError): void;
  starving(generation: string, pieces: readonly number[]): void;
  badPeer(hostId: string, piece: number): void;
  /** The origin was asked whether it still has the generation. */
  checked(generation: string, changed: boolean): void;
  complete(generation: string): void;
  /** Joins again with a changed `joinState`. */
  update(): void;
  leave(): void;
}

export interface Swarm {
  /** `onTask` or `onDown` follows, never synchronously. */
  join(task: TaskSpec, listener: SwarmListener): Membership;
}

/** A host that works alone. */
export const noSwarm: Swarm = {
  join(_task, listener) {
    let left = false;
    queueMicrotask(() => left || listener.onDown());
    return {
      meta() {},
      pieces() {},
      leaseEnd() {},
      starving() {},
      badPeer() {},
      checked() {},
      complete() {},
      update() {},
      leave() {
        left = true;
      },
    };
  },
};
