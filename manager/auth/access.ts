/**
 * Decides who may call what. Pure. Every path is closed unless it is listed as
 * open here; a path that nobody thought of needs a person's token.
 */
import { SCHEDULER_PATH } from "../../peer/core/wire/scheduler.ts";
import type { TokenScope } from "../store/tokens.ts";

/** Someone who may call, and what he may. */
export interface Caller {
  /** For logs: a token's name, `admin`, `join token` or `loopback`. */
  readonly name: string;
  readonly scopes: readonly TokenScope[];
}

/** Paths that anyone may ask. */
const OPEN_PATHS = ["/healthy", "/readyz"];

/** The scopes of which a caller needs one (`admin` always will do), or null when anyone may call. */
export function neededScopes(method: string, path: string): TokenScope[] | null {
  if (OPEN_PATHS.includes(path)) return null;
  const under = (prefix: string) => path === prefix || path.startsWith(`${prefix}/`);
  const reads = method === "GET" || method === "HEAD" || method === "OPTIONS";
  if (path === SCHEDULER_PATH || under("/api/v1/schedulers")) return ["peer"];
  if (under("/api/v1/jobs")) return ["job"];
  if (under("/api/v1/scheduler-clusters")) return reads ? ["cluster", "job"] : ["cluster"];
  if (under("/api/v1/personal-access-tokens")) return ["admin"];
  return ["job", "cluster"];
}

/** Whether the caller has one of the scopes. */
export function allows(caller: Caller, needed: readonly TokenScope[]): boolean {
  return caller.scopes.includes("admin") || needed.some((scope) => caller.scopes.includes(scope));
}

/**
 * Whether a request to a loopback listener was meant for it. A page of a
 * foreign name that resolves to loopback (DNS rebinding) carries its own name.
 *
 * @param hostname as `URL.hostname` has it
 */
export function isLocalName(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** Whether a browser sent this request from a page of this very origin (or no browser sent it). */
export function isOwnOrigin(origin: string | undefined, host: string): boolean {
  return origin === undefined || URL.parse(origin)?.host === host;
}
