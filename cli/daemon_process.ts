/**
 * Finds the daemon of this host, or starts one in a session of its own and
 * waits until it answers. A daemon that cannot be started is no failure here:
 * the caller gets the reason, and goes to the origin.
 */
import type { Clock } from "../peer/core/clock.ts";
import { LacewingError } from "../peer/core/errors.ts";
import type { Logger } from "../peer/core/log.ts";
import { ensurePrivateFolder } from "../peer/core/machine.ts";
import { defaultSocket, type PathFacts, socketCandidates } from "../peer/core/paths.ts";
import { absolutePath, splitPath } from "./output_path.ts";
import type { DaemonSettings } from "./settings.ts";

/** How long a started daemon may take to answer, INTERFACE section 2. */
const START_TIMEOUT_MS = 5_000;
/** How much longer another daemon may take that was started in the same moment; else it runs, at a socket of its own. */
const OTHER_TIMEOUT_MS = 2_000;
/** A try takes 0.3 ms. */
const RETRY_MS = 5;
/** Exit code of a daemon that found another one on its work home. */
const ALREADY_RUNNING_CODE = 1;
/** Tells the daemon that it may leave when there is no work (5 min unless its configuration says otherwise). */
const STARTED_BY_CLIENT = { LACEWING_STARTED_BY_CLIENT: "1" };
const MESSAGE_LENGTH_MAX = 300;
/** As for all that may be a daemon (.ci/deno.ts). */
const V8_FLAGS = ["--v8-flags=--max-semi-space-size=1"];
/** As in the first line of a bundle (.ci/compile.ts); without them it would be read by the configuration around it. */
const BUNDLE_FLAGS = [
  ...["--ext=js", "--no-config", "--no-lock", "--no-prompt", "--no-remote", "--no-npm"],
  "--unstable-no-legacy-abort",
];

export interface FindOptions<Connection> {
  readonly facts: PathFacts;
  readonly cwd: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Rejects where no daemon answers. */
  readonly connect: (socket: string) => Promise<Connection>;
  readonly start: (args: readonly string[]) => Promise<StartedDaemon>;
}

/** A daemon process that this client started. */
export interface StartedDaemon extends Disposable {
  readonly pid: number;
  /** Its exit code once it has ended, else null. */
  exitCode(): number | null;
  /** What it said on stderr so far. */
  output(): string;
}

/** A connection, or why there is none. */
export type Found<Connection> =
  | { readonly connection: Connection; readonly socket: string; readonly startedPid: number | null }
  | { readonly connection: null; readonly reason: string };

/** Connects to the daemon that runs, else to one that it starts. */
export async function findDaemon<Connection>(
  settings: DaemonSettings,
  options: FindOptions<Connection>,
): Promise<Found<Connection>> {
  const { facts, cwd, log } = options;
  const told = settings.socket === null ? null : absolutePath(settings.socket, cwd);
  for (const socket of told === null ? socketCandidates(facts) : [told]) {
    try {
      return { connection: await options.connect(socket), socket, startedPid: null };
    } catch (error) {
      options.signal.throwIfAborted();
      log.debug("no daemon answers", { socket, reason: reasonOf(error) });
    }
  }
  try {
    return await startAndConnect(told ?? ownSocket(facts), settings, options);
  } catch (error) {
    options.signal.throwIfAborted();
    return { connection: null, reason: reasonOf(error) };
  }
}

/** Arguments that start a daemon with the same files as this client. */
export function daemonArgs(settings: DaemonSettings, { socket, cwd }: { socket: string; cwd: string }): string[] {
  const path = (name: string, value: string | null) => value === null ? [] : [`--${name}`, absolutePath(value, cwd)];
  return [
    ...path("daemon-sock", socket),
    ...path("config", settings.config),
    ...path("workhome", settings.workHome),
    ...path("logdir", settings.logDir),
    ...(settings.verbose ? ["--verbose"] : []),
    ...(settings.jaeger === null ? [] : ["--jaeger", settings.jaeger]),
  ];
}

async function startAndConnect<Connection>(
  socket: string,
  settings: DaemonSettings,
  { facts, cwd, clock, connect, log, signal, start }: FindOptions<Connection>,
): Promise<Found<Connection>> {
  const { folder } = splitPath(socket);
  if (!facts.writable(folder)) {
    // The daemon would find out, too, and be 150 ms late with it.
    throw new LacewingError("no_daemon", `no socket can be made in ${folder}; give --daemon-sock another path`);
  }
  using daemon = await start(daemonArgs(settings, { socket, cwd }));
  log.info("started a daemon", { socket, pid: daemon.pid });
  let deadlineMs = clock.nowMs() + START_TIMEOUT_MS;
  let isOver = false;
  while (true) {
    await clock.sleep(RETRY_MS, signal);
    const code = daemon.exitCode();
    try {
      // Also after its end: two clients may start one at once, and the other's daemon answers then.
      return { connection: await connect(socket), socket, startedPid: daemon.pid };
    } catch {
      signal.throwIfAborted();
    }
    const isLost = code !== null && code !== ALREADY_RUNNING_CODE;
    if (code !== null && !isOver) deadlineMs = Math.min(deadlineMs, clock.nowMs() + OTHER_TIMEOUT_MS);
    isOver = code !== null;
    if (isLost || clock.nowMs() >= deadlineMs) throw new LacewingError("no_daemon", whyNot(daemon, code));
  }
}

function whyNot(daemon: StartedDaemon, code: number | null): string {
  const said = daemon.output().trim().split("\n").at(-1)?.replace(/^lacewing(-peer)?: /, "") ?? "";
  const text = said.slice(0, MESSAGE_LENGTH_MAX);
  if (code === null) return `the daemon that was started did not answer within ${START_TIMEOUT_MS / 1000} s`;
  return text === "" ? `the daemon that was started ended with exit code ${code}` : `the daemon says: ${text}`;
}

/** Where this user's daemon listens; the folder of the user's own place is made for this user alone. */
function ownSocket(facts: PathFacts): string {
  const { path, fallback } = defaultSocket(facts);
  if (fallback) ensurePrivateFolder(splitPath(path).folder);
  return path;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Starts `lacewing daemon ARGS` apart from this process: its session, its folder, none of its pipes. A shell opens the
 * file for what it says on stderr: node's own way to do that takes 25 ms to load, of the 130 until a daemon answers.
 */
export async function startDaemon(args: readonly string[]): Promise<StartedDaemon> {
  const { command, args: before } = selfCommand();
  // A file, not a pipe: the daemon goes on writing when this process is gone.
  const outputPath = await Deno.makeTempFile({ prefix: "lacewing-daemon-" });
  let exitCode: number | null = null;
  const child = new Deno.Command("/bin/sh", {
    args: ["-c", 'exec "$@" 2>>"$0"', outputPath, command, ...before, "daemon", ...args],
    cwd: "/",
    detached: true,
    env: STARTED_BY_CLIENT,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  child.unref();
  child.status.then(({ code }) => exitCode = code, () => exitCode = 127);
  return {
    pid: child.pid,
    exitCode: () => exitCode,
    output: () => Deno.readTextFileSync(outputPath),
    [Symbol.dispose]: () => Deno.removeSync(outputPath),
  };
}

/** How this very program is run again: as an executable, as a single file, or from source under the same import map. */
export function selfCommand(): { command: string; args: string[] } {
  const command = Deno.execPath();
  if (Deno.build.standalone) return { command, args: [] };
  const own = new URL(import.meta.url);
  if (!own.pathname.endsWith(".ts")) return { command, args: ["run", "-A", ...V8_FLAGS, ...BUNDLE_FLAGS, own.href] };
  const root = decodeURIComponent(new URL("..", own).pathname);
  const isNpmMap = import.meta.resolve("@std/cli/parse-args").startsWith("file:");
  const map = isNpmMap ? [`--import-map=${root}import_map.npm.json`] : [];
  const settings = [...V8_FLAGS, "--no-lock", `--config=${root}deno.json`, ...map];
  return { command, args: ["run", "-A", ...settings, `${root}cli/main.ts`] };
}
