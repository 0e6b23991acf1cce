/**
 * Decides where Lacewing keeps its socket, its work home and its logs when
 * nobody says: the system's folders where they can be written, else folders of
 * the user. Pure, and called alike by client and daemon, so that they meet.
 */

/** What the rules need to know about machine and user. */
export interface PathFacts {
  /** As `Deno.build.os`. */
  readonly platform: string;
  /** User id; null where the system has none. */
  readonly uid: number | null;
  /** An environment variable, undefined when not set. */
  readonly env: (name: string) => string | undefined;
  /** Whether files can be made in the folder: it is there and writable, or can be made. */
  readonly writable: (folder: string) => boolean;
}

/** The daemon's socket path. */
export interface SocketPath {
  readonly path: string;
  /** Whether it is the user's own place, because the system's folder cannot be written. */
  readonly fallback: boolean;
}

/** Where a daemon of this user listens. */
export function defaultSocket(facts: PathFacts): SocketPath {
  const system = systemSocket(facts);
  return facts.writable(parentOf(system))
    ? { path: system, fallback: false }
    : { path: userSocket(facts), fallback: true };
}

/**
 * Where a client looks, in this order: a daemon of the system serves users who
 * could not start one there themselves.
 */
export function socketCandidates(facts: PathFacts): string[] {
  return [...new Set([systemSocket(facts), defaultSocket(facts).path])];
}

/** The daemon's work home. */
export function defaultWorkHome(facts: PathFacts): string {
  const system = "/var/lib/lacewing";
  return facts.writable(system) ? system : userState(facts);
}

/** Folder of the log files of client or daemon. */
export function defaultLogDir(facts: PathFacts, process: "client" | "daemon"): string {
  const system = `/var/log/lacewing/${process}`;
  return facts.writable(system) ? system : `${userState(facts)}/${process}`;
}

function systemSocket({ platform }: PathFacts): string {
  return platform === "darwin" ? "/tmp/daemon.sock" : "/var/run/daemon.sock";
}

function userSocket({ env, uid }: PathFacts): string {
  const runtime = absolute(env("XDG_RUNTIME_DIR"));
  return `${runtime === null ? `/tmp/lacewing-${uid ?? "user"}` : `${runtime}/lacewing`}/daemon.sock`;
}

function userState({ env, uid }: PathFacts): string {
  const state = absolute(env("XDG_STATE_HOME"));
  if (state !== null) return `${state}/lacewing`;
  const home = absolute(env("HOME"));
  return home === null ? `/tmp/lacewing-${uid ?? "user"}` : `${home}/.local/state/lacewing`;
}

/** The XDG rule: a path that is not absolute counts as not set. */
function absolute(path: string | undefined): string | null {
  return path !== undefined && path.startsWith("/") ? path.replace(/\/+$/, "") || "/" : null;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
