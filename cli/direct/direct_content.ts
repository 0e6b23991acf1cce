/**
 * The part of a content that the user asked for, read from its origin without
 * a daemon: cuts out a range even where the origin ignores ranges, keeps to a
 * rate, and goes on after a broken connection as long as the origin still has
 * the same version.
 */
import type { Clock } from "../../peer/core/clock.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import type { ByteRange } from "../../peer/core/piece.ts";
import { formatRange, type RangeSpec, resolveRange } from "../../peer/core/range.ts";
import { chunkLengthAt, RateLimiter } from "../../peer/core/rate_limit.ts";
import type { Source, SourceBody, SourceVersion } from "../../peer/source/source.ts";

/** What is wanted of which URL. */
export interface DirectRequest {
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  /** Null is the whole content. */
  readonly range: RangeSpec | null;
  /** 0 is no limit. */
  readonly rateLimitBytesPerSecond: number;
}

/** What an earlier run has of the content. */
export interface ResumeFrom {
  readonly version: SourceVersion;
  readonly contentLength: number;
  readonly part: ByteRange;
  /** Bytes from the beginning of the part. */
  readonly have: number;
}

/** Connections that may break in a row without a byte in between. */
const FAILURES_MAX = 3;
/** Bytes of a range from the end that are held in memory, where the origin does not tell its length. */
const TAIL_LENGTH_MAX = 256 * 1024 * 1024;

/** What a content is read with. */
interface DirectDeps {
  readonly source: Source;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Default: one at the request's rate. */
  readonly limiter?: RateLimiter;
}

export class DirectContent implements AsyncDisposable {
  readonly #limiter: RateLimiter;
  #body: SourceBody;
  /** Where in the content the next byte of the body stands. */
  #bodyAt: number;
  /** Received, and not given yet: what is received is cut so that the rate is even. */
  #rest: Uint8Array = new Uint8Array(0);
  #given: number;
  #failures = 0;

  private constructor(
    private readonly deps: DirectDeps,
    private readonly request: DirectRequest,
    /** First byte wanted, and how many; null: to the end, wherever it is. */
    private readonly part: { offset: number; length: number | null },
    body: SourceBody,
    /** Bytes that an earlier run has: they are not given again. */
    readonly resumed: number = 0,
  ) {
    this.#given = resumed;
    this.#limiter = deps.limiter ?? new RateLimiter(deps.clock, request.rateLimitBytesPerSecond);
    this.#body = body;
    this.#bodyAt = body.offset;
  }

  /** @throws {LacewingError} as `Source.open`, and `range_not_satisfiable`. */
  static async open(
    deps: DirectDeps,
    request: DirectRequest,
    from: ResumeFrom | null = null,
  ): Promise<DirectContent> {
    const resumed = from === null ? null : await DirectContent.#resume(deps, request, from);
    if (resumed !== null) return resumed;
    const { range } = request;
    const open = (wanted: ByteRange | null, expect?: SourceVersion) =>
      deps.source.open({ url: request.url, headers: request.headers, range: wanted, expect }, { signal: deps.signal });
    const body = await open(range === null ? null : firstRange(range));
    try {
      if (range === null) return new DirectContent(deps, request, { offset: 0, length: body.contentLength }, body);
      if (body.contentLength !== null) {
        const part = resolveRange(range, body.contentLength);
        if (range.kind !== "suffix" || !body.ranges) return new DirectContent(deps, request, part, body);
      } else if (range.kind === "suffix") {
        const { part, memory } = await readTail(deps, { request, body, length: range.length });
        // What is in memory has come at the rate already.
        return new DirectContent(deps, { ...request, rateLimitBytesPerSecond: 0 }, part, memory);
      } else {
        const length = range.kind === "closed" ? range.last - range.first + 1 : null;
        return new DirectContent(deps, request, { offset: range.first, length }, body);
      }
    } catch (error) {
      await body[Symbol.asyncDispose]();
      throw error;
    }
    // Only one byte was asked for, to learn the length.
    await body[Symbol.asyncDispose]();
    const part = resolveRange(range, body.contentLength);
    return new DirectContent(deps, request, part, await open(part, body.version));
  }

  /** Goes on where an earlier run stopped; null if the origin has another version now, or cannot tell. */
  static async #resume(
    deps: { source: Source; clock: Clock; signal: AbortSignal },
    request: DirectRequest,
    { version, contentLength, part, have }: ResumeFrom,
  ): Promise<DirectContent | null> {
    // The last byte is asked for again: an answer is what tells that the version is still there.
    const given = Math.min(have, part.length - 1);
    if (given <= 0 || !isPartOf(request.range, contentLength, part)) return null;
    const range = { offset: part.offset + given, length: part.length - given };
    let body: SourceBody;
    try {
      body = await deps.source.open({ ...request, range, expect: version }, { signal: deps.signal });
    } catch (error) {
      const isOther = error instanceof LacewingError &&
        ["content_changed", "range_not_satisfiable"].includes(error.code);
      if (isOther) return null;
      throw error;
    }
    if (body.contentLength === contentLength) return new DirectContent(deps, request, part, body, given);
    await body[Symbol.asyncDispose]();
    return null;
  }

  /** What a later run must know to go on; null where the origin gives too little to recognise the content by. */
  get facts(): Omit<ResumeFrom, "have"> | null {
    const { contentLength, version } = this.#body;
    const { offset, length } = this.part;
    if (contentLength === null || length === null || Object.keys(version).length === 0) return null;
    return { version, contentLength, part: { offset, length } };
  }

  /** Bytes in all, or null while the origin does not say. */
  get total(): number | null {
    return this.part.length;
  }

  /** Last-Modified of the version that is read, or null. */
  get lastModified(): string | null {
    return this.#body.version.lastModified ?? null;
  }

  /**
   * The next bytes, or null at the end; valid until the next call.
   *
   * @throws {LacewingError} as `SourceBody.read`, `content_changed`, `range_not_satisfiable`
   */
  async read(): Promise<Uint8Array | null> {
    while (true) {
      if (this.#rest.length > 0) {
        const chunk = this.#rest.subarray(0, chunkLengthAt(this.#limiter.bytesPerSecond));
        await this.#limiter.take(chunk.length, this.deps.signal);
        this.#rest = this.#rest.subarray(chunk.length);
        this.#given += chunk.length;
        return chunk;
      }
      if (this.part.length !== null && this.#given >= this.part.length) return null;
      const bytes = await this.#readBody();
      if (bytes === null) return this.#atEnd();
      this.#rest = this.#cut(bytes);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#body[Symbol.asyncDispose]();
  }

  async #readBody(): Promise<Uint8Array | null> {
    while (true) {
      try {
        const bytes = await this.#body.read();
        if (bytes !== null) this.#failures = 0;
        return bytes;
      } catch (error) {
        const isBroken = error instanceof LacewingError && ["network", "source_failed", "timeout"].includes(error.code);
        this.#failures += 1;
        if (!isBroken || this.deps.signal.aborted || this.#failures >= FAILURES_MAX) throw error;
        await this.#reopen();
      }
    }
  }

  /** Goes on where the connection broke, with the same version of the content. */
  async #reopen(): Promise<void> {
    const before = this.#body;
    await before[Symbol.asyncDispose]();
    const offset = this.part.offset + this.#given;
    const rest = this.part.length === null ? Number.MAX_SAFE_INTEGER - 1 - offset : this.part.length - this.#given;
    const range = before.ranges ? { offset, length: rest } : null;
    const body = await this.deps.source.open(
      { url: this.request.url, headers: this.request.headers, range, expect: before.version },
      { signal: this.deps.signal },
    );
    this.#body = body;
    this.#bodyAt = body.offset;
    if (body.contentLength === before.contentLength) return;
    throw new LacewingError(
      "content_changed",
      "Cannot go on: the content at the origin has another length than before",
    );
  }

  /** What of these bytes belongs to the part. */
  #cut(bytes: Uint8Array): Uint8Array {
    const from = Math.max(0, this.part.offset + this.#given - this.#bodyAt);
    const left = this.part.length === null ? Infinity : this.part.length - this.#given;
    this.#bodyAt += bytes.length;
    return bytes.subarray(from, Math.min(bytes.length, from + left));
  }

  #atEnd(): null {
    const { range } = this.request;
    if (range !== null && this.#given === 0) {
      throw new LacewingError(
        "range_not_satisfiable",
        `Cannot give range ${formatRange(range)}: the content has ${this.#bodyAt} B`,
      );
    }
    if (this.#body.contentLength !== null && this.part.length !== null && this.#given < this.part.length) {
      throw new LacewingError("network", `Cannot read all: the origin sent ${this.#given} of ${this.part.length} B`);
    }
    return null;
  }
}

/** Whether the range asked for is this very part of a content of that length. */
function isPartOf(range: RangeSpec | null, contentLength: number, part: ByteRange): boolean {
  try {
    const own = range === null ? { offset: 0, length: contentLength } : resolveRange(range, contentLength);
    return own.offset === part.offset && own.length === part.length;
  } catch {
    return false;
  }
}

/** What to ask for while the content's length is not known; the end of a range from the end is not, so one byte is asked for. */
function firstRange(range: RangeSpec): ByteRange {
  if (range.kind === "suffix") return { offset: 0, length: 1 };
  const last = range.kind === "closed" ? range.last : Number.MAX_SAFE_INTEGER - 1;
  return { offset: range.first, length: last - range.first + 1 };
}

/** A range from the end of a content whose length only its end tells: the last bytes are kept on the way. */
async function readTail(
  deps: { clock: Clock; signal: AbortSignal },
  { request, body, length }: { request: DirectRequest; body: SourceBody; length: number },
): Promise<{ part: ByteRange; memory: SourceBody }> {
  if (length > TAIL_LENGTH_MAX) {
    throw new LacewingError(
      "range_not_satisfiable",
      `Cannot give range -${length}: the origin does not tell the content's length; ask for at most -${TAIL_LENGTH_MAX}`,
    );
  }
  const limiter = new RateLimiter(deps.clock, request.rateLimitBytesPerSecond);
  const chunks: Uint8Array[] = [];
  let [held, total] = [0, 0];
  for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) {
    await limiter.take(bytes.length, deps.signal);
    chunks.push(bytes.slice());
    held += bytes.length;
    total += bytes.length;
    while (chunks.length > 1 && held - chunks[0]!.length >= length) held -= chunks.shift()!.length;
  }
  const part = resolveRange({ kind: "suffix", length }, total);
  const offset = total - held;
  const memory: SourceBody = {
    contentLength: total,
    ranges: false,
    version: body.version,
    offset,
    length: held,
    read: () => Promise.resolve(chunks.shift() ?? null),
    [Symbol.asyncDispose]: () => body[Symbol.asyncDispose](),
  };
  return { part, memory };
}
