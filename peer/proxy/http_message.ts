/**
 * Heads of HTTP/1.1 messages (RFC 9112) as the proxy reads and writes them:
 * fields keep their order, their spelling and their repetitions. Pure.
 *
 * Keeps: whatever two implementations could read differently (two lengths,
 * folded lines, bare line feeds, odd transfer codings) is refused, so that
 * nobody smuggles a second request behind a first.
 */
import { LacewingError } from "../core/errors.ts";

export type Field = readonly [name: string, value: string];

export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** Minor version of HTTP/1. */
  readonly minor: number;
  readonly fields: readonly Field[];
}

export interface AnswerHead {
  readonly status: number;
  readonly reason: string;
  readonly minor: number;
  readonly fields: readonly Field[];
}

/** How long a body is. */
export type Framing =
  | { readonly kind: "length"; readonly length: number }
  | { readonly kind: "chunked" }
  /** Until the connection ends: answers only. */
  | { readonly kind: "close" };

export const NO_BODY: Framing = { kind: "length", length: 0 };
const FIELDS_MAX = 200;
const TARGET_LENGTH_MAX = 16 * 1024;
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const REQUEST_LINE = new RegExp(`^(${TOKEN}) ([!-~]+) HTTP/1\\.([01])$`);
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?$/;
const FIELD_NAME = new RegExp(`^${TOKEN}$`);
// deno-lint-ignore no-control-regex
const FORBIDDEN = /[\0-\x08\x0a-\x1f\x7f]/;
/** RFC 9110 section 7.6.1, and what older software treats alike. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Reads a request's head.
 *
 * @param text the head without the empty line at its end, one character a byte
 * @throws {LacewingError} `protocol`
 */
export function parseRequestHead(text: string): RequestHead {
  const [first = "", ...lines] = text.split("\r\n");
  const match = REQUEST_LINE.exec(first);
  if (match === null) throw refuse("want METHOD TARGET HTTP/1.1");
  const [, method = "", target = "", minor] = match;
  if (target.length > TARGET_LENGTH_MAX) throw refuse(`its target is longer than ${TARGET_LENGTH_MAX} characters`);
  const fields = parseFields(lines);
  const hosts = valuesOf(fields, "host");
  if (hosts.length > 1 || (hosts.length === 0 && minor === "1")) throw refuse(`it has ${hosts.length} Host fields`);
  return { method, target, minor: Number(minor), fields };
}

/** Reads an answer's head. @throws {LacewingError} `source_failed` */
export function parseAnswerHead(text: string): AnswerHead {
  const [first = "", ...lines] = text.split("\r\n");
  const match = STATUS_LINE.exec(first);
  if (match === null) throw new LacewingError("source_failed", "Cannot read the origin's answer: want HTTP/1.1 STATUS");
  const [, minor, status, reason = ""] = match;
  try {
    return { status: Number(status), reason, minor: Number(minor), fields: parseFields(lines) };
  } catch (cause) {
    throw ofOrigin(cause);
  }
}

/** What an origin words badly is its own failure, `source_failed`: `protocol` is for what clients say. */
export function ofOrigin(cause: unknown): unknown {
  if (!(cause instanceof LacewingError) || cause.code !== "protocol") return cause;
  return new LacewingError("source_failed", `Cannot read the origin's answer: ${cause.message}`, { cause });
}

/** How long a request's body is. @throws {LacewingError} `protocol` where that can be read in two ways. */
export function requestFraming({ fields, minor }: RequestHead): Framing {
  const codings = valuesOf(fields, "transfer-encoding");
  const lengths = valuesOf(fields, "content-length");
  if (codings.length > 0) {
    if (lengths.length > 0) throw refuse("it has both Transfer-Encoding and Content-Length");
    if (minor === 0) throw refuse("HTTP/1.0 has no Transfer-Encoding");
    if (codings.length > 1 || codings[0]!.toLowerCase() !== "chunked") throw refuse("want Transfer-Encoding: chunked");
    return { kind: "chunked" };
  }
  if (lengths.length > 1) throw refuse("it has Content-Length twice");
  return { kind: "length", length: lengths[0] === undefined ? 0 : plainLength(lengths[0]) };
}

/** How long an answer's body is. @throws {LacewingError} `source_failed` where that can be read in two ways. */
export function answerFraming(head: AnswerHead, method: string): Framing {
  try {
    return framingOf(head, method);
  } catch (cause) {
    throw ofOrigin(cause);
  }
}

function framingOf({ status, fields, minor }: AnswerHead, method: string): Framing {
  const codings = valuesOf(fields, "transfer-encoding");
  const lengths = valuesOf(fields, "content-length");
  if (method === "HEAD" || status < 200 || status === 204 || status === 304) return NO_BODY;
  if (codings.length > 0) {
    const isPlain = codings.length === 1 && codings[0]!.toLowerCase() === "chunked";
    if (lengths.length > 0 || !isPlain || minor === 0) throw refuse("its length can be read in two ways");
    return { kind: "chunked" };
  }
  if (lengths.length === 0) return { kind: "close" };
  if (lengths.some((length) => length !== lengths[0])) throw refuse("it has two different lengths");
  return { kind: "length", length: plainLength(lengths[0]!) };
}

/** Whether the sender goes on with the connection after this message. */
export function keepsAlive({ fields, minor }: { fields: readonly Field[]; minor: number }): boolean {
  const options = connectionOptions(fields);
  return minor === 1 ? !options.includes("close") : options.includes("keep-alive");
}

/** All values of a field, in their order. @param name lower case */
export function valuesOf(fields: readonly Field[], name: string): string[] {
  return fields.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
}

/** The one value of a field (several are joined as RFC 9110 section 5.3 says), or null. @param name lower case */
export function valueOf(fields: readonly Field[], name: string): string | null {
  const values = valuesOf(fields, name);
  return values.length === 0 ? null : values.join(", ");
}

/** The fields that go on to the next host: without those of this connection, and without the names given. */
export function endToEnd(fields: readonly Field[], dropped: readonly string[] = []): Field[] {
  const own = new Set([...connectionOptions(fields), ...dropped]);
  return fields.filter(([name]) => !HOP_BY_HOP.has(name.toLowerCase()) && !own.has(name.toLowerCase()));
}

/** A head as bytes, the empty line included. */
export function formatHead(first: string, fields: readonly Field[]): Uint8Array<ArrayBuffer> {
  const text = `${first}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  // One byte a character: what came as Latin-1 goes on as it came.
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function parseFields(lines: readonly string[]): Field[] {
  if (lines.length > FIELDS_MAX) throw refuse(`it has more than ${FIELDS_MAX} fields`);
  return lines.map((line) => {
    if (line.startsWith(" ") || line.startsWith("\t")) throw refuse("it has a folded line");
    if (FORBIDDEN.test(line)) throw refuse("it has a control character");
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    if (!FIELD_NAME.test(name)) throw refuse("a line is no NAME: VALUE");
    return [name, trimBlanks(line.slice(colon + 1))];
  });
}

function trimBlanks(text: string): string {
  return text.replace(/^[ \t]+/, "").replace(/[ \t]+$/, "");
}

function connectionOptions(fields: readonly Field[]): string[] {
  return [...valuesOf(fields, "connection"), ...valuesOf(fields, "proxy-connection")]
    .flatMap((value) => value.toLowerCase().split(",").map(trimBlanks)).filter((option) => option !== "");
}

function plainLength(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw refuse("its Content-Length is no plain number");
  return Number(text);
}

function refuse(reason: string): LacewingError {
  return new LacewingError("protocol", `Cannot read the message: ${reason}`);
}
