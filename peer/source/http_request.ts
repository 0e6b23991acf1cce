/**
 * Decides what is sent to an origin: which headers a caller may give, where a
 * redirect leads, and what goes along. Pure.
 *
 * Keeps: what the caller gave for one origin (scheme, host and port) reaches
 * no other one, but for headers that cannot tell anything (`Accept` and the
 * like); credentials never go from https to http.
 */
import { Buffer } from "node:buffer";
import { LacewingError } from "../core/errors.ts";
import { isSecretName } from "../core/log.ts";
import type { ByteRange } from "../core/piece.ts";

export type HeaderPair = readonly [name: string, value: string];

/** One request on the way through redirects. */
export interface Hop {
  /** Without user info and fragment. */
  readonly url: URL;
  /** The caller's headers that may be sent to this origin. */
  readonly headers: readonly HeaderPair[];
  /** Addresses asked so far, this one last. */
  readonly trail: readonly string[];
}

const REDIRECTS_MAX = 10;
const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308]);
/** Headers that a foreign origin may see. */
const HARMLESS = new Set(["accept", "accept-language", "user-agent"]);
/** Headers that the source itself decides on, or that belong to one connection. */
const RESERVED = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "keep-alive",
  "proxy-connection",
  "range",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
const SHOWN_LENGTH_MAX = 300;

/**
 * The first hop of a request. User info in the URL becomes Basic credentials unless the caller gave others.
 *
 * @throws {LacewingError} `usage` for a URL or a header that cannot be sent.
 */
export function firstHop(url: string, headers: readonly HeaderPair[]): Hop {
  const parsed = URL.parse(url);
  if (parsed === null || !isHttp(parsed)) {
    throw new LacewingError("usage", `Cannot read URL ${JSON.stringify(shownText(url))}: want http:// or https://`);
  }
  for (const header of headers) checkHeader(header);
  return hopTo(parsed, headers.map(([name, value]) => [name.toLowerCase(), value]), []);
}

export function isRedirect(status: number): boolean {
  return REDIRECT_STATUSES.has(status);
}

/**
 * Where a redirect leads.
 *
 * @throws {LacewingError} `source_failed` for a loop, too many redirects, or no place to go; `policy` when
 * credentials would leave https.
 */
export function nextHop(hop: Hop, location: string | null): Hop {
  const from = shownUrl(hop.url);
  const to = location === null ? null : URL.parse(location, hop.url);
  if (to === null || !isHttp(to)) {
    const where = location === null ? "nowhere" : `to ${JSON.stringify(shownText(location))}`;
    throw new LacewingError("source_failed", `Cannot read ${from}: it redirects ${where}, want http:// or https://`);
  }
  const isSameOrigin = to.origin === hop.url.origin;
  const isDowngrade = hop.url.protocol === "https:" && to.protocol === "http:";
  if (isDowngrade && hop.headers.some(([name]) => isSecretName(name))) {
    throw new LacewingError(
      "policy",
      `Cannot read ${from}: it redirects from https to ${shownUrl(to)}, and the request carries credentials`,
    );
  }
  const headers = isSameOrigin ? hop.headers : hop.headers.filter(([name]) => HARMLESS.has(name));
  const next = hopTo(to, headers, hop.trail);
  if (hop.trail.includes(next.url.href)) {
    const loop = [...hop.trail.slice(hop.trail.indexOf(next.url.href)), next.url.href];
    const names = loop.map((href) => shownUrl(new URL(href))).join(" to ");
    throw new LacewingError("source_failed", `Cannot read ${shownTrail(hop)}: it redirects in a loop, ${names}`);
  }
  if (hop.trail.length > REDIRECTS_MAX) {
    throw new LacewingError(
      "source_failed",
      `Cannot read ${shownTrail(hop)}: it redirects more than ${REDIRECTS_MAX} times, at last to ${shownUrl(to)}`,
    );
  }
  return next;
}

/** The headers that are sent for a hop. */
export function requestHeaders(
  hop: Hop,
  { range, userAgent }: { range: ByteRange | null; userAgent: string },
): HeaderPair[] {
  const given = hop.headers.filter(([name]) => name !== "accept-encoding");
  const headers: HeaderPair[] = [...given, ["accept-encoding", "identity"]];
  if (!given.some(([name]) => name === "accept")) headers.push(["accept", "*/*"]);
  if (!given.some(([name]) => name === "user-agent")) headers.push(["user-agent", userAgent]);
  if (range !== null) headers.push(["range", `bytes=${range.offset}-${range.offset + range.length - 1}`]);
  return headers;
}

/** A URL as messages show it: without user info and query, where secrets stand, and capped. */
export function shownUrl(url: URL): string {
  return shownText(url.origin + url.pathname);
}

/** `HOST:PORT` of a URL. */
export function hostAndPort(url: URL): string {
  return `${url.hostname}:${portOf(url)}`;
}

export function portOf(url: URL): number {
  return Number(url.port) || (url.protocol === "https:" ? 443 : 80);
}

function hopTo(to: URL, headers: readonly HeaderPair[], trail: readonly string[]): Hop {
  const url = new URL(to);
  const { username, password } = url;
  url.username = "";
  url.password = "";
  url.hash = "";
  const hop = { url, headers, trail: [...trail, url.href] };
  const isGiven = headers.some(([name]) => name === "authorization");
  if ((username === "" && password === "") || isGiven) return hop;
  const credentials = Buffer.from(`${decode(username)}:${decode(password)}`).toString("base64");
  return { ...hop, headers: [...headers, ["authorization", `Basic ${credentials}`]] };
}

function checkHeader([name, value]: HeaderPair): void {
  if (RESERVED.has(name.toLowerCase())) {
    throw new LacewingError("usage", `Cannot send header ${JSON.stringify(name)}: it is set by the download itself`);
  }
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    throw new LacewingError(
      "usage",
      `Cannot send header ${JSON.stringify(shownText(name))}: a name has letters, digits and !#$%&'*+.^_\`|~- only`,
    );
  }
  // The value may be a secret: only its name is shown. RFC 9110 section 5.5: visible bytes, spaces and tabs.
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
    throw new LacewingError(
      "usage",
      `Cannot send header ${JSON.stringify(name)}: its value has a character that HTTP does not allow`,
    );
  }
}

function shownTrail(hop: Hop): string {
  return shownUrl(new URL(hop.trail[0] ?? hop.url.href));
}

function shownText(text: string): string {
  const bare = text.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//");
  return bare.length > SHOWN_LENGTH_MAX ? `${bare.slice(0, SHOWN_LENGTH_MAX)}...` : bare;
}

function isHttp({ protocol }: URL): boolean {
  return protocol === "http:" || protocol === "https:";
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
