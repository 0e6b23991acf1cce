/**
 * How an origin answers one task, learned from the leases on it, and how many
 * pieces the next lease should have. Short ones spread the first pieces over
 * many hosts, whose uplinks all work then; they must be long enough that the
 * origin sends more of the time than it is asked.
 *
 * In a cold wave of 64 hosts leases of 4 MiB kept 50 uplinks idle for the first
 * two seconds (1.41 × the bound); single pieces of 256 KiB: 1.14 × (tests/sim).
 */

/** How long a lease takes at least, where pieces come faster than that. */
const LEASE_MS_MIN = 50;
/** A content is cut into so many leases at least: what one host has and the others do not is a small part of it. */
const LEASES_PER_TASK_MIN = 128;
/** Where the origin is far, a lease sends for so many times the wait for its first piece, and is this part of the content at most. */
const WAITS_PER_LEASE = 3;
const LATE_LEASES_PER_TASK_MIN = 64;
/** While nothing is known: two, so that the time between them becomes known. */
const COUNT_AT_FIRST = 2;
/** Part of a new sample in the average. */
const WEIGHT = 0.2;

export class OriginPace {
  #firstMs: number | null = null;
  #nextMs: number | null = null;

  /** The first piece of a lease came so long after it was given. */
  first(ms: number): void {
    this.#firstMs = average(this.#firstMs, ms);
  }

  /** A further piece came so long after the one before. */
  next(ms: number): void {
    this.#nextMs = average(this.#nextMs, ms);
  }

  /** @returns pieces of the next lease, at least 1 */
  count(pieceCount: number): number {
    const most = (leases: number) => Math.max(1, Math.floor(pieceCount / leases));
    if (this.#nextMs === null) return Math.min(COUNT_AT_FIRST, most(LEASES_PER_TASK_MIN));
    const nextMs = Math.max(this.#nextMs, 1e-3);
    const waitMs = Math.max(0, (this.#firstMs ?? 0) - nextMs);
    const brisk = Math.min(Math.round(LEASE_MS_MIN / nextMs), most(LEASES_PER_TASK_MIN));
    const late = Math.min(Math.round(waitMs * WAITS_PER_LEASE / nextMs), most(LATE_LEASES_PER_TASK_MIN));
    return Math.max(1, brisk, late);
  }
}

function average(before: number | null, ms: number): number {
  return before === null ? ms : before + (ms - before) * WEIGHT;
}
