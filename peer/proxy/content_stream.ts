/**
 * The bytes of one content for one reader, from the swarm while it works and
 * from the origin when it does not: trouble with peers, scheduler, disk or an
 * expired signed URL is healed while the reader goes on, because runtimes such
 * as podman do not come back after a cut. Once a byte was given, only wrong or
 * changed content, or an origin that stays away, ends the stream.
 *
 * Keeps: what is given of a whole content was found right before its last
 * byte, by whichever ways it came. Holds one buffer; the disk holds the rest.
 */
import { type Clock, systemClock } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { ByteRange } from "../core/piece.ts";
import type { Source, SourceVersion } from "../source/source.ts";
import type { StreamingRun, StreamingStarter, TaskRequest } from "../task/task.ts";
import { Watchdog } from "../transfer/watchdog.ts";
import { DirectReader } from "./direct_reader.ts";
import { type RangeAnswer, rangeAnswer } from "./range_request.ts";

export interface ContentStreamDeps {
  readonly tasks: StreamingStarter;
  readonly source: Source;
  readonly clock: Clock;
  readonly log: Logger;
  /** Headers with which everyone may read what these no longer open, or null. */
  readonly strangersHeaders: (
    read: Pick<TaskRequest, "url" | "headers">,
    signal: AbortSignal,
  ) => Promise<TaskRequest["headers"] | null>;
}

export type ContentSource = "local" | "peers" | "origin";

/**
 * Tries in a row without a byte, the first ones through the swarm; from then on the reader stays with the origin. Before the
 * first byte few: a runtime that has another place to go to shall not wait. Each asks the origin up to four times.
 */
const TRIES = { before: { max: 2, swarm: 1 }, after: { max: 5, swarm: 2 } };
const PAUSE_MS = 200;
/** A swarm that gives nothing for so long is left; above the time that a scheduler is waited for (30 s). */
const STALL_MS = 90_000;

export class ContentStream implements AsyncDisposable {
  #run: StreamingRun | null = null;
  #answer: RangeAnswer | null = null;
  #contentLength = 0;
  #version: SourceVersion | undefined;
  #isDirect = false;
  #direct: DirectReader | null = null;
  #tries = 0;
  /** Whether credentials ran out, and were looked for, since the last byte. */
  #isRenewed = false;
  #request: TaskRequest;
  #taskId: string | null = null;
  readonly #watchdog: Watchdog;
  #onStall: (error: LacewingError) => void = () => {};

  /** @param request its range is the one that the reader asked for */
  constructor(
    private readonly deps: ContentStreamDeps,
    request: TaskRequest,
    private readonly signal: AbortSignal,
  ) {
    this.#request = request;
    const text = `Cannot go on: the swarm gave nothing for ${STALL_MS / 1000} s`;
    this.#watchdog = new Watchdog(systemClock, () => this.#onStall(new LacewingError("timeout", text)));
  }

  /** Null where the swarm was not reached at all. */
  get taskId(): string | null {
    return this.#taskId;
  }

  /** Where the bytes come from, as far as can be said now. */
  get source(): ContentSource {
    const progress = this.#run?.progress();
    if (this.#isDirect || progress === undefined || progress.fromSource > 0) return "origin";
    return progress.fromPeers > 0 ? "peers" : "local";
  }

  /**
   * What the answer says of the bytes; waits until the content's length is known.
   *
   * @throws {LacewingError} what the origin said, or the last trouble when all tries are used up
   */
  async open(): Promise<RangeAnswer> {
    for (;;) {
      try {
        this.#contentLength = await this.#learnLength();
        return this.#answer = rangeAnswer(this.#request.range, this.#contentLength);
      } catch (error) {
        await this.#next(error, { isBegun: false });
      }
    }
  }

  /** The bytes of the answer in order; each chunk is valid until the next one is asked for. */
  async *read(): AsyncGenerator<Uint8Array, void, void> {
    const bytes = this.#answer?.bytes ?? null;
    if (bytes === null) return;
    let done = 0;
    // An empty content is read, too: the run ends when its digest was found right.
    do {
      const before = this.#direct?.position ?? 0;
      try {
        for await (const chunk of this.#isDirect ? this.#readDirect(bytes, done) : this.#readRun(done)) {
          done += chunk.length;
          [this.#tries, this.#isRenewed] = [0, false];
          yield chunk;
        }
        if (done >= bytes.length) return;
        throw new LacewingError("network", `Cannot go on: ${bytes.length - done} B are missing`);
      } catch (error) {
        // Wrong bytes that nobody was given are no progress, and not to be gone on from.
        if (error instanceof LacewingError && error.code === "digest_mismatch") this.#direct = null;
        else if ((this.#direct?.position ?? 0) > before) [this.#tries, this.#isRenewed] = [0, false];
        await this.#next(error, { isBegun: done > 0 });
      }
    } while (done < bytes.length);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#watchdog[Symbol.dispose]();
    await this.#leaveRun();
  }

  async #learnLength(): Promise<number> {
    if (!this.#isDirect) {
      const { contentLength, version } = await this.#inTime(this.#start().opened);
      this.#version = version;
      return contentLength;
    }
    const { url, headers } = this.#request;
    await using body = await this.deps.source.open({ url, headers, range: { offset: 0, length: 1 } }, {
      signal: this.signal,
    });
    if (body.contentLength === null) {
      throw new LacewingError("source_failed", "Cannot tell the content's length: the origin does not say");
    }
    return body.contentLength;
  }

  #start(): StreamingRun {
    if (this.#run !== null) return this.#run;
    this.#run = this.deps.tasks.start(this.#request, { signal: this.signal });
    this.#taskId = this.#run.taskId;
    return this.#run;
  }

  /** After a failed try the run begins at its range again: what was given already is passed over. */
  async *#readRun(from: number): AsyncGenerator<Uint8Array, void, void> {
    const chunks = this.#start().read({ from, reuse: true })[Symbol.asyncIterator]();
    try {
      for (;;) {
        const { value, done } = await this.#inTime(chunks.next());
        if (done) return;
        yield value;
      }
    } finally {
      // Not awaited: a run that waits for a piece ends when it is disposed of.
      chunks.return?.().catch(() => {});
    }
  }

  #readDirect(bytes: ByteRange, done: number): AsyncGenerator<Uint8Array, void, void> {
    this.#direct ??= new DirectReader(this.deps.source, {
      ...this.#request,
      contentLength: this.#contentLength,
      bytes,
      ...(this.#version === undefined ? {} : { expect: this.#version }),
    }, done);
    return this.#direct.read(bytes.offset + done, this.signal);
  }

  /** Goes over to the next way after a failure; throws what no other way would change. */
  async #next(error: unknown, { isBegun }: { isBegun: boolean }): Promise<void> {
    this.signal.throwIfAborted();
    await this.#leaveRun();
    if (!(error instanceof LacewingError) || isFinal(error, isBegun)) throw error;
    if (isBegun && error.code === "source_refused") await this.#renew();
    this.#tries += 1;
    const { max, swarm } = TRIES[isBegun ? "after" : "before"];
    if (this.#tries >= max) throw this.#isRenewed ? ranOut(error) : error;
    this.#isDirect ||= this.#tries >= swarm;
    this.deps.log.info("a reader goes on by another way", { error, tries: this.#tries, direct: this.#isDirect });
    await this.deps.clock.sleep(PAUSE_MS * 2 ** (this.#tries - 1), this.signal);
  }

  /** The client's token may have run out, and it cannot be asked for another: goes on with what everyone gets. */
  async #renew(): Promise<void> {
    if (this.#isRenewed) return;
    this.#isRenewed = true;
    const headers = await this.deps.strangersHeaders(this.#request, this.signal);
    this.deps.log.info("the client's credentials ran out in mid-content", { has_others: headers !== null });
    if (headers === null) return;
    this.#request = { ...this.#request, headers };
    this.#direct?.useHeaders(headers);
  }

  async #leaveRun(): Promise<void> {
    const run = this.#run;
    this.#run = null;
    await run?.[Symbol.asyncDispose]();
  }

  async #inTime<T>(work: Promise<T>): Promise<T> {
    const stalled = Promise.withResolvers<never>();
    this.#onStall = stalled.reject;
    this.#watchdog.arm(STALL_MS);
    try {
      return await Promise.race([work, stalled.promise]);
    } finally {
      this.#watchdog.disarm();
    }
  }
}

function ranOut(cause: LacewingError): LacewingError {
  const text = `Cannot go on: the client's credentials ran out in mid-content, and no others open it: ${cause.message}`;
  return new LacewingError(cause.code, text, { cause });
}

/** Whether another way would come to the same end. */
function isFinal({ code }: LacewingError, isBegun: boolean): boolean {
  if (code === "usage" || code === "policy" || code === "tls" || code === "range_not_satisfiable") return true;
  if (code === "digest_mismatch" || code === "content_changed") return isBegun;
  // Before the first byte it is the origin's word to this client; later, a token or a signature that has run out.
  return !isBegun && (code === "source_refused" || code === "source_not_found");
}
