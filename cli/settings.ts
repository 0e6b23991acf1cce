/**
 * From the texts of a command line to the settings of one download, each read
 * by the rule of its kind and held to the bounds of the wire (peer/core/wire/ipc.ts).
 * Pure: nothing is looked up on this machine.
 */
import { type Digest, parseDigest } from "../peer/core/digest_text.ts";
import { parsePprofPort } from "../peer/core/diagnostics.ts";
import { LacewingError } from "../peer/core/errors.ts";
import { parseRange, type RangeSpec } from "../peer/core/range.ts";
import { parseCollector } from "../peer/core/telemetry.ts";
import { parseByteSize, parseDuration } from "../peer/core/units.ts";
import { COMMANDS, OPTIONS } from "./options.ts";
import { NotKnown, type ParsedCommand } from "./parse.ts";

/** URL schemes that have a source, and what reads them. */
export const SOURCES: readonly (readonly [scheme: string, origin: string])[] = [
  ["http", "built in"],
  ["https", "built in"],
];

/** Where the daemon is and what it is started with. */
export interface DaemonSettings {
  /** Null: the default place. */
  readonly socket: string | null;
  readonly config: string | null;
  readonly workHome: string | null;
  readonly logDir: string | null;
  readonly console: boolean;
  readonly verbose: boolean;
  /** URL of the collector of traces; null: none. */
  readonly jaeger: string | null;
}

/** What --recursive takes of a folder. */
export interface RecursiveSettings {
  /** Folders deep; 1 is the URL's own folder. */
  readonly level: number;
  /** Whether folders deeper than `level` are a failure, because the user set no limit. */
  readonly unlimited: boolean;
  /** Prints URLs instead of downloading. */
  readonly list: boolean;
  /** Searched in complete file URLs; null takes all, or refuses none. */
  readonly accept: RegExp | null;
  readonly reject: RegExp | null;
}

export interface DownloadSettings extends DaemonSettings {
  readonly url: string;
  /** As given: a path, `-` for stdout, or null for the URL's own name. */
  readonly output: string | null;
  readonly headers: readonly (readonly [string, string])[];
  readonly digest: Digest | null;
  readonly filter: string;
  readonly tag: string;
  readonly range: RangeSpec | null;
  /** 0 is no limit, for both. */
  readonly timeoutMs: number;
  readonly rateLimitBytesPerSecond: number;
  readonly disableBackSource: boolean;
  readonly originalOffset: boolean;
  readonly showProgress: boolean;
  /** Null: one content. */
  readonly recursive: RecursiveSettings | null;
  /** The name in traces. */
  readonly serviceName: string;
  /** Port of the profiles, 0 for a free one; null: none. */
  readonly pprofPort: number | null;
  /** The span that the download belongs to. */
  readonly traceparent?: string;
}

/**
 * @param plugins schemes that are not built in and can be read
 * @throws {LacewingError} `usage` naming the option, what was given and what would be right.
 */
export function readDownloadSettings(
  parsed: ParsedCommand,
  env: (name: string) => string | undefined,
  plugins: readonly string[] = [],
): DownloadSettings {
  const { values } = parsed;
  const output = textOf(values, "output");
  if (output === "") throw usage("Cannot use --output: the path is empty");
  if (output === "-" && values.get("console") === true) {
    throw usage("Cannot use --output - together with --console: both write to stdout");
  }
  if (output === "-" && values.get("original-offset") === true) {
    throw usage("Cannot use --output - together with --original-offset: stdout has no places to fill");
  }
  const range = textOf(values, "range");
  const digest = textOf(values, "digest");
  return {
    ...readDaemonSettings(parsed, env),
    url: readUrl(parsed, plugins),
    output,
    headers: readHeaders(values),
    digest: digest === null ? null : named("digest", () => parseDigest(digest)),
    filter: boundedText(values, { name: "filter", length: 1024 }),
    tag: boundedText(values, { name: "tag", length: 256 }),
    range: range === null ? null : named("range", () => parseRange(range)),
    timeoutMs: named("timeout", () => parseDuration(textOf(values, "timeout") ?? defaultOf("timeout"))),
    rateLimitBytesPerSecond: named(
      "ratelimit",
      () => parseByteSize(textOf(values, "ratelimit") ?? defaultOf("ratelimit")),
    ),
    disableBackSource: values.get("disable-back-source") === true,
    originalOffset: values.get("original-offset") === true,
    showProgress: values.get("show-progress") === true,
    recursive: readRecursive(values, output),
    serviceName: boundedText(values, { name: "service-name", length: 256 }) || defaultOf("service-name"),
    pprofPort: named("pprof-port", () => parsePprofPort(textOf(values, "pprof-port") ?? defaultOf("pprof-port"))),
  };
}

/** The settings that the client shares with the daemon. */
export function readDaemonSettings(
  { values }: ParsedCommand,
  env: (name: string) => string | undefined,
): DaemonSettings {
  const path = (name: string) => {
    const text = textOf(values, name);
    if (text === "") throw usage(`Cannot use --${name}: the path is empty`);
    return text;
  };
  return {
    socket: path("daemon-sock"),
    config: path("config") ?? (env("CLIENT_CONFIG") || null),
    workHome: path("workhome"),
    logDir: path("logdir"),
    console: values.get("console") === true,
    verbose: values.get("verbose") === true,
    jaeger: readJaeger(values),
  };
}

/** Given several times, the last one counts, as with other options of one value. */
function readJaeger(values: ParsedCommand["values"]): string | null {
  const url = (values.get("jaeger") as readonly string[] | undefined)?.at(-1) ?? null;
  if (url !== null) named("jaeger", () => parseCollector(url));
  return url;
}

/** Whether the URL may be one for a plug-in, so that it is worth looking for them. */
export function wantsPlugin(parsed: ParsedCommand): boolean {
  const scheme = URL.parse(urlsOf(parsed)[0] ?? "")?.protocol.slice(0, -1);
  return scheme !== undefined && !SOURCES.some(([known]) => known === scheme);
}

function urlsOf({ positionals, values }: ParsedCommand): string[] {
  return [...new Set([...positionals, ...(values.get("url") as string[] | undefined ?? [])])];
}

/** The URL from the first argument, `--url`, or both where they agree. */
function readUrl(parsed: ParsedCommand, plugins: readonly string[]): string {
  const [text, second] = urlsOf(parsed);
  if (text === undefined) throw usage("Cannot download: no URL is given");
  if (second !== undefined) {
    throw usage(`Cannot download two URLs at once: ${quote(text)} and ${quote(second)}; run one command for each`);
  }
  if (text.length > 8192) throw usage(`Cannot read URL: it has ${text.length} characters, at most 8192 are taken`);
  const url = URL.parse(text);
  if (url === null) {
    throw new NotKnown(`Cannot read URL ${quote(text)}: want an absolute one such as https://host/path`, {
      word: text,
      known: COMMANDS,
    });
  }
  const scheme = url.protocol.slice(0, -1);
  const schemes = [...SOURCES.map(([name]) => name), ...plugins];
  if (!schemes.includes(scheme)) {
    const known = schemes.join(", ");
    throw usage(`Cannot download ${quote(text)}: there is no source for scheme ${quote(scheme)}, only for ${known}`);
  }
  return text;
}

/** Folders deep that even an unlimited download goes: links that lead back into their own folder never end. */
const LEVEL_MAX = 100;

function readRecursive(values: ParsedCommand["values"], output: string | null): RecursiveSettings | null {
  if (values.get("recursive") !== true) return null;
  if (output === "-") throw usage("Cannot use --output - together with --recursive: a folder is no stream");
  const list = values.get("list") === true;
  if (list && values.get("console") === true) {
    throw usage("Cannot use --list together with --console: both write to stdout");
  }
  const text = textOf(values, "level") ?? defaultOf("level");
  const level = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
  if (!(level <= LEVEL_MAX)) throw usage(`Cannot use --level ${quote(text)}: want a number from 0 to ${LEVEL_MAX}`);
  return {
    level: level === 0 ? LEVEL_MAX : level,
    unlimited: level === 0,
    list,
    accept: readRegex(values, "accept-regex"),
    reject: readRegex(values, "reject-regex"),
  };
}

function readRegex(values: ParsedCommand["values"], name: string): RegExp | null {
  const text = textOf(values, name);
  if (text === null) return null;
  try {
    return new RegExp(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^.*: /s, "") : "";
    throw usage(`Cannot use --${name} ${quote(text)}: it is no regular expression (${reason})`);
  }
}

/** `Name: value` of RFC 9110; never split at commas. */
function readHeaders(values: ParsedCommand["values"]): [string, string][] {
  const texts = values.get("header") as readonly string[] | undefined ?? [];
  if (texts.length > 100) throw usage(`Cannot use ${texts.length} headers: at most 100 are taken`);
  return texts.map((text) => {
    const colon = text.indexOf(":");
    const name = text.slice(0, colon);
    const value = text.slice(colon + 1).trim();
    // The value may be a secret: only the name is shown.
    if (colon === -1) throw usage("Cannot read a --header: want 'Name: value', there is no colon in it");
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/.test(name)) {
      throw usage(`Cannot use --header: ${quote(name.slice(0, 80))} is no header name`);
    }
    if (value.length > 8192 || /[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw usage(`Cannot use --header ${name}: its value is too long or has characters that no header may have`);
    }
    if (name.toLowerCase() === "range") throw usage("Cannot use --header Range: use --range instead");
    return [name, value];
  });
}

/** @throws {LacewingError} `usage` if it is longer */
export function boundedText(
  values: ParsedCommand["values"],
  { name, length }: { name: string; length: number },
): string {
  const text = textOf(values, name) ?? "";
  if (text.length <= length) return text;
  throw usage(`Cannot use --${name}: it has ${text.length} characters, at most ${length} are taken`);
}

function textOf(values: ParsedCommand["values"], name: string): string | null {
  const value = values.get(name);
  return typeof value === "string" ? value : null;
}

function defaultOf(name: string): string {
  return OPTIONS.find((option) => option.name === name)?.default ?? "";
}

/** The error of a reader, with the option's name in front. */
function named<T>(option: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (!(cause instanceof LacewingError)) throw cause;
    throw new LacewingError("usage", `Cannot use --${option}: ${cause.message}`, { cause });
  }
}

function quote(text: string): string {
  return JSON.stringify(text);
}

function usage(message: string): LacewingError {
  return new LacewingError("usage", message);
}
