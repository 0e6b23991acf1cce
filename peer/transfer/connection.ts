/**
 * What both ends of a connection between neighbours need: dialling within a
 * bound, addresses as text, closing twice without harm.
 */
import type { Clock } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import { Watchdog } from "./watchdog.ts";

/** The host and port of `IP:PORT`, `[IPv6]:PORT` or `NAME:PORT`, or null. */
export function parseHostPort(address: string): { hostname: string; port: number } | null {
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:\[\]\s]+)):(\d{1,5})$/.exec(address);
  const hostname = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return hostname === undefined || port < 1 || port > 65535 ? null : { hostname, port };
}

/** The text form that `parseHostPort` reads. */
export function formatHostPort({ hostname, port }: { hostname: string; port: number }): string {
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}

/**
 * Opens a connection without Nagle's delay and with TCP keep-alive.
 *
 * @throws {LacewingError} `peer_failed` when it is refused or takes longer than `timeoutMs`; `signal.reason`
 */
export async function dial(
  address: string,
  { clock, timeoutMs, signal }: { clock: Clock; timeoutMs: number; signal: AbortSignal },
): Promise<Deno.TcpConn> {
  signal.throwIfAborted();
  const target = parseHostPort(address);
  if (target === null) throw new LacewingError("peer_failed", `Cannot dial neighbour ${address}: want IP:PORT`);
  const giveUp = new AbortController();
  using watchdog = new Watchdog(clock, () => giveUp.abort());
  watchdog.arm(timeoutMs);
  const onAbort = () => giveUp.abort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const conn = await Deno.connect({ ...target, signal: giveUp.signal });
    prepare(conn);
    return conn;
  } catch (cause) {
    signal.throwIfAborted();
    const reason = giveUp.signal.aborted ? `no connection within ${timeoutMs} ms` : messageOf(cause);
    throw new LacewingError("peer_failed", `Cannot dial neighbour ${address}: ${reason}`, { cause });
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Sets what every connection between neighbours has: no Nagle delay, TCP keep-alive. */
export function prepare(conn: Deno.TcpConn): void {
  conn.setNoDelay(true);
  conn.setKeepAlive(true);
}

/** Closes what may be closed already. */
export function closeQuietly(resource: { close(): void }): void {
  try {
    resource.close();
  } catch {
    // Closed before, by a timeout or an abort.
  }
}

/** Whether the platform says that a connection broke, was closed or is not there. */
export function isConnectionError(error: unknown): boolean {
  return CONNECTION_ERRORS.some((kind) => error instanceof kind);
}

const CONNECTION_ERRORS = [
  Deno.errors.AddrNotAvailable,
  Deno.errors.BadResource,
  Deno.errors.BrokenPipe,
  Deno.errors.ConnectionAborted,
  Deno.errors.ConnectionRefused,
  Deno.errors.ConnectionReset,
  Deno.errors.Interrupted,
  Deno.errors.NotConnected,
  Deno.errors.TimedOut,
  Deno.errors.UnexpectedEof,
];

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
