/**
 * Log records as JSON lines: `{"time","level","room","message",…fields}`.
 * Secrets and signed query values are redacted here and nowhere else; what
 * came from the network is capped. Writing is the sink's matter.
 */
import { LacewingError } from "./errors.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Record<string, unknown>;
/** Takes one finished line without its newline. */
export type LogSink = (line: string) => void;

const ORDER: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };
const FIELD_LENGTH_MAX = 2000;
const REDACTED = "***";

/** Header names whose values never leave the process. */
const SECRET_NAMES =
  /^(authorization|proxy-authorization|cookie|set-cookie|x-.*(token|secret|key).*|.*(accesskey|secret|password|passwd|token|credential|api-?key).*)$/i;
/** Query parameters that stay readable; every other value is a possible signature. */
const SIGNED_QUERY =
  /([?&](?:[^=&#\s]*(?:sig|token|key|secret|credential|expires|password|auth|policy)[^=&#\s]*))=([^&#\s"]*)/gi;
const USER_INFO = /(\b[a-z][a-z0-9+.-]*:\/\/)[^/@\s"]+@/gi;
const BEARER = /\b(bearer|basic)\s+[a-z0-9._~+/=-]{6,}/gi;

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
  return text.replace(USER_INFO, `$1${REDACTED}@`).replace(SIGNED_QUERY, `$1=${REDACTED}`).replace(
    BEARER,
    `$1 ${REDACTED}`,
  );
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
    sink(JSON.stringify(record));
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

function clean(name: string, value: unknown, depth = 0): unknown {
  if (value !== null && value !== undefined && isSecretName(name)) return REDACTED;
  if (typeof value === "string") return redactText(value).slice(0, FIELD_LENGTH_MAX);
  if (value instanceof LacewingError) {
    return { code: value.code, message: clean("", value.message), cause: clean("", value.cause, depth + 1) };
  }
  if (value instanceof Error) {
    return { name: value.name, message: clean("", value.message), stack: clean("", value.stack) };
  }
  if (value instanceof URL) return redactText(value.href);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= 4) return "…";
  if (Array.isArray(value)) return value.slice(0, 100).map((item) => clean(name, item, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clean(key, item, depth + 1)]));
}
