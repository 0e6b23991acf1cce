/**
 * The rest of a content for one reader straight from its origin, where the
 * swarm could not go on. Where the whole content's digest is known it reads
 * from the beginning, passing over what was given already: bytes that came by
 * two ways are checked as one content.
 *
 * Keeps: the last byte is given only after the digest was found right; what
 * comes by several answers is of one version and one length. Progress stays: a
 * further `read` goes on where an answer broke off.
 */
import type { Hash } from "node:crypto";
import { type Digest, digestInUrl, formatDigest, startDigest } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import type { ByteRange } from "../core/piece.ts";
import type { Source, SourceBody, SourceVersion } from "../source/source.ts";

export interface DirectWish {
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  /** Of the whole content, or null; a digest in the URL counts too. */
  readonly digest: Digest | null;
  readonly contentLength: number;
  /** Bytes that the reader asked for. */
  readonly bytes: ByteRange;
  /** The version that was given so far, where the origin marks one. */
  readonly expect?: SourceVersion;
}

export class DirectReader {
  readonly #digest: Digest | null;
  readonly #hash: Hash | null;
  #expect: SourceVersion | undefined;
  #position: number;
  #headers: DirectWish["headers"];

  constructor(private readonly source: Source, private readonly wish: DirectWish, done: number) {
    const { bytes, contentLength } = wish;
    const isWhole = bytes.offset === 0 && bytes.length === contentLength;
    this.#digest = wish.digest ?? digestInUrl(wish.url);
    this.#hash = isWhole && this.#digest !== null ? startDigest(this.#digest.algorithm) : null;
    this.#position = this.#hash === null ? bytes.offset + done : 0;
    this.#expect = wish.expect;
    this.#headers = wish.headers;
  }

  /** Asks the origin with these from now on. */
  useHeaders(headers: DirectWish["headers"]): void {
    this.#headers = headers;
  }

  /** First byte that was not read yet. */
  get position(): number {
    return this.#position;
  }

  /**
   * The bytes of the content from `offset` on, as far as one answer of the origin goes; each chunk is valid until the next.
   *
   * @throws {LacewingError} as `Source.open`; `digest_mismatch` in place of the last bytes
   */
  async *read(offset: number, signal: AbortSignal): AsyncGenerator<Uint8Array, void, void> {
    const end = this.wish.bytes.offset + this.wish.bytes.length;
    if (this.#position >= end) return this.#check();
    await using body = await this.#open(end, signal);
    let at = body.offset;
    for (let chunk = await body.read(); chunk !== null; chunk = await body.read()) {
      // An origin without ranges begins at 0.
      const fresh = chunk.subarray(Math.max(0, this.#position - at), Math.max(0, end - at));
      at += chunk.length;
      if (fresh.length === 0) continue;
      const from = this.#position;
      this.#hash?.update(fresh);
      this.#position += fresh.length;
      if (this.#position === end) this.#check();
      const wanted = fresh.subarray(Math.max(0, offset - from));
      if (wanted.length > 0) yield wanted;
      if (this.#position === end) return;
    }
  }

  async #open(end: number, signal: AbortSignal): Promise<SourceBody> {
    const [{ url, contentLength }, headers] = [this.wish, this.#headers];
    const range = { offset: this.#position, length: end - this.#position };
    const expect = this.#expect === undefined ? {} : { expect: this.#expect };
    const body = await this.source.open({ url, headers, range, ...expect }, { signal });
    try {
      if (body.offset > this.#position) {
        throw new LacewingError("source_failed", `Cannot go on: the origin's answer begins at byte ${body.offset}`);
      }
      if (body.contentLength !== null && body.contentLength !== contentLength) {
        const text = `Cannot go on: the content has ${body.contentLength} B now, it had ${contentLength} B`;
        throw new LacewingError("content_changed", text);
      }
    } catch (error) {
      await body[Symbol.asyncDispose]();
      throw error;
    }
    // What its digest names cannot change; anything else shall be the version of this answer from now on.
    if (this.#digest === null && Object.keys(body.version).length > 0) this.#expect = body.version;
    return body;
  }

  #check(): void {
    const digest = this.#digest;
    if (this.#hash === null || digest === null) return;
    const found = this.#hash.digest("hex");
    if (found === digest.hex) return;
    throw new LacewingError(
      "digest_mismatch",
      `Cannot pass on the content: digest is ${digest.algorithm}:${found}, expected ${formatDigest(digest)}`,
    );
  }
}
