/**
 * Decides what an origin's answer means: which bytes its body holds, of which
 * version, or why it cannot be used. Pure. An answer that contradicts the
 * request or itself is refused: wrong bytes at the right place would be worse.
 */
import { type ErrorCode, LacewingError } from "../core/errors.ts";
import type { ByteRange } from "../core/piece.ts";
import { shownUrl } from "./http_request.ts";
import type { SourceVersion } from "./source.ts";

/** What a body holds, as `SourceBody` tells it. */
export interface AnswerFacts {
  readonly contentLength: number | null;
  readonly ranges: boolean;
  readonly version: SourceVersion;
  readonly offset: number;
  readonly length: number | null;
}

export interface Question {
  readonly url: URL;
  readonly range: ByteRange | null;
  readonly expect?: SourceVersion;
}

/** Longer validators are left out: wire messages bound them. */
const ETAG_LENGTH_MAX = 512;
const LAST_MODIFIED_LENGTH_MAX = 128;

/**
 * Reads the answer to a question; redirects were followed before.
 *
 * @throws {LacewingError} `source_not_found`, `source_refused`, `source_failed`, `range_not_satisfiable`, `content_changed`
 */
export function readAnswer(question: Question, status: number, headers: Headers): AnswerFacts {
  const facts = factsOf(question, status, headers);
  const change = question.expect === undefined ? null : difference(question.expect, facts.version);
  if (change === null) return facts;
  throw new LacewingError("content_changed", `Cannot go on with ${shownUrl(question.url)}: it has changed, ${change}`);
}

/** Whether the same request may get another answer soon. */
export function isPassing(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

/** How the origin marks what it sent: its strong ETag, and its Last-Modified where the length is known too. */
export function versionOf(headers: Headers, contentLength: number | null): SourceVersion {
  const etag = headers.get("etag") ?? "";
  const lastModified = headers.get("last-modified") ?? "";
  const hasEtag = etag !== "" && !/^w\//i.test(etag) && etag.length <= ETAG_LENGTH_MAX;
  const hasTime = contentLength !== null && lastModified.length <= LAST_MODIFIED_LENGTH_MAX &&
    Number.isFinite(Date.parse(lastModified));
  return { ...(hasEtag ? { etag } : {}), ...(hasTime ? { lastModified } : {}) };
}

function factsOf(question: Question, status: number, headers: Headers): AnswerFacts {
  if (status === 200) return wholeContent(question, headers);
  if (status === 206) return partOfContent(question, headers);
  if (status === 416) return noSuchPart(question, headers);
  const [code, meaning] = meaningOf(status);
  throw new LacewingError(code, `Cannot read ${shownUrl(question.url)}: ${question.url.host} answers ${meaning}`);
}

function meaningOf(status: number): [ErrorCode, string] {
  if (status === 404 || status === 410) return ["source_not_found", `${status}, it has no such content`];
  if (status === 401 || status === 407) return ["source_refused", `${status}, it wants other credentials`];
  if (status === 403) return ["source_refused", "403, it refuses access"];
  return ["source_failed", String(status)];
}

function wholeContent({ range }: Question, headers: Headers): AnswerFacts {
  const length = lengthOf(headers);
  const isPart = range !== null && (range.offset > 0 || length === null || length > range.length);
  // Asked for a part and given the whole: whatever Accept-Ranges says, this origin does not serve ranges.
  const ranges = !isPart && /\bbytes\b/i.test(headers.get("accept-ranges") ?? "");
  return { contentLength: length, ranges, version: versionOf(headers, length), offset: 0, length };
}

function partOfContent({ url, range }: Question, headers: Headers): AnswerFacts {
  const refuse = (reason: string) => new LacewingError("source_failed", `Cannot read ${shownUrl(url)}: ${reason}`);
  const text = headers.get("content-range") ?? "";
  if (range === null) throw refuse("it answers 206 to a request for the whole content");
  if (/^\s*multipart\/byteranges/i.test(headers.get("content-type") ?? "")) {
    throw refuse("it answers one range with multipart/byteranges");
  }
  const asked = `bytes ${range.offset}-${range.offset + range.length - 1}`;
  const match = /^bytes\s+(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(text.trim());
  if (match === null) throw refuse(`it answers ${asked} with Content-Range ${JSON.stringify(text.slice(0, 100))}`);
  const [first, last] = [Number(match[1]), Number(match[2])];
  const total = match[3] === "*" ? null : Number(match[3]);
  const length = last - first + 1;
  const isShort = last < range.offset + range.length - 1;
  const isRight = first === range.offset && length > 0 && length <= range.length &&
    (total === null || (last < total && (!isShort || last === total - 1)));
  const announced = lengthOf(headers);
  if (!isRight || (announced !== null && announced !== length)) {
    const size = announced === null ? "" : ` and ${announced} B`;
    throw refuse(`it answers ${asked} with Content-Range ${JSON.stringify(text)}${size}`);
  }
  return { contentLength: total, ranges: true, version: versionOf(headers, total), offset: first, length };
}

function noSuchPart({ url, range }: Question, headers: Headers): AnswerFacts {
  const total = /^bytes\s+\*\/(\d{1,15})$/i.exec(headers.get("content-range")?.trim() ?? "")?.[1];
  if (total !== undefined && Number(total) === 0 && range?.offset === 0) {
    return { contentLength: 0, ranges: true, version: versionOf(headers, 0), offset: 0, length: 0 };
  }
  const asked = range === null ? "all bytes" : `bytes ${range.offset}-${range.offset + range.length - 1}`;
  const has = total === undefined ? "the origin does not have them" : `the content has ${total} B`;
  throw new LacewingError("range_not_satisfiable", `Cannot read ${asked} of ${shownUrl(url)}: ${has}`);
}

function difference(expected: SourceVersion, found: SourceVersion): string | null {
  // An ETag alone decides where both sides have one: mirrors often differ in times.
  for (const key of ["etag", "lastModified"] as const) {
    if (expected[key] === undefined || (key === "etag" && found.etag === undefined && hasTimes(expected, found))) {
      continue;
    }
    if (expected[key] === found[key]) return null;
    return `${key === "etag" ? "ETag" : "Last-Modified"} was ${expected[key]} and is ${found[key] ?? "not given"}`;
  }
  return null;
}

function hasTimes(expected: SourceVersion, found: SourceVersion): boolean {
  return expected.lastModified !== undefined && found.lastModified !== undefined;
}

function lengthOf(headers: Headers): number | null {
  const text = headers.get("content-length") ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}
