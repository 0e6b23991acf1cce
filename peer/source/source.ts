/**
 * The port of an origin: reads a byte range of a URL and says what version of
 * the content it read. One per scheme; `http` and `https` share one.
 */
import type { ByteRange } from "../core/piece.ts";
import type { Listing, ListRequest } from "./listing/listing.ts";

/** How a request reaches the origin. */
export interface SourceRequest {
  readonly url: string;
  /** Sent to the origin of `url` only, never across to another one on redirect. */
  readonly headers: readonly (readonly [string, string])[];
  /** Bytes wanted; null asks for all from the start. */
  readonly range: ByteRange | null;
  /**
   * The version that must be read: a strong ETag or a modification time.
   * @see SourceBody
   */
  readonly expect?: SourceVersion;
}

/** How the origin marks a version of its content. Weak ETags are left out. */
export interface SourceVersion {
  readonly etag?: string;
  readonly lastModified?: string;
}

/** An answer of the origin whose body is being read. */
export interface SourceBody extends AsyncDisposable {
  /** Bytes of the whole content, or null when the origin does not say. */
  readonly contentLength: number | null;
  /** Whether the origin honoured the range (or is known to: 206, or `Accept-Ranges: bytes`). */
  readonly ranges: boolean;
  readonly version: SourceVersion;
  /** First byte of the content that the body holds: the range's offset, or 0 where the origin ignored it. */
  readonly offset: number;
  /** Bytes that the body holds, or null when unknown. */
  readonly length: number | null;
  /**
   * Next bytes of the body, or null at its end. A connection that breaks or a
   * body that is shorter than announced is an error, never an early end.
   * The returned view is valid until the next call.
   * @throws {LacewingError} `network`, `timeout`, `source_failed`
   */
  read(): Promise<Uint8Array | null>;
}

/** Reads one origin. */
export interface Source {
  /**
   * Opens a range. Retries what may pass (connection errors, 5xx, 429 with
   * Retry-After) with backoff before the first byte; redirects are followed.
   *
   * @throws {LacewingError} `source_not_found`, `source_refused`, `source_failed`, `network`, `tls`,
   * `timeout`, `policy`, `range_not_satisfiable` (message carries the length), `content_changed` when the
   * origin has another version than `expect`, and `usage` for a scheme or header that cannot be sent.
   */
  open(request: SourceRequest, options: { signal: AbortSignal }): Promise<SourceBody>;

  /**
   * What one folder holds. Left out by a source that cannot tell.
   *
   * @throws {LacewingError} as `open`; `usage` when the URL is no folder, `policy` when it redirects out of `start`
   */
  list?(request: ListRequest, options: { signal: AbortSignal }): Promise<Listing>;
}
