/**
 * What is known of each piece of one generation: its digest as the scheduler
 * gave it (or as this host read it from the origin), and whether its bytes on
 * disk have it. A piece counts, and is offered to others, only after its
 * digest was found right; bytes whose digest is not known yet wait for it.
 */
import type { TaskMeta } from "../core/wire/scheduler.ts";
import type { StoredTask } from "../storage/piece_store.ts";
import type { PiecePicker } from "./piece_picker.ts";

/** Where a piece's bytes came from. */
export type PieceOrigin = { readonly kind: "source" } | { readonly kind: "peer"; readonly hostId: string };

/** `useless`: nobody will tell the digest of this piece. */
export type Verdict = "held" | "waiting" | "wrong" | "useless";

export interface LedgerEvents {
  /** The piece is valid on disk now. */
  onHeld(number: number, origin: PieceOrigin): void;
  /** A host sent a piece that has another digest than it should. */
  onWrong(number: number, hostId: string): void;
}

export class Ledger {
  readonly #digests: (string | undefined)[];
  readonly #waiting = new Map<number, { sha256: string; hostId: string }>();
  #knownOnly = false;

  constructor(
    readonly store: StoredTask,
    readonly meta: TaskMeta,
    private readonly picker: PiecePicker,
    private readonly events: LedgerEvents,
  ) {
    this.#digests = new Array(picker.pieceCount).fill(undefined);
    for (const [number, digest] of store.digests()) {
      this.#digests[number] = digest;
      picker.held(number);
    }
  }

  digestOf(number: number): string | undefined {
    return this.#digests[number];
  }

  get isComplete(): boolean {
    return this.store.pieces.isFull;
  }

  /** Digests from the scheduler; one that is known already stands. @returns pieces on disk that do not have the digest given */
  learn(pieces: readonly (readonly [number, string])[]): number[] {
    const conflicts: number[] = [];
    for (const [number, digest] of pieces) {
      if (number >= this.picker.pieceCount) continue;
      const known = this.#digests[number];
      if (known === undefined) this.#digests[number] = digest;
      else if (known !== digest) conflicts.push(number);
      this.#settle(number);
    }
    return conflicts;
  }

  /** The bytes of a piece are written and have this digest. */
  accept(number: number, sha256: string, origin: PieceOrigin): Verdict {
    if (this.picker.isHeld(number)) return this.#digests[number] === sha256 ? "held" : "wrong";
    const known = this.#digests[number];
    if (origin.kind === "source" && known === undefined) this.#digests[number] = sha256;
    else if (known === undefined && origin.kind === "peer") {
      if (this.#knownOnly) return "useless";
      this.#waiting.set(number, { sha256, hostId: origin.hostId });
      this.picker.pending(number, origin.hostId);
      return "waiting";
    } else if (known !== sha256) return "wrong";
    this.#hold(number, sha256, origin);
    return "held";
  }

  /** Whether no scheduler will tell further digests: then the bytes that wait for one are given up. */
  setKnownOnly(knownOnly: boolean): void {
    this.#knownOnly = knownOnly;
    if (!knownOnly) return;
    for (const number of this.#waiting.keys()) this.picker.missing(number);
    this.#waiting.clear();
  }

  #settle(number: number): void {
    const waiting = this.#waiting.get(number);
    if (waiting === undefined) return;
    this.#waiting.delete(number);
    this.picker.missing(number);
    const verdict = this.accept(number, waiting.sha256, { kind: "peer", hostId: waiting.hostId });
    if (verdict === "wrong") this.events.onWrong(number, waiting.hostId);
  }

  #hold(number: number, sha256: string, origin: PieceOrigin): void {
    this.#waiting.delete(number);
    this.store.commit(number, sha256);
    this.picker.held(number);
    this.events.onHeld(number, origin);
  }
}
