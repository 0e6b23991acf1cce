/**
 * The daemon's Unix socket: takes downloads from clients of this machine and
 * answers in JSON lines (`peer/core/wire/ipc.ts`). The socket is made with mode
 * 0600: only the daemon's own user (and root) may ask it, because it reads and
 * hands out files with the daemon's rights.
 *
 * Keeps: one daemon per path (a socket that nobody serves is replaced); a
 * client that goes away ends its run; a stop ends every run with an error line.
 */
import { dirname } from "node:path";
import { LacewingError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { TaskStarter } from "../task/task.ts";
import { IpcSession, type IpcSessionDeps, type IpcStatus } from "./session.ts";

export interface IpcServerDeps {
  readonly tasks: TaskStarter;
  /** What `status` answers. */
  readonly status: () => IpcStatus;
  /** What `explain` answers; without it the question is refused. */
  readonly explain?: IpcSessionDeps["explain"];
  readonly log: Logger;
  /** Where the store's files are, for clients that link them. */
  readonly dataDir?: string;
}

export interface IpcServer extends AsyncDisposable {
  readonly path: string;
  /** Clients that are connected now. */
  readonly connectionCount: number;
}

/** More than that many clients at once are turned away. */
const CONNECTIONS_MAX = 1024;
/** How long a client may take to read its last line when the daemon stops. */
const FAREWELL_MS = 1_000;
const ACCEPT_PAUSE_MS = 100;

/**
 * Begins to listen at `path`; its folder is made (0755) if it is missing.
 *
 * @throws {LacewingError} `already_running` when another daemon answers there, `file` when the socket cannot be made
 */
export async function startIpcServer(deps: IpcServerDeps, { path }: { path: string }): Promise<IpcServer> {
  await removeStale(path);
  return new UnixIpcServer(listen(path), deps, path);
}

class UnixIpcServer implements IpcServer {
  readonly #inode: number | null;
  readonly #sessions = new Map<IpcSession, Promise<void>>();
  readonly #accepting: Promise<void>;
  #isStopping = false;

  constructor(
    private readonly listener: Deno.UnixListener,
    private readonly deps: IpcServerDeps,
    readonly path: string,
  ) {
    this.#inode = inodeOf(path);
    this.#accepting = this.#accept();
  }

  get connectionCount(): number {
    return this.#sessions.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    await this.#stopListening();
    const reason = new LacewingError("unavailable", "The daemon is stopping; start it again or retry later");
    for (const session of this.#sessions.keys()) session.stop(reason);
    const timer = setTimeout(() => {
      for (const session of this.#sessions.keys()) session.close();
    }, FAREWELL_MS);
    await Promise.all(this.#sessions.values());
    clearTimeout(timer);
  }

  /**
   * Closing a Unix listener removes whatever is at its path once the last
   * accept has ended, also the socket of a daemon that was started meanwhile.
   */
  async #stopListening(): Promise<void> {
    const inode = inodeOf(this.path);
    const aside = inode === null || inode === this.#inode ? null : `${this.path}.${Deno.pid}`;
    if (aside !== null) await Deno.rename(this.path, aside).catch(() => {});
    this.listener.close();
    await this.#accepting;
    if (aside !== null) await Deno.rename(aside, this.path).catch(() => {});
  }

  async #accept(): Promise<void> {
    while (!this.#isStopping) {
      try {
        this.#serve(await this.listener.accept());
      } catch (error) {
        if (this.#isStopping) return;
        this.deps.log.warn("Cannot accept a client", { error });
        await new Promise((resolve) => setTimeout(resolve, ACCEPT_PAUSE_MS));
      }
    }
  }

  #serve(conn: Deno.UnixConn): void {
    if (this.#isStopping || this.#sessions.size >= CONNECTIONS_MAX) return conn.close();
    const session = new IpcSession(conn, this.deps);
    this.#sessions.set(session, session.run().finally(() => this.#sessions.delete(session)));
  }
}

/** Leaves nothing at `path` that would hinder a start. */
async function removeStale(path: string): Promise<void> {
  try {
    const conn = await Deno.connect({ transport: "unix", path });
    conn.close();
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return;
    if (!(cause instanceof Deno.errors.ConnectionRefused)) throw cannotListen(path, cause);
    const stat = await Deno.lstat(path).catch(() => null);
    if (stat !== null && !stat.isSocket) throw cannotListen(path, new Error("there is a file that is no socket"));
    await Deno.remove(path).catch(() => {});
    return;
  }
  throw new LacewingError(
    "already_running",
    `Cannot listen at ${path}: another daemon answers there; stop it or give --daemon-sock another path`,
  );
}

function listen(path: string): Deno.UnixListener {
  try {
    Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    const listener = Deno.listen({ transport: "unix", path });
    Deno.chmodSync(path, 0o600);
    return listener;
  } catch (cause) {
    throw cannotListen(path, cause);
  }
}

function cannotListen(path: string, cause: unknown): LacewingError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new LacewingError("file", `Cannot listen at ${path}: ${reason}; give --daemon-sock another path`, { cause });
}

function inodeOf(path: string): number | null {
  try {
    return Deno.lstatSync(path).ino;
  } catch {
    return null;
  }
}
