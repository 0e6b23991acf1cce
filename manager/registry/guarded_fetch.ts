/**
 * HTTP for URLs that callers of the API give: a request that cannot be turned
 * against the manager's own network. A name is resolved once per hop, each
 * address is judged, and the connection goes to that very address (node's
 * `lookup`, which Deno honours for TCP and TLS alike), so that a name that
 * changes its mind between check and connection gains nothing. Redirects are
 * followed here, each target checked anew; credentials stay with their origin.
 * Proxies of the environment are not used: the check would judge the proxy.
 */
import { lookup as systemLookup } from "node:dns/promises";
import * as tls from "node:tls";
import { addressRefusal } from "../../peer/core/address.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import { redactText } from "../../peer/core/log.ts";
import { connectionError, isConnectError } from "./connection_error.ts";
import { bareHost, type GuardedResponse, requestPinned } from "./pinned_request.ts";

export type { GuardedResponse };

export interface GuardedRequest {
  readonly method: "GET" | "HEAD" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Bytes of the body; a longer one is `too_large`. */
  readonly maxBytes: number;
}

/**
 * Asks a URL; any status is an answer.
 *
 * @throws {LacewingError} `policy`, `network`, `tls`, `timeout`, `too_large`, `invalid`
 */
export type GuardedFetch = (url: string, request: GuardedRequest) => Promise<GuardedResponse>;

export interface GuardOptions {
  /** Whether loopback and private addresses may be asked; link-local and metadata ones never. */
  readonly allowPrivateNetworks: boolean;
  /** PEM texts of authorities trusted beside the usual ones. */
  readonly caCerts: readonly string[];
  /** Addresses of a name, in order of preference; default: the system's resolver. */
  readonly lookup?: (hostname: string) => Promise<readonly string[]>;
  readonly connectTimeoutMs?: number;
  /** For the whole call, redirects included. */
  readonly totalTimeoutMs?: number;
}

const REDIRECT_COUNT_MAX = 5;
const CONNECT_TIMEOUT_MS = 10_000;
const TOTAL_TIMEOUT_MS = 30_000;
/** Addresses of one name that are tried, one after the other. */
const ADDRESS_COUNT_MAX = 4;
const REDIRECT_STATUS: readonly number[] = [301, 302, 303, 307, 308];
/** What crosses to another origin on redirect: any other header of the caller may hold a secret. */
const HARMLESS_HEADERS: readonly string[] = ["accept", "accept-encoding", "accept-language", "range", "user-agent"];

interface Hop {
  readonly url: URL;
  readonly method: GuardedRequest["method"];
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The guarded client; it keeps no connection between calls. */
export function createGuardedFetch(options: GuardOptions): GuardedFetch {
  const ca = trusted(options.caCerts);
  const totalTimeoutMs = options.totalTimeoutMs ?? TOTAL_TIMEOUT_MS;
  return async (url, { method, headers, body, signal, maxBytes }) => {
    let hop: Hop = {
      url: parseTarget(url),
      method,
      headers: lowerCase(headers),
      ...(body === undefined ? {} : { body }),
    };
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), totalTimeoutMs);
    const limits = { signal: AbortSignal.any([signal, deadline.signal]), maxBytes };
    try {
      for (let redirects = 0;; redirects++) {
        const response = await ask(hop, limits, { ...options, ca });
        const next = redirectOf(hop, response);
        if (next === null) return response;
        if (redirects >= REDIRECT_COUNT_MAX) {
          throw new LacewingError("policy", `Cannot read ${shown(url)}: more than ${REDIRECT_COUNT_MAX} redirects`);
        }
        hop = next;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!deadline.signal.aborted || error instanceof LacewingError) throw error;
      const message = `Cannot read ${shown(hop.url)}: no whole answer within ${totalTimeoutMs / 1000} s`;
      throw new LacewingError("timeout", message, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  };
}

interface Limits {
  readonly signal: AbortSignal;
  readonly maxBytes: number;
}

interface Guard extends GuardOptions {
  readonly ca: readonly string[] | null;
}

async function ask(hop: Hop, limits: Limits, guard: Guard): Promise<GuardedResponse> {
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS } = guard;
  const addresses = await allowedAddresses(hop.url, limits.signal, guard);
  for (const [index, address] of addresses.entries()) {
    try {
      return await requestPinned({ ...hop, ...limits, address, ca: guard.ca, connectTimeoutMs });
    } catch (error) {
      limits.signal.throwIfAborted();
      if (index < addresses.length - 1 && isConnectError(error)) continue;
      throw connectionError(error, `Cannot read ${shown(hop.url)} at ${address}`);
    }
  }
  throw new LacewingError("network", `Cannot read ${shown(hop.url)}: ${hop.url.hostname} has no address`);
}

async function allowedAddresses(url: URL, signal: AbortSignal, guard: Guard): Promise<readonly string[]> {
  const hostname = bareHost(url);
  const all = await addressesOf(hostname, signal, guard).catch((error) => {
    throw connectionError(error, `Cannot read ${shown(url)}: cannot resolve ${hostname}`);
  });
  const refusals = all.map((address) => addressRefusal(address, guard));
  const allowed = all.filter((_, index) => refusals[index] === null);
  if (allowed.length > 0 || all.length === 0) return allowed.slice(0, ADDRESS_COUNT_MAX);
  throw new LacewingError(
    "policy",
    `Cannot read ${shown(url)}: ${all[0]} ${refusals[0]} (job.allowPrivateNetworks says what may be asked)`,
  );
}

async function addressesOf(hostname: string, signal: AbortSignal, guard: Guard): Promise<readonly string[]> {
  if (isIpText(hostname)) return [hostname];
  const resolve = guard.lookup ?? lookupAll;
  return await abortable(resolve(hostname), signal);
}

async function lookupAll(hostname: string): Promise<string[]> {
  const found = await systemLookup(hostname, { all: true, verbatim: true });
  return found.map(({ address }) => address);
}

/** The next request after a redirect, or null when the answer is none. */
function redirectOf(hop: Hop, response: GuardedResponse): Hop | null {
  const location = response.headers.get("location");
  if (!REDIRECT_STATUS.includes(response.status) || location === null) return null;
  const url = parseTarget(URL.parse(location, hop.url)?.href ?? location);
  if (hop.url.protocol === "https:" && url.protocol !== "https:") {
    throw new LacewingError("policy", `Cannot read ${shown(hop.url)}: it redirects from https to ${shown(url)}`);
  }
  const isSameOrigin = url.origin === hop.url.origin;
  const keepsBody = hop.body !== undefined && (response.status === 307 || response.status === 308);
  if (keepsBody && !isSameOrigin) {
    throw new LacewingError(
      "policy",
      `Cannot send to ${shown(hop.url)}: it redirects to another origin, ${
        shown(url)
      }, and the body may hold credentials`,
    );
  }
  const kept = Object.entries(hop.headers).filter(([name]) =>
    (isSameOrigin || HARMLESS_HEADERS.includes(name)) && (keepsBody || !name.startsWith("content-"))
  );
  const headers = Object.fromEntries(kept);
  if (keepsBody) return { ...hop, url, headers };
  return { url, method: hop.method === "POST" ? "GET" : hop.method, headers };
}

/** Given authorities replace the default ones in `node:tls`, so both are named. */
function trusted(caCerts: readonly string[]): readonly string[] | null {
  return caCerts.length === 0 ? null : [...tls.getCACertificates("default"), ...caCerts];
}

function parseTarget(text: string): URL {
  const url = URL.parse(text);
  if (url === null) throw new LacewingError("invalid", `Cannot read ${shown(text)}: not an absolute URL`);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new LacewingError("policy", `Cannot read ${shown(text)}: only http and https are asked`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new LacewingError("policy", `Cannot read ${shown(text)}: credentials in a URL are not sent`);
  }
  return url;
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Only IP texts begin with a digit and end with one, or hold a colon, once WHATWG has parsed the host. */
function isIpText(hostname: string): boolean {
  return hostname.includes(":") || /^\d+\.\d+\.\d+\.\d+$/.test(hostname);
}

function shown(url: URL | string): string {
  return redactText(String(url).slice(0, 500));
}

function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
