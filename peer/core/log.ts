/**
 * Log records as JSON lines: `{"time","level","room","message",…fields}`.
 * Secrets and signed query values are redacted here and nowhere else; what
 * came from the network is capped, and holds no character that a terminal would
 * act on. Writing is the sink's matter.
 */
import { LacewingError } from "./errors.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Record<string, unknown>;
/** Takes one finished line without its newline. */
export type LogSink = (line: string) => void;

const ORDER: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };
/** Characters of one text in a record, and how many of a longer one are looked at. */
const FIELD_LENGTH_MAX = 2000;
const SCAN_LENGTH_MAX = 4 * FIELD_LENGTH_MAX;
/** Entries of one list or object, and how deep they are followed. */
const ENTRIES_MAX = 100;
const DEPTH_MAX = 4;
/** Characters of one record; a longer one keeps its message and says how long it was. */
const RECORD_LENGTH_MAX = 64 * 1024;
const REDACTED = "***";

/** Names of headers and fields whose values never leave the process. */
const SECRET_NAMES =
  /authorization|cookie|passw|secret|credential|token|signature|auth$|(?:api|access|private)[-_]?key|^x-.*key/i;
/**
 * Query parameters whose name tells of a signature (S3, OSS, GCS, Azure, CloudFront, COS) or a
 * credential, also inside a percent-encoded URL. Names are looked at up to a bound, so that
 * hostile text costs linear time.
 */
const SIGNED_QUERY =
  /((?:[?&#]|%3F|%26)[^=&?#\s"]{0,64}?(?:sig|token|key|secret|credential|expires|passw|pwd|auth|policy|jwt|hmac)[^=&?#\s"]{0,64}?(?:=|%3D))[^&#\s"]*/gi;
/** Up to the last `@` of the authority: a password may hold one. */
const USER_INFO = /(\b[a-z][a-z0-9+.-]{0,20}:\/\/)[^/?#\s"]{1,1024}@/gi;
/** A token after its scheme's name; the words that follow it in a sentence or a challenge are none. */
const BEARER =
  /\b(bearer|basic)\s+(?!(?:authentication|authorization|challenge|credentials|tokens?|realm=)(?:[\s,.;:"')]|$))[a-z0-9._~+/=-]{6,}/gi;
/** A header written out in a text, as `Authorization: AWS4-HMAC-SHA256 …` or in JSON. */
const SECRET_HEADER =
  /\b((?:proxy-)?authorization|(?:set-)?cookie|x-[a-z-]{0,40}(?:token|secret|key))("?\s{0,4}:\s{0,4}"?)[^\r\n"]+/gi;

/** Control characters, line ends of Unicode, and those that turn the direction of writing. */
// deno-lint-ignore no-control-regex
const UNSAFE = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** The same log under another room's name. */
  room(name: string): Logger;
}

/** Whether a header's or field's value must not be shown. */
export function isSecretName(name: string): boolean {
  return SECRET_NAMES.test(name);
}

/** Text with credentials in URLs, signed query values and bearer tokens blotted out. */
export function redactText(text: string): string {
  return text.replace(SECRET_HEADER, `$1$2${REDACTED}`).replace(USER_INFO, `$1${REDACTED}@`)
    .replace(SIGNED_QUERY, `$1${REDACTED}`).replace(BEARER, `$1 ${REDACTED}`);
}

/** Text with everything that a terminal would act on written out, as in JSON: `\u001b`. */
export function escapeControls(text: string): string {
  return text.replace(UNSAFE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Text for a terminal: redacted, every line of it without controls. */
export function printable(text: string): string {
  return redactText(text).split("\n").map(escapeControls).join("\n");
}

/** Headers as they may be shown or stored: the secret ones' values replaced. */
export function redactHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, isSecretName(name) ? REDACTED : value]),
  );
}

/** A logger over a sink; records below `level` are dropped. */
export function createLogger(
  sink: LogSink,
  { level = "info", room = "" }: { level?: LogLevel; room?: string } = {},
): Logger {
  const write = (at: LogLevel) => (message: string, fields: LogFields = {}) => {
    if (ORDER[at] < ORDER[level]) return;
    const record: LogFields = { time: new Date().toISOString(), level: at, ...(room === "" ? {} : { room }) };
    record.message = clean("message", message);
    for (const [name, value] of Object.entries(fields)) record[name] = clean(name, value);
    const line = JSON.stringify(record);
    const { time, message: kept } = record;
    // JSON leaves C1 controls and turned text as they are; written out they are JSON still.
    sink(escapeControls(
      line.length <= RECORD_LENGTH_MAX
        ? line
        : JSON.stringify({ time, level: at, room, message: kept, cut: line.length }),
    ));
  };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    room: (name) => createLogger(sink, { level, room: name }),
  };
}

/** A logger that keeps nothing, for tests and library users. */
export const silentLogger: Logger = createLogger(() => {});

/** A field's value as it may be shown: secrets blotted out, bounded in length, depth and entries. */
function clean(name: string, value: unknown, depth = 0): unknown {
  if (value === null || value === undefined || typeof value === "boolean") return value;
  if (isSecretName(name)) return REDACTED;
  if (typeof value === "string") return cleanText(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object") return value;
  if (depth >= DEPTH_MAX) return "…";
  if (value instanceof Error) return cleanError(value, depth);
  if (value instanceof URL) return cleanText(value.href);
  if (value instanceof Date) return value.toJSON();
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (Array.isArray(value)) return cleanList(name, value, depth);
  const entries = value instanceof Headers || value instanceof Map ? [...value] : Object.entries(value);
  return Object.fromEntries(
    entries.slice(0, ENTRIES_MAX).map(([key, item]) => [key, clean(String(key), item, depth + 1)]),
  );
}

function cleanText(text: string): string {
  // What the cut leaves of an authority at the end may be the beginning of a password.
  const scanned = text.length <= SCAN_LENGTH_MAX
    ? text
    : text.slice(0, SCAN_LENGTH_MAX).replace(/:\/\/[^/?#\s"]*$/, "://…");
  return redactText(scanned).slice(0, FIELD_LENGTH_MAX);
}

function cleanError(error: Error, depth: number): LogFields {
  const cause = error.cause === undefined ? {} : { cause: clean("", error.cause, depth + 1) };
  if (error instanceof LacewingError) return { code: error.code, message: cleanText(error.message), ...cause };
  return { name: error.name, message: cleanText(error.message), stack: cleanText(error.stack ?? ""), ...cause };
}

/** A list; a pair that begins with a secret header's name is that header. */
function cleanList(name: string, list: readonly unknown[], depth: number): unknown[] {
  const [first] = list;
  if (list.length === 2 && typeof first === "string" && isSecretName(first)) return [first, REDACTED];
  return list.slice(0, ENTRIES_MAX).map((item) => clean(name, item, depth + 1));
}
