/**
 * Byte ranges as users and HTTP write them: `0-9`, `150-`, `-50`. Reading is
 * apart from resolving, because the content's length is known only later.
 */
import { LacewingError } from "./errors.ts";
import type { ByteRange } from "./piece.ts";

/** A range before the length is known; `last` is inclusive as in HTTP. */
export type RangeSpec =
  | { readonly kind: "closed"; readonly first: number; readonly last: number }
  | { readonly kind: "open"; readonly first: number }
  | { readonly kind: "suffix"; readonly length: number };

/**
 * Reads one range such as `0-9`, `150-` or `-50`.
 *
 * @throws {LacewingError} `usage` if it is no single range or runs backwards.
 */
export function parseRange(text: string): RangeSpec {
  const match = /^(\d{0,15})-(\d{0,15})$/.exec(text);
  const [, first = "", last = ""] = match ?? [];
  if (match === null || (first === "" && last === "")) {
    throw new LacewingError(
      "usage",
      `Cannot read range ${JSON.stringify(text)}: want FIRST-LAST, FIRST- or -LENGTH in bytes`,
    );
  }
  if (first === "") return { kind: "suffix", length: Number(last) };
  if (last === "") return { kind: "open", first: Number(first) };
  if (Number(last) < Number(first)) {
    throw new LacewingError("usage", `Cannot read range ${JSON.stringify(text)}: it ends before it begins`);
  }
  return { kind: "closed", first: Number(first), last: Number(last) };
}

/**
 * Cuts a range to a content; what lies beyond the end is left out.
 *
 * @returns at least 1 byte
 * @throws {LacewingError} `range_not_satisfiable` if not one byte of it exists.
 */
export function resolveRange(spec: RangeSpec, contentLength: number): ByteRange {
  const range = cut(spec, contentLength);
  if (range.length <= 0) {
    throw new LacewingError(
      "range_not_satisfiable",
      `Cannot give range ${formatRange(spec)}: the content has ${contentLength} B`,
    );
  }
  return range;
}

/** The text form that `parseRange` reads. */
export function formatRange(spec: RangeSpec): string {
  if (spec.kind === "closed") return `${spec.first}-${spec.last}`;
  return spec.kind === "open" ? `${spec.first}-` : `-${spec.length}`;
}

function cut(spec: RangeSpec, contentLength: number): ByteRange {
  if (spec.kind === "suffix") {
    const length = Math.min(spec.length, contentLength);
    return { offset: contentLength - length, length };
  }
  const last = spec.kind === "open" ? contentLength - 1 : Math.min(spec.last, contentLength - 1);
  return { offset: spec.first, length: last - spec.first + 1 };
}
