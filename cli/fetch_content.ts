/**
 * One content from wherever it is best had: the daemon of this host, and where
 * there can be none or it fails, the origin itself. The output gets its name
 * only when every byte is there and checked.
 */
import { formatDigest } from "../peer/core/digest_text.ts";
import { type ErrorCode, LacewingError } from "../peer/core/errors.ts";
import type { Logger } from "../peer/core/log.ts";
import { machineFacts } from "../peer/core/machine.ts";
import type { RateLimiter } from "../peer/core/rate_limit.ts";
import { connectDaemon, type DaemonConnection } from "../peer/ipc/client.ts";
import type { Source } from "../peer/source/source.ts";
import type { CommandContext } from "./context.ts";
import { downloadByDaemon } from "./daemon_download.ts";
import { findDaemon, type Found, startDaemon } from "./daemon_process.ts";
import type { Delivery } from "./delivery.ts";
import type { LinkedOutput } from "./linked_output.ts";
import { lstat, OutputError } from "./output_file.ts";
import { partialPath } from "./output_path.ts";
import type { Progress } from "./progress.ts";
import type { DownloadSettings } from "./settings.ts";
import type { Summary } from "./summary.ts";

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

/** One content with everything that its download needs. */
export interface ContentJob {
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
  /** Finds the daemon, or says why there is none. */
  readonly find: () => Promise<Found<DaemonConnection>>;
  /** Opens the origin for a client that must read it itself. */
  readonly openSource: () => Promise<Source & AsyncDisposable>;
  /** Keeps this and other downloads of the client itself to a rate; default: the settings' own rate. */
  readonly limiter?: RateLimiter;
}

/** Where the bytes came from, and how the origin dates them. */
export type Outcome = Omit<Summary, "elapsedMs"> & { readonly stats: { readonly last_modified?: string } };

/** Downloads by the daemon, else from the origin; when this resolves, the output has its name. */
export async function fetchContent(job: ContentJob): Promise<Outcome> {
  const reason = await byDaemon(job);
  return typeof reason === "string" ? await byOrigin(job, reason) : reason;
}

/** The daemon of this host, started where none runs, and the origin as that daemon would read it. */
export function usualReach(
  settings: DownloadSettings,
  { context: { cwd, clock, env, tracer }, log, signal }: Pick<ContentJob, "context" | "log" | "signal">,
): Pick<ContentJob, "find" | "openSource"> {
  return {
    find: () =>
      findDaemon(settings, {
        facts: machineFacts(),
        cwd,
        clock,
        log,
        signal,
        connect: connectDaemon,
        start: startDaemon,
      }),
    openSource: async () => {
      const { originSource } = await import("./direct/origin_source.ts");
      const source = await originSource(settings, { cwd, env, log });
      if (tracer === undefined) return source;
      const { traceSource } = await import("../peer/source/traced_source.ts");
      const traced = traceSource(source, tracer, { parent: () => settings.traceparent, attributes: {} });
      return { ...traced, [Symbol.asyncDispose]: () => source[Symbol.asyncDispose]() };
    },
  };
}

/** @returns what came of it, or why the client must do it alone */
async function byDaemon(job: ContentJob): Promise<Outcome | string> {
  const { settings, linked, log, signal } = job;
  const needsDaemon = settings.disableBackSource || linked !== null;
  const found = await job.find();
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
    await removeLeft(job.delivery.path);
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

/** Forgets what a run without the daemon has left, now that the content is there. */
async function removeLeft(output: string | null): Promise<void> {
  if (output === null || await lstat(partialPath(output)) === null) return;
  const { PartialFile } = await import("./partial_file.ts");
  (await PartialFile.open(output, { taskId: "", url: "" }))?.remove();
}

async function byOrigin(job: ContentJob, reason: string): Promise<Outcome> {
  const { settings, context, signal, log, delivery } = job;
  job.say(`${reason}; downloading from the origin itself`);
  log.info("downloading without a daemon", { reason });
  delivery.restart();
  const { downloadDirect } = await import("./commands/direct.ts");
  await using source = await job.openSource();
  const { length, lastModified } = await downloadDirect(settings, delivery, {
    source,
    clock: context.clock,
    signal,
    ...(job.limiter === undefined ? {} : { limiter: job.limiter }),
    onProgress: job.onProgress,
    say: job.say,
  });
  const verified = settings.digest === null ? null : formatDigest(settings.digest);
  return {
    stats: {
      length,
      from_local: 0,
      from_peers: 0,
      from_source: length,
      peers: 0,
      verified,
      ...(lastModified === null ? {} : { last_modified: lastModified }),
    },
    direct: true,
  };
}
