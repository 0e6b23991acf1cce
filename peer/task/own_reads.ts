/**
 * Decides what a host reads of the origin by itself while no scheduler answers.
 * Without neighbours that have something: runs from the start, over all
 * connections. With such neighbours it waits a moment, for a scheduler that
 * restarts; then it reads single pieces at random, first those that nobody
 * offers, so that hosts that know nothing of each other read different ones. Pure.
 *
 * Half-way through a cold wave of 16 hosts a restart of 0.3 s took 3.4 copies
 * in all when each host read runs in order to their end; so 1.13 (tests/sim).
 */
import type { Random } from "../core/clock.ts";
import type { PiecePicker } from "./piece_picker.ts";

/** Bytes that a host without neighbours asks for with one request: small, because a scheduler that comes back knows nothing of it. */
const RUN_LENGTH = 4 * 1024 * 1024;
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

  constructor(private readonly picker: PiecePicker, private readonly options: OwnReadsOptions) {}

  /** Whether this host reads by itself. */
  get isAlone(): boolean {
    return this.#sinceMs !== null;
  }

  setAlone(isAlone: boolean, nowMs: number): void {
    if (!isAlone) this.#sinceMs = null;
    else this.#sinceMs ??= nowMs;
  }

  /**
   * The run to read now beside `active` others, or null.
   *
   * @param isServed whether neighbours send pieces now: then one piece at a time is read beside them
   */
  next({ active, isServed }: { active: number; isServed: boolean }, nowMs: number): {
    readonly first: number;
    readonly count: number;
  } | null {
    const { ranges, connections } = this.options;
    if (this.#sinceMs === null || active >= (ranges ? connections : 1)) return null;
    if (!this.picker.hasOffers) return ranges ? this.#nextInOrder(active) : this.#whole();
    if (nowMs - this.#sinceMs < GRACE_MS || active >= (isServed ? 1 : CONNECTIONS_MAX)) return null;
    return ranges ? this.#nextAtRandom(isServed) : this.#whole();
  }

  #whole(): { first: number; count: number } | null {
    return this.picker.idlePieces(1).length === 0 ? null : { first: 0, count: this.picker.pieceCount };
  }

  /** The first run of wanted pieces that nobody works on. */
  #nextInOrder(active: number): { first: number; count: number } | null {
    const { pieceLength, connections } = this.options;
    const max = Math.max(1, Math.floor(RUN_LENGTH / pieceLength));
    const idle = this.picker.idlePieces(max * connections);
    const first = idle[0];
    if (first === undefined) return null;
    const share = Math.min(max, Math.ceil(idle.length / (connections - active)));
    let count = 1;
    while (count < share && idle[count] === first + count) count += 1;
    return { first, count };
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
