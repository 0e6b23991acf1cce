/**
 * One HTTP request to one address that the caller chose: the URL's name goes
 * into the Host header and the TLS check, but never to a resolver. Follows
 * nothing, keeps no connection, and bounds the body and the time to connect.
 */
import * as http from "node:http";
import * as https from "node:https";
import { LacewingError } from "../../peer/core/errors.ts";
import { redactText } from "../../peer/core/log.ts";

export interface PinnedRequest {
  readonly url: URL;
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The IP address to connect to. */
  readonly address: string;
  /** PEM texts of the trusted authorities; null: the usual ones. */
  readonly ca: readonly string[] | null;
  readonly connectTimeoutMs: number;
  readonly signal: AbortSignal;
  /** Bytes of the body; a longer one is `too_large`. */
  readonly maxBytes: number;
}

export interface GuardedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
}

/**
 * Asks once.
 *
 * @throws {LacewingError} `timeout` while connecting, `too_large`; errors of the connection come as node gives them.
 */
export function requestPinned(pinned: PinnedRequest): Promise<GuardedResponse> {
  const { url, address, connectTimeoutMs, signal, body } = pinned;
  const connected = url.protocol === "https:" ? "secureConnect" : "connect";
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const request = open(pinned);
    const finish = () => {
      clearTimeout(connectTimer);
      signal.removeEventListener("abort", onAbort);
    };
    const fail = (error: unknown) => {
      finish();
      request.destroy();
      reject(error);
    };
    const onAbort = () => fail(signal.reason);
    const connectTimer = setTimeout(() => {
      const seconds = connectTimeoutMs / 1000;
      fail(new LacewingError("timeout", `Cannot read ${shown(url)}: no connection to ${address} within ${seconds} s`));
    }, connectTimeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    request.on("socket", (socket) => socket.once(connected, () => clearTimeout(connectTimer)));
    request.on("error", fail);
    request.on("response", (message) => {
      clearTimeout(connectTimer);
      readBody(message, pinned).then((bytes) => {
        finish();
        resolve({ status: message.statusCode ?? 0, headers: headersOf(message.rawHeaders), bytes });
      }, fail);
    });
    request.end(body);
  });
}

function open({ url, method, headers, body, address, ca }: PinnedRequest): http.ClientRequest {
  const isTls = url.protocol === "https:";
  const length = body === undefined ? {} : { "content-length": String(new TextEncoder().encode(body).length) };
  return (isTls ? https : http).request({
    protocol: url.protocol,
    hostname: bareHost(url),
    port: url.port === "" ? (isTls ? 443 : 80) : Number(url.port),
    path: url.pathname + url.search,
    method,
    headers: {
      "user-agent": "lacewing",
      ...headers,
      host: url.host,
      "accept-encoding": "identity",
      connection: "close",
      ...length,
    },
    agent: false,
    lookup: lookupOf(address),
    ...(ca === null ? {} : { ca: [...ca] }),
  });
}

async function readBody(message: http.IncomingMessage, { url, maxBytes }: PinnedRequest): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // An answer that is cut off ends this loop with ECONNRESET.
  for await (const chunk of message as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > maxBytes) {
      throw new LacewingError("too_large", `Cannot read ${shown(url)}: the answer is longer than ${maxBytes} B`);
    }
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function headersOf(raw: readonly string[]): Headers {
  const headers = new Headers();
  for (let at = 0; at + 1 < raw.length; at += 2) {
    try {
      headers.append(raw[at] ?? "", raw[at + 1] ?? "");
    } catch {
      // A header that no standard client could read is of no use here either.
    }
  }
  return headers;
}

function lookupOf(address: string): http.RequestOptions["lookup"] {
  const family = address.includes(":") ? 6 : 4;
  return (_hostname, options, done) => {
    // Node asks for a list or for one address, as its version likes.
    if (options.all) done(null, [{ address, family }]);
    else done(null, address, family);
  };
}

/** The URL's host as resolvers and sockets want it: IPv6 without brackets. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}

function shown(url: URL): string {
  return redactText(url.href.slice(0, 500));
}
