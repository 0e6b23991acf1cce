/**
 * Decides what a host reads of the origin by itself: while no scheduler answers, and for a reader far ahead of all else.
 * Without neighbours that have something: runs from the start, over all
 * connections. With such neighbours it waits a moment, for a scheduler that
 * restarts; then it reads single pieces at random, first those that nobody
 * offers, so that hosts that know nothing of each other read different ones.
 *
 * A scheduler leases pieces nearly in order, and knows nothing of readers: who reads the end of a large content that is on
 * its way (the index of an archive) would wait for all of it. Pure.
 *
 * Half-way through a cold wave of 16 hosts a restart of 0.3 s took 3.4 copies
 * in all when each host read runs in order to their end; so 1.13 (tests/sim).
 */
import type { Random } from "../core/clock.ts";
import type { PiecePicker } from "./piece_picker.ts";

/** Bytes that a host without neighbours asks for with one request: small, because a scheduler that comes back knows nothing of it. */
const RUN_LENGTH = 4 * 1024 * 1024;
/**
 * The same for a reader in order that one connection serves: the first of them, each is twice as long as the one before, and
 * the most. docker-registry spends 5 ms on every request: 0.65 CPU seconds on 385 MiB in runs of 4 MiB, 0.2 in runs of 64.
 */
const LONG_RUN_LENGTH = 16 * 1024 * 1024;
const LONG_RUN_LENGTH_MAX = 64 * 1024 * 1024;
/** A reader that has waited at the edge of what is here for so long is given all connections, */
const EDGE_MS = 150;
/** but where all origins together send more than this, bytes per second, it waits for the CPU. */
const FAST_BYTES_PER_SECOND = 64 * 1024 * 1024;
/** So far ahead of a reader one connection is enough again: more than all bring in one round. */
const LEAD_LENGTH = 32 * 1024 * 1024;
/** A reader so far ahead of what is leased next, */
const FAR_LENGTH = 128 * 1024 * 1024;
/** that has waited for so long for a piece that nobody offers, is read for. */
const FAR_MS = 500;
/** How long a host whose neighbours have something waits for a scheduler. */
const GRACE_MS = 1_000;
/** Connections of such a host: all of the swarm read at once, and what is half read when a scheduler is back was for nothing. */
const CONNECTIONS_MAX = 2;

export interface OwnReadsOptions {
  readonly pieceLength: number;
  /** Whether the origin serves ranges; if not, the whole content is one run. */
  readonly ranges: boolean;
  /** Connections to the origin at once. */
  readonly connections: number;
  readonly random: Random;
}

export class OwnReads {
  #sinceMs: number | null = null;
  /** Whether one connection brings more than the reader in order takes, as far as it was seen. */
  #isOutrun = true;
  /** Since when the reader has been at the edge of what is here. */
  #edge: { sinceMs: number; readBytes: number } | null = null;
  #longRunLength = LONG_RUN_LENGTH;
  /** Where a reader far ahead waits, and since when; what follows a run that was read for it comes without a wait. */
  #far: { first: number; sinceMs: number } | null = null;
  #isFarRefused = false;

  constructor(private readonly picker: PiecePicker, private readonly options: OwnReadsOptions) {}

  /** Whether this host reads by itself. */
  get isAlone(): boolean {
    return this.#sinceMs !== null;
  }

  setAlone(isAlone: boolean, nowMs: number): void {
    if (!isAlone) this.#sinceMs = null;
    else this.#sinceMs ??= nowMs;
  }

  /** A read for a reader far ahead failed: it waits for the scheduler's leases like all others. */
  farFailed(): void {
    this.#isFarRefused = true;
  }

  /**
   * The run to read now beside `active` others, or null.
   *
   * @param isServed whether neighbours send pieces now: then one piece at a time is read beside them
   * @param readBytes what all origins have sent so far
   */
  next(
    { active, isServed, readBytes }: { active: number; isServed: boolean; readBytes: number },
    nowMs: number,
  ): { readonly first: number; readonly count: number } | null {
    const { ranges, connections } = this.options;
    if (this.#sinceMs === null) return ranges && active === 0 ? this.#nextFar(nowMs) : null;
    if (active >= (ranges ? connections : 1)) return null;
    if (!this.picker.hasOffers) {
      return ranges ? this.#nextInOrder(active, this.#isOneEnough({ nowMs, readBytes })) : this.#whole();
    }
    if (nowMs - this.#sinceMs < GRACE_MS || active >= (isServed ? 1 : CONNECTIONS_MAX)) return null;
    return ranges ? this.#nextAtRandom(isServed) : this.#whole();
  }

  #whole(): { first: number; count: number } | null {
    return this.picker.idlePieces(1).length === 0 ? null : { first: 0, count: this.picker.pieceCount };
  }

  /**
   * The first run of wanted pieces that nobody works on: from where a reader waits for one, else from the start. A second
   * reader gets a second connection, because the first one's run may be long.
   */
  #nextInOrder(active: number, isOneEnough: boolean): { first: number; count: number } | null {
    const { pieceLength } = this.options;
    const waited = this.picker.waitedFor;
    const connections = isOneEnough
      ? Math.min(waited === null ? 1 : 2, this.options.connections)
      : this.options.connections;
    if (active >= connections) return null;
    const isLong = isOneEnough && active === 0;
    const max = Math.max(1, Math.floor((isLong ? this.#longRunLength : RUN_LENGTH) / pieceLength));
    const idle = this.picker.idlePieces(max * connections, waited?.first);
    if (idle.length === 0) return null;
    const share = isOneEnough ? max : Math.min(max, Math.ceil(idle.length / (connections - active)));
    if (isLong) this.#longRunLength = Math.min(this.#longRunLength * 2, LONG_RUN_LENGTH_MAX);
    return startOf(idle, share);
  }

  /** What a reader far ahead of the scheduler's leases waits for. */
  #nextFar(nowMs: number): { first: number; count: number } | null {
    const { pieceLength } = this.options;
    const waited = this.picker.waitedFor;
    if (waited === null || this.#isFarRefused || this.picker.availability(waited.first) > 0) return null;
    const [next = 0] = this.picker.idlePieces(1);
    if ((waited.first - next) * pieceLength < FAR_LENGTH) return null;
    if (this.#far?.first !== waited.first) this.#far = { first: waited.first, sinceMs: nowMs };
    if (nowMs - this.#far.sinceMs < FAR_MS) return null;
    const max = Math.min(waited.count, Math.max(1, Math.floor(RUN_LENGTH / pieceLength)));
    const run = startOf(this.picker.idlePieces(max, waited.first), max);
    this.#far = { first: run.first + run.count, sinceMs: -Infinity };
    return run;
  }

  /** Whether a reader in order gets what it takes from one connection. */
  #isOneEnough({ nowMs, readBytes }: { nowMs: number; readBytes: number }): boolean {
    const pieces = Math.ceil(LEAD_LENGTH / this.options.pieceLength);
    const lead = this.picker.leadOfReaders(pieces);
    if (lead === null) return false;
    if (lead === pieces) this.#isOutrun = true;
    if (lead > 1) this.#edge = null;
    else this.#edge ??= { sinceMs: nowMs, readBytes };
    if (this.#edge === null || nowMs - this.#edge.sinceMs < EDGE_MS) return this.#isOutrun;
    const isFast = (readBytes - this.#edge.readBytes) * 1000 > FAST_BYTES_PER_SECOND * (nowMs - this.#edge.sinceMs);
    if (!isFast) this.#isOutrun = false;
    this.#edge = null;
    return this.#isOutrun;
  }

  /** What a neighbour offers and nobody asks for has a digest that no scheduler has told: it comes last. */
  #nextAtRandom(isServed: boolean): { first: number; count: number } | null {
    const idle = this.picker.idlePieces(Infinity);
    const fresh = idle.filter((number) => this.picker.availability(number) === 0);
    const pool = fresh.length > 0 || isServed ? fresh : idle;
    const first = pool[Math.floor(this.options.random() * pool.length)];
    return first === undefined ? null : { first, count: 1 };
  }
}

/** The pieces that follow each other from the first one on, at most `max`. */
function startOf(pieces: readonly number[], max: number): { first: number; count: number } {
  const first = pieces[0]!;
  let count = 1;
  while (count < max && pieces[count] === first + count) count += 1;
  return { first, count };
}
