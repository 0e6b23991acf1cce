/**
 * The list of piece digests of one generation: the first report of a piece
 * counts. Also decides which holder is asked for its digests when the list has
 * holes that somebody may fill: one at a time, the next after three seconds.
 */
import type { PieceDigest } from "../../peer/core/wire/scheduler.ts";

/** How long a holder that was asked may stay silent. */
const ANSWER_TIMEOUT_MS = 3_000;

/**
 * Messages in which a member is told all digests, about, and how long one may gather for that. What is told late can be
 * passed on late, but a host has other pieces to ask for meanwhile: 64 hosts and 256 pieces take 1.11 × the bound with
 * 265 messages to a host without, and with 86 so (tests/sim).
 */
const GATHERS = 64;
const GATHER_MS_MAX = 500;

/** A digest that the other members are still to be told. */
export interface FreshDigest {
  readonly number: number;
  readonly sha256: string;
  readonly reporterId: string;
}

/** A holder that may be asked. */
export interface AskCandidate {
  readonly hostId: string;
  readonly pieceCount: number;
  readonly complete: boolean;
}

export class DigestList {
  readonly #digests: (string | undefined)[] = [];
  readonly #reporters: (string | undefined)[] = [];
  readonly #countBy = new Map<string, number>();
  #count = 0;
  #fresh: FreshDigest[] = [];
  /** When the first piece was reported, and the last one that was unknown. */
  #firstMs = 0;
  #lastMs = 0;
  #asked: { hostId: string; pieceCount: number; answered: number; sinceMs: number } | null = null;

  /** @param size number of pieces */
  constructor(readonly size: number) {}

  get count(): number {
    return this.#count;
  }

  get isFull(): boolean {
    return this.#count === this.size;
  }

  /** Host that is being asked, or null. */
  get askedHostId(): string | null {
    return this.#asked?.hostId ?? null;
  }

  has(number: number): boolean {
    return this.#digests[number] !== undefined;
  }

  /** Pieces whose last reporter is this host. */
  countBy(hostId: string): number {
    return this.#countBy.get(hostId) ?? 0;
  }

  /** Host that reported the piece last, or undefined. */
  reporterOf(number: number): string | undefined {
    return this.#reporters[number];
  }

  /** @returns whether the piece was unknown; a number beyond the content is ignored. */
  add(number: number, sha256: string, reporterId: string, nowMs: number): boolean {
    if (number >= this.size) return false;
    const known = this.#digests[number];
    if (known !== undefined && known !== sha256) return false;
    this.#setReporter(number, reporterId);
    if (known !== undefined) return false;
    this.#digests[number] = sha256;
    if (this.#count === 0) this.#firstMs = nowMs;
    this.#lastMs = nowMs;
    this.#count += 1;
    this.#fresh.push({ number, sha256, reporterId });
    return true;
  }

  #setReporter(number: number, hostId: string): void {
    const before = this.#reporters[number];
    if (before !== undefined) this.#countBy.set(before, this.countBy(before) - 1);
    this.#reporters[number] = hostId;
    this.#countBy.set(hostId, this.countBy(hostId) + 1);
  }

  /** Everything known, ascending. */
  all(): PieceDigest[] {
    const result: PieceDigest[] = [];
    for (const [number, sha256] of this.#digests.entries()) if (sha256 !== undefined) result.push([number, sha256]);
    return result;
  }

  /** What was added since the last call. */
  takeFresh(): FreshDigest[] {
    const fresh = this.#fresh;
    this.#fresh = [];
    return fresh;
  }

  /** How long fresh digests may gather, as fast as pieces come; 0 where that brings no two together. */
  get gatherMs(): number {
    if (this.#count < 2 || this.isFull) return 0;
    const pieceMs = (this.#lastMs - this.#firstMs) / (this.#count - 1);
    const gatherMs = Math.min(GATHER_MS_MAX, pieceMs * this.size / GATHERS);
    return gatherMs > pieceMs ? gatherMs : 0;
  }

  /** Counts an answer; whoever said all that it has is no longer waited for. */
  answered(hostId: string, pieceCount: number, nowMs: number): void {
    if (this.#asked?.hostId !== hostId) return;
    this.#asked.sinceMs = nowMs;
    this.#asked.answered += pieceCount;
    if (this.#asked.answered >= this.#asked.pieceCount) this.#asked = null;
  }

  /** The holder will not answer: it is gone, or has thrown the task away. */
  stopAsking(hostId: string): void {
    if (this.#asked?.hostId === hostId) this.#asked = null;
  }

  /**
   * Whom to ask now: complete ones first, then whoever has most, ties by id.
   * @returns undefined when nobody need be asked or somebody is being asked
   */
  ask(candidates: () => Iterable<AskCandidate>, nowMs: number): string | undefined {
    if (this.isFull) this.#asked = null;
    if (this.#asked !== null && nowMs - this.#asked.sinceMs >= ANSWER_TIMEOUT_MS) this.#asked = null;
    if (this.isFull || this.#asked !== null) return undefined;
    let best: AskCandidate | undefined;
    for (const candidate of candidates()) if (best === undefined || isBetter(candidate, best)) best = candidate;
    if (best === undefined) return undefined;
    this.#asked = { hostId: best.hostId, pieceCount: best.pieceCount, answered: 0, sinceMs: nowMs };
    return best.hostId;
  }
}

function isBetter(a: AskCandidate, b: AskCandidate): boolean {
  if (a.complete !== b.complete) return a.complete;
  return a.pieceCount !== b.pieceCount ? a.pieceCount > b.pieceCount : a.hostId < b.hostId;
}
