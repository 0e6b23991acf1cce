/**
 * The port below the HTTP source: sends one request and gives the answer's
 * bytes as they are on the wire, undecoded; follows nothing, retries nothing.
 * Two ways stand behind it: fetch (fast), and `node:http` where fetch cannot
 * do what is asked (a pinned address under TLS, an unverified certificate).
 */
import { LacewingError } from "../core/errors.ts";
import type { HeaderPair } from "./http_request.ts";
import { hostAndPort } from "./http_request.ts";

export interface TransportRequest {
  readonly url: URL;
  readonly headers: readonly HeaderPair[];
  /** IP address to connect to, or null to let the transport resolve the name. */
  readonly address: string | null;
  /** Ends the request and the body's reading. */
  readonly signal: AbortSignal;
  /** Default: GET. */
  readonly method?: "GET" | "PROPFIND";
  readonly body?: string;
}

export interface TransportAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Next bytes of the body, or null at its end; valid until the next call. @throws {LacewingError} `network` */
  read(): Promise<Uint8Array | null>;
  /** Gives up what is left of the body. Never throws; doing it twice is fine. */
  cancel(): Promise<void>;
}

export interface Transport {
  /** @throws {LacewingError} `network`, `tls`; `signal.reason` when aborted */
  send(request: TransportRequest): Promise<TransportAnswer>;
  close(): void;
}

/** Bodies up to this are read to their end rather than cancelled, which keeps the connection. */
const DISCARD_LENGTH_MAX = 64 * 1024;

/** Gets rid of a body that nobody wants (a redirect's, an error's). */
export async function discard(answer: TransportAnswer): Promise<void> {
  const length = Number(answer.headers.get("content-length") ?? NaN);
  try {
    if (length <= DISCARD_LENGTH_MAX) { while (await answer.read() !== null); }
  } catch {
    // The answer itself was already judged.
  }
  await answer.cancel();
}

/** The typed error for a request that got no answer. */
export function reachError(url: URL, cause: unknown): LacewingError {
  const reason = reasonOf(cause);
  if (isTlsFailure(reason)) {
    return new LacewingError("tls", `Cannot trust ${hostAndPort(url)}: ${reason}`, { cause });
  }
  return new LacewingError("network", `Cannot reach ${hostAndPort(url)}: ${reason}`, { cause });
}

/** fetch says what happened in the text of its cause only: this is the one place that reads it. */
function isTlsFailure(reason: string): boolean {
  return /certificate|handshake|corrupt message|fatal alert|\btls\b|\bssl\b/i.test(reason);
}

function reasonOf(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const text = inner instanceof Error ? inner.message : String(inner);
  // "error sending request for url (…): client error (Connect): reason": the URL may hold secrets.
  return text.replace(/^.*client error \(\w+\): /s, "").replace(/\bhttps?:\/\/\S+/g, "the URL").slice(0, 300);
}
