/**
 * Reads and writes the heads of HTTP/1.1 messages (RFC 9112), as much of them
 * as neighbours use among themselves: no bodies in requests, no transfer
 * codings, no folded lines. Whatever is longer or odd is an error, so that
 * both ends always agree where a message ends.
 */
import { LacewingError } from "../core/errors.ts";
import type { LineReader } from "../core/wire/json_lines.ts";

/** Bytes of a head's first line, and of its fields; ours have about 250 in all. */
export const HEAD_LENGTH_MAX = 8 * 1024;
const HEADER_COUNT_MAX = 64;

/** Header values by lower-case name. */
export type HeadFields = ReadonlyMap<string, string>;

export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly fields: HeadFields;
  /** Whether the sender wants the connection to go on after the answer. */
  readonly keepAlive: boolean;
}

export interface ResponseHead {
  readonly status: number;
  readonly fields: HeadFields;
  readonly keepAlive: boolean;
}

/**
 * The next request's head, or undefined when the connection ended before it.
 *
 * @throws {LacewingError} `protocol`
 */
export async function readRequestHead(reader: LineReader): Promise<RequestHead | undefined> {
  const first = await reader.readLine();
  if (first === undefined) return undefined;
  const match = /^([A-Z]{1,16}) (\/[!-~]{0,4000}) HTTP\/1\.([01])$/.exec(first);
  if (match === null) throw new LacewingError("protocol", "Cannot read request: want METHOD /path HTTP/1.1");
  const [, method = "", path = "", minor] = match;
  const fields = await readFields(reader);
  return { method, path, fields, keepAlive: keepsAlive(fields, minor === "1") };
}

/**
 * The next answer's head, or undefined when the connection ended before it.
 *
 * @throws {LacewingError} `protocol`
 */
export async function readResponseHead(reader: LineReader): Promise<ResponseHead | undefined> {
  const first = await reader.readLine();
  if (first === undefined) return undefined;
  const match = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: .{0,200})?$/.exec(first);
  if (match === null) throw new LacewingError("protocol", "Cannot read answer: want HTTP/1.1 STATUS");
  const fields = await readFields(reader);
  return { status: Number(match[2]), fields, keepAlive: keepsAlive(fields, match[1] === "1") };
}

/** A head as text: the first line, the fields, the empty line. */
export function formatHead(first: string, fields: Record<string, string | number>): string {
  let text = first + "\r\n";
  for (const [name, value] of Object.entries(fields)) text += `${name}: ${value}\r\n`;
  return text + "\r\n";
}

/** The value of `Content-Length`, or null when there is none that is a plain number. */
export function contentLengthOf(fields: HeadFields): number | null {
  const text = fields.get("content-length");
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

async function readFields(reader: LineReader): Promise<HeadFields> {
  const fields = new Map<string, string>();
  let length = 0;
  while (true) {
    const line = await reader.readLine();
    if (line === undefined) throw new LacewingError("protocol", "Cannot read head: the connection ended in the middle");
    if (line === "") return fields;
    length += line.length;
    if (length > HEAD_LENGTH_MAX || fields.size >= HEADER_COUNT_MAX) {
      throw new LacewingError(
        "protocol",
        `Cannot read head: more than ${HEAD_LENGTH_MAX} bytes or ${HEADER_COUNT_MAX} fields`,
      );
    }
    const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line);
    const name = match?.[1]?.toLowerCase();
    if (name === undefined) throw new LacewingError("protocol", "Cannot read head: a line is no NAME: VALUE");
    // Two lengths in one head are how request smuggling begins.
    if (fields.has(name)) throw new LacewingError("protocol", `Cannot read head: ${name.slice(0, 100)} is there twice`);
    fields.set(name, match?.[2] ?? "");
  }
}

function keepsAlive(fields: HeadFields, isHttp11: boolean): boolean {
  const options = (fields.get("connection") ?? "").toLowerCase().split(/[ \t]*,[ \t]*/);
  return isHttp11 && !options.includes("close");
}
