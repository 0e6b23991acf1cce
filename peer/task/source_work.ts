/**
 * Reads pieces of one generation from the origin: those that the scheduler
 * leases, and those that `OwnReads` says, without a lease. A lease ends with its pieces or with one error; what it did not deliver
 * is free again.
 */
import type { Clock, Random } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { pieceRange } from "../core/piece.ts";
import type { Limiter } from "../core/rate_limit.ts";
import type { Source, SourceBody } from "../source/source.ts";
import { expectedVersion } from "./generation.ts";
import type { Ledger } from "./ledger.ts";
import { OwnReads } from "./own_reads.ts";
import type { PiecePicker } from "./piece_picker.ts";
import { readRun } from "./source_reader.ts";
import type { Lease } from "./swarm.ts";
import { piecesAtOnce } from "./task_rate.ts";

/** Tries without a new piece before a host working alone gives up. */
const OWN_TRIES = 3;
const OWN_PAUSE_MS = 300;
/** Why a read that was begun alone ends. */
const NOT_ALONE = new DOMException("A scheduler answers again", "AbortError");

export interface SourceWorkDeps {
  readonly source: Source;
  readonly limiters: readonly Limiter[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface SourceWorkOptions {
  readonly url: string;
  /** Headers of the requests that want this task, asked anew for each read. */
  readonly headers: () => readonly (readonly [string, string])[];
  readonly ledger: Ledger;
  readonly picker: PiecePicker;
  /** Connections to the origin at once, while alone. */
  readonly connections: number;
  /** A piece was read whole (or was here already and is asked for by a lease). */
  readonly onPiece: (number: number, sha256: string) => void;
  readonly onBytes: (length: number) => void;
  /** Bytes of a piece that is not held were written. */
  readonly onWritten: (bytes: Uint8Array, offset: number) => void;
  /** Bytes that all origins have sent to this host so far. */
  readonly readBytes: () => number;
  readonly onLeaseEnd: (leaseId: number, error: unknown) => void;
  /** Working alone failed for good. */
  readonly onFatal: (error: unknown) => void;
  /** Whether this host may read the origin without a lease. */
  readonly canSource: () => boolean;
  /** Whether neighbours send pieces now: then a host that is alone reads one at a time beside them. */
  readonly isServed: () => boolean;
  /** Ends requests to neighbours for these pieces. */
  readonly cancelPeers: (numbers: readonly number[]) => Promise<void>;
}

export class SourceWork {
  readonly #leases = new Map<number, AbortController>();
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<void>>();
  /** Pieces being read, by read. */
  readonly #reads = new Map<Promise<void>, ReadonlySet<number>>();
  readonly #own: OwnReads;
  readonly #ownRuns = new Set<AbortController>();
  #ownFailures = 0;

  constructor(private readonly deps: SourceWorkDeps, private readonly options: SourceWorkOptions) {
    const { ledger, picker, connections } = options;
    const { piece_length: pieceLength, ranges } = ledger.meta;
    this.#own = new OwnReads(picker, { pieceLength, ranges, connections, random: deps.random });
  }

  /** Reads under way: leases and own runs. */
  get activeCount(): number {
    return this.#leases.size + this.#ownRuns.size;
  }

  /** Carries out a lease; `body` is the answer of a probe that already holds its beginning. */
  lease(lease: Lease, body?: SourceBody): void {
    const controller = new AbortController();
    this.#leases.set(lease.leaseId, controller);
    const signal = AbortSignal.any([controller.signal, this.#stop.signal]);
    this.#track(this.#readLease(lease, signal, body));
  }

  revoke(leaseId: number): void {
    const controller = this.#leases.get(leaseId);
    this.#leases.delete(leaseId);
    controller?.abort(new DOMException("The lease was revoked", "AbortError"));
  }

  /**
   * Whether to read whatever is wanted without being told. Reads begun alone end with it: a scheduler that comes back
   * gives the same pieces to others. Only a stream goes on, which could not be taken up again.
   */
  setAlone(alone: boolean): void {
    this.#own.setAlone(alone, this.deps.clock.nowMs());
    if (alone) this.pump();
    else if (this.options.ledger.meta.ranges) { for (const run of this.#ownRuns) run.abort(NOT_ALONE); }
  }

  /** Starts own runs: while alone, and for a reader far ahead of the leases. */
  pump(): void {
    if (!this.#own.isAlone && !this.options.canSource()) return;
    const { piece_length: pieceLength } = this.options.ledger.meta;
    while (!this.#stop.signal.aborted && this.activeCount < piecesAtOnce(this.deps.limiters, pieceLength)) {
      const { isServed, readBytes } = this.options;
      const state = { active: this.#ownRuns.size, isServed: isServed(), readBytes: readBytes() };
      const run = this.#own.next(state, this.deps.clock.nowMs());
      if (run === null) return;
      const controller = new AbortController();
      this.#ownRuns.add(controller);
      const signal = AbortSignal.any([controller.signal, this.#stop.signal]);
      this.#track(
        this.#readAlone(run, signal).finally(() => {
          this.#ownRuns.delete(controller);
          this.pump();
        }),
      );
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort(new DOMException("The task was stopped", "AbortError"));
    await Promise.allSettled([...this.#running]);
  }

  async #readLease({ leaseId, first, count }: Lease, signal: AbortSignal, body?: SourceBody): Promise<void> {
    let failure: unknown;
    try {
      await this.#readPieces({ first, count, signal }, body);
    } catch (error) {
      failure = error;
    }
    const open = this.#leases.delete(leaseId);
    if (open && !this.#stop.signal.aborted) this.options.onLeaseEnd(leaseId, failure);
  }

  async #readAlone(run: { first: number; count: number }, signal: AbortSignal): Promise<void> {
    const before = this.options.picker.heldCount;
    try {
      await this.#readPieces({ ...run, signal });
      this.#ownFailures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (!this.#own.isAlone) {
        this.deps.log.info("reading the origin for a reader far ahead failed: it waits for a lease", { error });
        return this.#own.farFailed();
      }
      this.#ownFailures = this.options.picker.heldCount > before ? 1 : this.#ownFailures + 1;
      const retryable = error instanceof LacewingError && ["network", "timeout", "source_failed"].includes(error.code);
      this.deps.log.info("reading the origin failed", { error, tries: this.#ownFailures });
      if (!retryable || this.#ownFailures >= OWN_TRIES) {
        this.#own.setAlone(false, this.deps.clock.nowMs());
        return this.options.onFatal(error);
      }
      await this.deps.clock.sleep(OWN_PAUSE_MS * 2 ** this.#ownFailures, signal).catch(() => {});
    }
  }

  /** Reads the pieces of a run that are not here yet; those that another read is at are left to it first. */
  async #readPieces(
    { first, count, signal }: { first: number; count: number; signal: AbortSignal },
    body?: SourceBody,
  ): Promise<void> {
    const { picker, ledger, onPiece } = this.options;
    const end = Math.min(first + count, picker.pieceCount);
    const numbers = Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index);
    for (const number of numbers) {
      const digest = ledger.digestOf(number);
      if (picker.isHeld(number) && digest !== undefined) onPiece(number, digest);
    }
    const others = [...this.#reads].filter(([, claimed]) => numbers.some((number) => claimed.has(number)));
    if (others.length > 0) await Promise.all(others.map(([read]) => read));
    const claimed = new Set(numbers.filter((number) => !picker.isHeld(number)));
    for (const number of claimed) picker.reading(number);
    const work = this.#readClaimed(numbers, { first, end, signal }, body);
    const read = work.catch(() => {});
    this.#reads.set(read, claimed);
    try {
      await work;
    } finally {
      this.#reads.delete(read);
      for (const number of claimed) if (picker.isReading(number)) picker.missing(number);
    }
  }

  /** As few requests as there are gaps. */
  async #readClaimed(
    numbers: readonly number[],
    { first, end, signal }: { first: number; end: number; signal: AbortSignal },
    body?: SourceBody,
  ): Promise<void> {
    const { picker, ledger } = this.options;
    await this.options.cancelPeers(numbers);
    let answer: SourceBody | undefined = body;
    for (let from = first; from < end;) {
      if (picker.isHeld(from)) {
        from += 1;
        continue;
      }
      let length = 1;
      while (from + length < end && !picker.isHeld(from + length)) length += 1;
      // Without ranges the one stream goes on over pieces that are here.
      if (!ledger.meta.ranges) length = picker.pieceCount - from;
      const read = await this.#readGap({ first: from, count: length, signal }, answer);
      answer = undefined;
      if (read === 0) {
        throw new LacewingError("source_failed", `Cannot read piece ${from}: the origin's answer holds none of it`);
      }
    }
    await answer?.[Symbol.asyncDispose]();
  }

  async #readGap(
    { first, count, signal }: { first: number; count: number; signal: AbortSignal },
    answer?: SourceBody,
  ): Promise<number> {
    const { ledger, url } = this.options;
    const layout = { contentLength: ledger.meta.content_length, pieceLength: ledger.meta.piece_length };
    const start = pieceRange(first, layout);
    const last = pieceRange(first + count - 1, layout);
    const range = ledger.meta.ranges
      ? { offset: start.offset, length: last.offset + last.length - start.offset }
      : null;
    const expect = expectedVersion(url, ledger.meta);
    await using body = answer ??
      await this.deps.source.open({
        url,
        headers: this.options.headers(),
        range,
        ...(expect === undefined ? {} : { expect }),
      }, { signal });
    if (body.contentLength !== null && body.contentLength !== ledger.meta.content_length) {
      throw new LacewingError(
        "content_changed",
        `Cannot go on: the content at the origin has ${body.contentLength} B now, it had ${ledger.meta.content_length} B`,
      );
    }
    return await readRun(body, { store: ledger.store, meta: ledger.meta }, {
      first,
      count,
      limiters: this.deps.limiters,
      signal,
      isHeld: (number) => this.options.picker.isHeld(number),
      onBytes: this.options.onBytes,
      onWritten: this.options.onWritten,
      onPiece: (number, sha256) => this.#finished(number, sha256),
    });
  }

  #finished(number: number, sha256: string): void {
    const { ledger } = this.options;
    if (ledger.accept(number, sha256, { kind: "source" }) === "wrong") {
      throw new LacewingError(
        "content_changed",
        `Cannot use piece ${number} from the origin: digest is sha256:${sha256}, expected sha256:${
          ledger.digestOf(number)
        }`,
      );
    }
    this.options.onPiece(number, sha256);
  }

  #track(work: Promise<void>): void {
    this.#running.add(work);
    work.finally(() => this.#running.delete(work)).catch(() => {});
  }
}
