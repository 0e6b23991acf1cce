/** An origin in memory for unit tests of the engine: no sockets, faults on demand. */
import { LacewingError } from "../../peer/core/errors.ts";
import type { Source, SourceBody, SourceRequest, SourceVersion } from "../../peer/source/source.ts";

const CHUNK_LENGTH = 64 * 1024;

export class FakeSource implements Source {
  bytes: Uint8Array;
  ranges = true;
  version: SourceVersion = { etag: '"1"' };
  /** No length is announced. */
  chunked = false;
  /** Errors of the next opens, first first. */
  failures: LacewingError[] = [];
  /** Ends the next bodies with an error after so many bytes. */
  cutAfter: number[] = [];
  /** Bytes handed out. */
  sentBytes = 0;
  readonly requests: SourceRequest[] = [];

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  async open(request: SourceRequest, { signal }: { signal: AbortSignal }): Promise<SourceBody> {
    await Promise.resolve();
    signal.throwIfAborted();
    this.requests.push(request);
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
    const { expect, range } = request;
    if (expect !== undefined && expect.etag !== this.version.etag) {
      throw new LacewingError("content_changed", "Cannot read the origin: it has another version");
    }
    const ranged = this.ranges && !this.chunked && range !== null && this.bytes.length > 0;
    const offset = ranged ? range.offset : 0;
    const end = ranged ? Math.min(range.offset + range.length, this.bytes.length) : this.bytes.length;
    const cut = this.cutAfter.shift() ?? Infinity;
    let at = offset;
    return {
      contentLength: this.chunked ? null : this.bytes.length,
      ranges: this.ranges && !this.chunked,
      version: this.version,
      offset,
      length: this.chunked ? null : end - offset,
      read: async () => {
        await Promise.resolve();
        signal.throwIfAborted();
        if (at - offset >= cut) throw new LacewingError("network", "Cannot read the origin: the connection broke");
        if (at >= end) return null;
        const chunk = this.bytes.slice(at, Math.min(at + CHUNK_LENGTH, end, offset + cut));
        at += chunk.length;
        this.sentBytes += chunk.length;
        return chunk;
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }
}
