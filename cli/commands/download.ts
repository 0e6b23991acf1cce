/**
 * `lacewing <url> -O <path>`: asks the daemon of this host, starts one where
 * none runs, and goes to the origin itself where there can be none or where it
 * fails. The output gets its name only when every byte is there and checked.
 */
import { formatDigest } from "../../peer/core/digest_text.ts";
import { type ErrorCode, LacewingError } from "../../peer/core/errors.ts";
import type { Logger } from "../../peer/core/log.ts";
import { machineFacts } from "../../peer/core/machine.ts";
import { formatDuration } from "../../peer/core/units.ts";
import { connectDaemon } from "../../peer/ipc/client.ts";
import { openClientLog } from "../client_log.ts";
import type { CommandContext } from "../context.ts";
import { downloadByDaemon } from "../daemon_download.ts";
import { findDaemon, startDaemon } from "../daemon_process.ts";
import { Delivery } from "../delivery.ts";
import { LinkedOutput } from "../linked_output.ts";
import { OutputError, OutputFile } from "../output_file.ts";
import { absolutePath, outputPath, splitPath } from "../output_path.ts";
import type { ParsedCommand } from "../parse.ts";
import { type Progress, ProgressDisplay } from "../progress.ts";
import { type DownloadSettings, readDownloadSettings } from "../settings.ts";
import { renderSummary, type Summary } from "../summary.ts";
import { safeLine } from "../terminal.ts";

/** Failures of the daemon itself, not of the origin or the content: then the client may do better alone. */
const DAEMON_FAULTS: readonly ErrorCode[] = [
  "unknown",
  "protocol",
  "peer_failed",
  "unavailable",
  "no_daemon",
  "disk_full",
  "file",
];

/** One download with everything it needs. */
interface Job {
  readonly settings: DownloadSettings;
  readonly context: CommandContext;
  /** The user's signals and the timeout. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly delivery: Delivery;
  /** Takes the place of the delivery for --original-offset. */
  readonly linked: LinkedOutput | null;
  readonly onProgress: (progress: Progress) => void;
  /** Says a line on stderr. */
  readonly say: (message: string) => void;
}

type Outcome = Omit<Summary, "elapsedMs">;

/** @throws {LacewingError} with the code of what went wrong */
export async function download(parsed: ParsedCommand, context: CommandContext): Promise<void> {
  const settings = readDownloadSettings(parsed, context.env);
  const startedMs = context.clock.nowMs();
  using deadline = startDeadline(settings.timeoutMs, context.signal);
  const { signal } = deadline;
  using clientLog = openClientLog(settings, { facts: machineFacts(), cwd: context.cwd });
  const { log } = clientLog;
  try {
    await checkConfig(settings, context);
    const path = settings.output === "-"
      ? null
      : outputPath(settings.output, { ...context, url: settings.url, isFolder });
    const linked = path === null || !settings.originalOffset ? null : await LinkedOutput.prepare(path, {
      digest: settings.digest,
      signal,
    });
    using output = path === null || linked !== null ? null : await OutputFile.prepare(path);
    using _cleanup = onExit(context, () => output?.discard());
    log.info("download", { url: settings.url, output: path, tag: settings.tag, filter: settings.filter });
    const outcome = await run(settings, {
      context,
      signal,
      log,
      output,
      linked,
      name: path === null ? "-" : splitPath(path).base,
    });
    const elapsedMs = context.clock.nowMs() - startedMs;
    log.info("done", { ...outcome.stats, direct: outcome.direct, elapsed_ms: Math.round(elapsedMs) });
    context.terminal.write(`${safeLine(renderSummary({ ...outcome, elapsedMs }))}\n`);
  } catch (error) {
    const reason = signal.aborted ? signal.reason : error;
    log.error("failed", { error: reason });
    throw reason;
  }
}

async function run(
  settings: DownloadSettings,
  { context, signal, log, output, linked, name }: Pick<Job, "context" | "signal" | "log" | "linked"> & {
    output: OutputFile | null;
    name: string;
  },
): Promise<Outcome> {
  using display = settings.showProgress ? new ProgressDisplay(context.terminal, { name, clock: context.clock }) : null;
  const delivery = new Delivery({ output, digest: settings.digest, signal });
  const job: Job = {
    settings,
    context,
    signal,
    log,
    linked,
    delivery,
    onProgress: (progress) => display?.update(progress),
    say: (message) => {
      const line = `lacewing: ${safeLine(message)}`;
      if (display === null) context.terminal.write(`${line}\n`);
      else display.say(line);
    },
  };
  const reason = await byDaemon(job);
  return typeof reason === "string" ? await byOrigin(job, reason) : reason;
}

/** @returns what came of it, or why the client must do it alone */
async function byDaemon(job: Job): Promise<Outcome | string> {
  const { settings, context, linked, log, signal } = job;
  const needsDaemon = settings.disableBackSource || linked !== null;
  const found = await findDaemon(settings, {
    facts: machineFacts(),
    cwd: context.cwd,
    clock: context.clock,
    log,
    signal,
    connect: connectDaemon,
    start: startDaemon,
  });
  if (found.connection === null) {
    if (!needsDaemon) return `no daemon (${found.reason})`;
    throw new LacewingError("no_daemon", `Cannot download without a daemon: ${found.reason}`);
  }
  if (settings.verbose) {
    const started = found.startedPid === null ? "" : `, started as process ${found.startedPid}`;
    job.say(`daemon at ${found.socket}${started}`);
  }
  try {
    using connection = found.connection;
    const stats = await downloadByDaemon(
      connection,
      linked === null ? job : { ...job, delivery: linked, onAccepted: ({ dataDir }) => linked.checkDaemon(dataDir) },
    );
    return { stats, direct: false };
  } catch (error) {
    signal.throwIfAborted();
    const isDaemonFault = error instanceof LacewingError && !(error instanceof OutputError) &&
      DAEMON_FAULTS.includes(error.code);
    if (!isDaemonFault || needsDaemon || (job.delivery.toStdout && job.delivery.written > 0)) {
      throw error;
    }
    log.warn("the daemon failed", { error });
    return `the daemon failed (${error.message})`;
  }
}

async function byOrigin(job: Job, reason: string): Promise<Outcome> {
  const { settings, context, signal, log, delivery } = job;
  job.say(`${reason}; downloading from the origin itself`);
  log.info("downloading without a daemon", { reason });
  delivery.restart();
  const [{ originSource }, { downloadDirect }] = await Promise.all([
    import("../direct/origin_source.ts"),
    import("./direct.ts"),
  ]);
  await using source = await originSource(settings.config, { cwd: context.cwd, log });
  const length = await downloadDirect(settings, delivery, {
    source,
    clock: context.clock,
    signal,
    onProgress: job.onProgress,
  });
  await delivery.finish(length);
  const verified = settings.digest === null ? null : formatDigest(settings.digest);
  return { stats: { length, from_local: 0, from_peers: 0, from_source: length, peers: 0, verified }, direct: true };
}

/** A configuration that was named must be there, whoever reads it in the end. */
async function checkConfig({ config }: DownloadSettings, { cwd }: CommandContext): Promise<void> {
  if (config === null) return;
  const path = absolutePath(config, cwd);
  try {
    (await Deno.open(path)).close();
  } catch (cause) {
    const reason = cause instanceof Deno.errors.NotFound ? "no such file" : "it cannot be read";
    throw new LacewingError("config_invalid", `Cannot read configuration ${path}: ${reason}`, { cause });
  }
}

/** A signal that ends with the user's signals, or after `timeoutMs`; 0 never. */
function startDeadline(timeoutMs: number, signal: AbortSignal): Disposable & { signal: AbortSignal } {
  if (timeoutMs === 0) return { signal, [Symbol.dispose]: () => {} };
  const late = new AbortController();
  const reason = new LacewingError("timeout", `Cannot finish within ${formatDuration(timeoutMs)}, the --timeout`);
  // Longer than a timer can count (24 days) is as good as never.
  const timer = setTimeout(() => late.abort(reason), Math.min(timeoutMs, 2 ** 31 - 1));
  return { signal: AbortSignal.any([signal, late.signal]), [Symbol.dispose]: () => clearTimeout(timer) };
}

function onExit({ cleanups }: CommandContext, cleanup: () => void): Disposable {
  cleanups.add(cleanup);
  return { [Symbol.dispose]: () => cleanups.delete(cleanup) };
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}
