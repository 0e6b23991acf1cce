/**
 * One request's part in a task: which bytes it wants, how far they are, and
 * where they came from. Survives a new generation unless bytes of the old one
 * were already handed out.
 */
import { type Digest, digestInUrl, formatDigest } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import { type ByteRange, piecesOf } from "../core/piece.ts";
import { resolveRange } from "../core/range.ts";
import { expectedVersion } from "./generation.ts";
import type { PieceOrigin } from "./ledger.ts";
import type { Session } from "./session.ts";
import type { Opened, StreamingRun, TaskProgress, TaskRequest, TaskResult } from "./task.ts";

const READ_LENGTH = 256 * 1024;
/** How far ahead of a reader pieces are fetched first, in bytes. */
const READ_AHEAD_LENGTH = 8 * 1024 * 1024;

export interface RunDeps {
  /** The run is not needed any more. */
  readonly onDisposed: (run: Run) => void;
  /** Checks bytes against a digest while they arrive. @returns the digest's text form */
  readonly verify: (session: Session, what: { want: Digest; range: ByteRange }, signal: AbortSignal) => Promise<string>;
  /** Whether the session's generation counts: false if the origin has another one, and the run goes on with that. */
  readonly isCurrent: (session: Session) => Promise<boolean>;
  readonly hostName: (hostId: string) => string;
}

export class Run implements StreamingRun {
  readonly finished: Promise<TaskResult>;
  readonly opened: Promise<Opened>;
  readonly #settled = Promise.withResolvers<TaskResult>();
  readonly #listeners = new Set<() => void>();
  readonly #ended = new AbortController();
  readonly #parents = new Map<string, number>();
  #session: Session | null = null;
  readonly #attached = Promise.withResolvers<Session>();
  readonly #opened = Promise.withResolvers<Opened>();
  #range: ByteRange | null = null;
  #remaining = 0;
  #fromLocal = 0;
  #fromPeers = 0;
  #fromSource = 0;
  #handedOut = false;
  #notifyQueued = false;
  #isSettled = false;
  #hasSucceeded = false;

  constructor(
    readonly taskId: string,
    readonly request: TaskRequest,
    private readonly deps: RunDeps,
    signal: AbortSignal,
  ) {
    this.finished = this.#settled.promise;
    this.finished.catch(() => {});
    this.#attached.promise.catch(() => {});
    this.opened = this.#opened.promise;
    this.opened.catch(() => {});
    const onAbort = () => this.fail(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    this.finished.finally(() => signal.removeEventListener("abort", onAbort)).catch(() => {});
    if (signal.aborted) onAbort();
  }

  /** Whether every byte asked for was delivered. */
  get hasSucceeded(): boolean {
    return this.#hasSucceeded;
  }

  progress(): TaskProgress {
    return {
      total: this.#range?.length ?? null,
      done: this.#fromLocal + this.#fromPeers + this.#fromSource,
      fromLocal: this.#fromLocal,
      fromPeers: this.#fromPeers,
      fromSource: this.#fromSource,
      peers: this.#parents.size,
    };
  }

  onProgress(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The content's layout is known (or a new generation replaces the old one). */
  attach(session: Session): void {
    if (this.#isSettled) return;
    if (this.#handedOut) {
      return this.fail(
        new LacewingError("content_changed", "Cannot go on: the content changed at the origin while it was handed out"),
      );
    }
    const version = expectedVersion(this.request.url, session.meta);
    this.#opened.resolve({
      contentLength: session.layout.contentLength,
      ...(version === undefined ? {} : { version }),
    });
    try {
      this.#begin(session);
    } catch (error) {
      this.fail(error);
    }
  }

  /** A piece of the session became valid. */
  pieceHeld(number: number, origin: PieceOrigin): void {
    const overlap = this.#overlap(number);
    if (this.#isSettled || overlap === 0) return;
    this.#remaining -= overlap;
    if (origin.kind === "source") this.#fromSource += overlap;
    else {
      this.#fromPeers += overlap;
      this.#parents.set(origin.hostId, (this.#parents.get(origin.hostId) ?? 0) + overlap);
    }
    this.#notify();
    if (this.#remaining === 0 && this.#session !== null) this.#complete(this.#session);
  }

  fail(reason: unknown): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#ended.abort(reason);
    this.#attached.reject(reason);
    this.#opened.reject(reason);
    this.#settled.reject(reason);
  }

  async *read({ from = 0, reuse = false }: { from?: number; reuse?: boolean } = {}): AsyncIterable<Uint8Array> {
    const session = await this.#attached.promise;
    this.#handedOut = true;
    const range = this.#range;
    if (range === null) throw new TypeError("Cannot read a run without a range");
    const { pieceLength } = session.layout;
    const buffer = new Uint8Array(Math.min(READ_LENGTH, Math.max(1, range.length)));
    let offset = range.offset + from;
    const end = range.offset + range.length;
    while (offset < end) {
      const number = Math.floor(offset / pieceLength);
      if (!session.isComplete) session.setWindow(this, number, this.#readAhead(session, offset));
      await session.pieceHeld(number, this.#ended.signal);
      const until = Math.min((number + 1) * pieceLength, end);
      const read = await this.#stored(session, buffer.subarray(0, Math.min(buffer.length, until - offset)), offset);
      if (read === 0) {
        throw new LacewingError("file", `Cannot read ${session.store.path}: it ends at byte ${offset}, want ${end}`);
      }
      offset += read;
      // The last bytes are given only after the digest was found right.
      if (offset === end) await this.finished;
      yield reuse ? buffer.subarray(0, read) : buffer.slice(0, read);
    }
    await this.finished;
  }

  /** A task that failed meanwhile is closed: its reason tells more than that. */
  async #stored(session: Session, buffer: Uint8Array, offset: number): Promise<number> {
    this.#ended.signal.throwIfAborted();
    try {
      return await session.store.read(buffer, offset);
    } catch (error) {
      this.#ended.signal.throwIfAborted();
      throw error;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.fail(new DOMException("The request is not needed any more", "AbortError"));
    this.#session?.picker.endWindow(this);
    this.deps.onDisposed(this);
    return Promise.resolve();
  }

  /** Pieces that go before others ahead of this reader, from the one with `offset` on. */
  #readAhead({ layout: { pieceLength } }: Session, offset: number): number {
    const { offset: start, length } = this.#range!;
    const end = Math.min(offset + READ_AHEAD_LENGTH, start + length);
    return Math.max(1, Math.ceil(end / pieceLength) - Math.floor(offset / pieceLength));
  }

  #begin(session: Session): void {
    const { contentLength } = session.layout;
    const range = this.request.range === null
      ? { offset: 0, length: contentLength }
      : resolveRange(this.request.range, contentLength);
    this.#session = session;
    this.#range = range;
    this.#remaining = range.length;
    [this.#fromLocal, this.#fromPeers, this.#fromSource] = [0, 0, 0];
    this.#parents.clear();
    const { first, count } = piecesOf(range, session.layout);
    for (let number = first; number < first + count; number++) {
      if (session.picker.isHeld(number)) this.#fromLocal += this.#overlap(number);
    }
    this.#remaining -= this.#fromLocal;
    if (this.request.inOrder === true) session.picker.setWindow(this, first, this.#readAhead(session, range.offset));
    session.want(first, count);
    this.#attached.resolve(session);
    this.#notify();
    this.#startVerification(session, range);
    if (this.#remaining === 0) this.#complete(session);
  }

  #verification: Promise<string | null> = Promise.resolve(null);

  #startVerification(session: Session, range: ByteRange): void {
    const whole = range.length === session.layout.contentLength;
    const want = this.request.digest ?? (whole ? digestInUrl(this.request.url) : null);
    if (want === null) this.#verification = Promise.resolve(null);
    else if (whole && session.store.info.verified === formatDigest(want)) {
      this.#verification = Promise.resolve(formatDigest(want));
    } else this.#verification = this.deps.verify(session, { want, range }, this.#ended.signal);
    this.#verification.catch((error) => session === this.#session && this.fail(error));
  }

  async #complete(session: Session): Promise<void> {
    let verified: string | null;
    try {
      verified = await this.#verification;
    } catch (error) {
      if (session === this.#session) this.fail(error);
      return;
    }
    const isCurrent = await this.deps.isCurrent(session);
    const range = this.#range;
    if (!isCurrent || this.#isSettled || session !== this.#session || range === null) return;
    this.#isSettled = true;
    this.#hasSucceeded = true;
    const parents = [...this.#parents].map(([hostId, bytes]): [string, number] => [this.deps.hostName(hostId), bytes]);
    this.#settled.resolve({
      path: session.store.path,
      stats: {
        task_id: this.taskId,
        content_length: session.layout.contentLength,
        offset: range.offset,
        length: range.length,
        from_local: this.#fromLocal,
        from_peers: this.#fromPeers,
        from_source: this.#fromSource,
        peers: this.#parents.size,
        verified,
        parents: parents.slice(0, 1000),
        ...(session.meta.last_modified === undefined ? {} : { last_modified: session.meta.last_modified }),
      },
    });
    this.#notify();
  }

  #overlap(number: number): number {
    if (this.#session === null || this.#range === null) return 0;
    const { pieceLength } = this.#session.layout;
    const start = Math.max(number * pieceLength, this.#range.offset);
    const end = Math.min((number + 1) * pieceLength, this.#range.offset + this.#range.length);
    return Math.max(0, end - start);
  }

  #notify(): void {
    if (this.#notifyQueued) return;
    this.#notifyQueued = true;
    queueMicrotask(() => {
      this.#notifyQueued = false;
      for (const listener of this.#listeners) listener();
    });
  }
}
