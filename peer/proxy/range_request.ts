/**
 * Decides which bytes of a content a request asks for (RFC 9110 section 14)
 * and what the answer's head says of them. Pure. What is not one plain byte
 * range (several, another unit, nonsense, an If-Range that does not hold) is
 * no range: the whole content is the right answer then.
 */
import { LacewingError } from "../core/errors.ts";
import type { ByteRange } from "../core/piece.ts";
import { parseRange, type RangeSpec, resolveRange } from "../core/range.ts";
import { type Field, valueOf, valuesOf } from "./http_message.ts";

/**
 * The range asked for, or null for all.
 *
 * @param etag the content's entity tag, quotes included, or null where it has none
 */
export function askedRange(fields: readonly Field[], etag: string | null): RangeSpec | null {
  const [value, ...more] = valuesOf(fields, "range");
  const match = /^bytes=[ \t]*(\d*-\d*)[ \t]*$/i.exec(value ?? "");
  if (match === null || more.length > 0) return null;
  const condition = valueOf(fields, "if-range");
  // Only a strong comparison counts; a date cannot hold, because contents here have none.
  if (condition !== null && (etag === null || condition !== etag)) return null;
  try {
    return parseRange(match[1]!);
  } catch (error) {
    if (error instanceof LacewingError) return null;
    throw error;
  }
}

export type RangeAnswer =
  | { readonly status: 200 | 206; readonly bytes: ByteRange; readonly fields: readonly Field[] }
  | { readonly status: 416; readonly bytes: null; readonly fields: readonly Field[] };

/** Status and fields of the answer to a range of a content. */
export function rangeAnswer(spec: RangeSpec | null, contentLength: number): RangeAnswer {
  if (spec === null) {
    const bytes = { offset: 0, length: contentLength };
    return { status: 200, bytes, fields: [["Content-Length", String(contentLength)]] };
  }
  try {
    const bytes = resolveRange(spec, contentLength);
    const last = bytes.offset + bytes.length - 1;
    return {
      status: 206,
      bytes,
      fields: [
        ["Content-Length", String(bytes.length)],
        ["Content-Range", `bytes ${bytes.offset}-${last}/${contentLength}`],
      ],
    };
  } catch (error) {
    if (!(error instanceof LacewingError)) throw error;
    return {
      status: 416,
      bytes: null,
      fields: [["Content-Length", "0"], ["Content-Range", `bytes */${contentLength}`]],
    };
  }
}
