/**
 * Who reads which pieces of one task from the origin. Keeps: a piece is leased
 * to one host at a time, except pieces that were delivered once and that
 * somebody starves for; a lease ends when its host has reported all of it, says
 * so, is gone, or loses it. What a lease did not deliver is free again.
 */
import type { PieceLayout } from "../../peer/core/piece.ts";
import { pieceCount } from "../../peer/core/piece.ts";
import { OriginPace } from "./origin_pace.ts";

/** Bytes of one lease at most; more when nobody else could read meanwhile. */
const LEASE_LENGTH_MAX = 4 * 1024 * 1024;
const LONE_LEASE_LENGTH_MAX = 32 * 1024 * 1024;
/** Bytes that a host asks for before it knows the layout. */
const PROBE_LENGTH = 1024 * 1024;
/** An origin slower than this is not waited for, bytes per second. */
const RATE_MIN = 256 * 1024;

export interface Lease {
  readonly id: number;
  readonly hostId: string;
  /** Null for a probe, also after its layout became known. */
  readonly generation: string | null;
  readonly first: number;
  /** 0 for a probe before the layout is known. */
  count: number;
  /** Pieces that the host has not reported yet. */
  readonly left: Set<number>;
  /** Given to a host that starves: pieces that others hold, or that nobody asked for. */
  readonly extra: boolean;
  readonly grantedAtMs: number;
  /** When its host last reported a piece. */
  activeAtMs: number;
  /** When a piece of this lease was last reported, or null. */
  pieceAtMs: number | null;
}

/** A run of pieces. */
export interface Run {
  readonly first: number;
  readonly count: number;
}

export class LeaseBook {
  readonly #leases = new Map<number, Lease>();
  /** Lease of each piece, 0 for none. */
  #leaseOf = new Uint32Array(0);
  #layout: PieceLayout = { contentLength: 0, pieceLength: 1 };
  #cursor = 0;
  readonly #pace = new OriginPace();

  /** Live leases, oldest first. */
  get live(): Iterable<Lease> {
    return this.#leases.values();
  }

  get size(): number {
    return this.#leases.size;
  }

  /** Live leases that were given for starving, or that were not. */
  count({ extra }: { extra: boolean }): number {
    let count = 0;
    for (const lease of this.#leases.values()) if (lease.extra === extra) count += 1;
    return count;
  }

  /** Pieces that live leases are still to deliver for the first time. */
  get pendingCount(): number {
    let count = 0;
    for (const lease of this.#leases.values()) if (!lease.extra) count += lease.left.size;
    return count;
  }

  get(id: number): Lease | undefined {
    return this.#leases.get(id);
  }

  of(hostId: string): Lease[] {
    return [...this.#leases.values()].filter((lease) => lease.hostId === hostId);
  }

  /** Whether a live lease covers the piece. */
  isLeased(number: number): boolean {
    return (this.#leaseOf[number] ?? 0) !== 0;
  }

  /** A lease on the beginning of a content whose layout is unknown. */
  probe(id: number, hostId: string, nowMs: number): Lease {
    return this.#open({ id, hostId, generation: null, first: 0, count: 0, extra: false }, nowMs);
  }

  grant(
    { id, hostId, generation, extra }: { id: number; hostId: string; generation: string; extra: boolean },
    run: Run,
    nowMs: number,
  ): Lease {
    const lease = this.#open({ id, hostId, generation, extra, ...run }, nowMs);
    this.#cover(lease);
    return lease;
  }

  /**
   * The layout is known (or another one, or null: none): all leases of a
   * generation end, and a probe gets its pieces.
   *
   * @returns the leases that ended
   */
  setLayout(layout: PieceLayout | null, { ranges }: { ranges: boolean }): Lease[] {
    const ended = [...this.#leases.values()].filter((lease) => layout === null || lease.generation !== null);
    for (const lease of ended) this.#leases.delete(lease.id);
    this.#layout = layout ?? { contentLength: 0, pieceLength: 1 };
    this.#leaseOf = new Uint32Array(pieceCount(this.#layout));
    this.#cursor = 0;
    for (const lease of this.#leases.values()) this.widen(lease, { ranges });
    return ended;
  }

  /** What a probe reads becomes its pieces: the beginning, or all where there are no ranges. */
  widen(lease: Lease, { ranges }: { ranges: boolean }): void {
    const covered = ranges ? Math.max(1, Math.floor(PROBE_LENGTH / this.#layout.pieceLength)) : Infinity;
    lease.count = Math.min(covered, this.#leaseOf.length);
    this.#cover(lease);
  }

  /** @returns the leases of the host that this piece completed; they have ended */
  delivered(hostId: string, number: number, nowMs: number): Lease[] {
    const ended: Lease[] = [];
    for (const lease of this.#leases.values()) {
      if (lease.hostId !== hostId) continue;
      lease.activeAtMs = nowMs;
      if (!lease.left.delete(number)) continue;
      this.#learn(lease, nowMs);
      if (this.#leaseOf[number] === lease.id) this.#leaseOf[number] = this.#heirOf(number);
      if (lease.left.size > 0) continue;
      ended.push(lease);
      this.#leases.delete(lease.id);
    }
    return ended;
  }

  /** Ends a lease; its pieces are free again, except where another lease covers them. */
  end(id: number): Lease | undefined {
    const lease = this.#leases.get(id);
    if (lease === undefined) return undefined;
    this.#leases.delete(id);
    for (let number = lease.first; number < lease.first + lease.count; number++) {
      if (this.#leaseOf[number] !== id) continue;
      this.#leaseOf[number] = this.#heirOf(number);
      this.#cursor = Math.min(this.#cursor, number);
    }
    return lease;
  }

  /** Looks at all pieces again: some that were done are not any more. */
  rewind(): void {
    this.#cursor = 0;
  }

  /** How long a lease holder may be silent: one piece must get through, also from a slow origin. */
  timeoutMs(hostTimeoutMs: number): number {
    return hostTimeoutMs + this.#layout.pieceLength / RATE_MIN * 1000;
  }

  /** Whether a piece is neither done nor leased. */
  hasFree(isDone: (number: number) => boolean): boolean {
    while (this.#cursor < this.#leaseOf.length && (this.isLeased(this.#cursor) || isDone(this.#cursor))) {
      this.#cursor += 1;
    }
    return this.#cursor < this.#leaseOf.length;
  }

  /**
   * The next run of free pieces: as long as the origin's pace allows, so that
   * pieces enter the swarm at many hosts; one host alone gets a share of what remains.
   *
   * @param readers leases that could be under way at once
   * @param isLone whether one host only could read
   * @returns undefined when no piece is free
   */
  nextRun(
    isDone: (number: number) => boolean,
    options: { remaining: number; readers: number; isLone: boolean },
  ): Run | undefined {
    if (!this.hasFree(isDone)) return undefined;
    const first = this.#cursor;
    const isFree = (number: number) => this.#leaseOf[number] === 0 && !isDone(number);
    const { pieceLength } = this.#layout;
    const paced = this.#pace.count(this.#leaseOf.length) * pieceLength;
    const lengthMax = options.isLone ? LONE_LEASE_LENGTH_MAX : Math.min(LEASE_LENGTH_MAX, paced);
    const share = options.remaining * pieceLength / (2 * Math.max(1, options.readers));
    return this.#runFrom(first, Math.min(lengthMax, share), isFree);
  }

  /**
   * A run for a host that starves for these pieces (ascending): the first that
   * no lease covers. With `stale`, also pieces of leases for which it is true.
   */
  starvingRun(
    numbers: readonly number[],
    { share, stale }: { share: number; stale: (lease: Lease) => boolean },
  ): Run | undefined {
    const wanted = new Set(numbers);
    const length = Math.min(LEASE_LENGTH_MAX, numbers.length * this.#layout.pieceLength / Math.max(1, share));
    const isFree = (number: number) => wanted.has(number) && this.#leaseOf[number] === 0;
    const free = numbers.find(isFree);
    if (free !== undefined) return this.#runFrom(free, length, isFree);
    const isStale = (number: number) => {
      const lease = this.#leases.get(this.#leaseOf[number] ?? 0);
      return wanted.has(number) && lease !== undefined && stale(lease);
    };
    const again = numbers.find(isStale);
    return again === undefined ? undefined : this.#runFrom(again, length, isStale);
  }

  #runFrom(first: number, length: number, isTaken: (number: number) => boolean): Run {
    const countMax = Math.max(1, Math.round(length / this.#layout.pieceLength));
    let count = 1;
    while (count < countMax && first + count < this.#leaseOf.length && isTaken(first + count)) count += 1;
    return { first, count };
  }

  /** The answer to a probe says how fast pieces come, but not how soon the first one does. */
  #learn(lease: Lease, nowMs: number): void {
    if (lease.pieceAtMs !== null) this.#pace.next(nowMs - lease.pieceAtMs);
    else if (lease.generation !== null) this.#pace.first(nowMs - lease.grantedAtMs);
    lease.pieceAtMs = nowMs;
  }

  #open(facts: Omit<Lease, "left" | "grantedAtMs" | "activeAtMs" | "pieceAtMs">, nowMs: number): Lease {
    const lease: Lease = { ...facts, left: new Set(), grantedAtMs: nowMs, activeAtMs: nowMs, pieceAtMs: null };
    this.#leases.set(lease.id, lease);
    return lease;
  }

  #cover(lease: Lease): void {
    lease.left.clear();
    for (let number = lease.first; number < lease.first + lease.count; number++) {
      this.#leaseOf[number] = lease.id;
      lease.left.add(number);
    }
  }

  #heirOf(number: number): number {
    for (const lease of this.#leases.values()) {
      if (number >= lease.first && number < lease.first + lease.count && lease.left.has(number)) return lease.id;
    }
    return 0;
  }
}
