/**
 * `--recursive`: everything below a URL into a folder, eight files at once,
 * each by the same code as a single download. A file that fails does not stop
 * the others: the end names each failure, and the worst decides the exit code.
 *
 * A second run leaves a file alone that has the origin's length and
 * Last-Modified: every download gets its date.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import type { Logger } from "../../peer/core/log.ts";
import { RateLimiter } from "../../peer/core/rate_limit.ts";
import { connectDaemon, type DaemonConnection } from "../../peer/ipc/client.ts";
import type { Listing, ListRequest } from "../../peer/source/listing/listing.ts";
import type { Sources } from "../../peer/source/sources.ts";
import type { CommandContext } from "../context.ts";
import type { Found as FoundDaemon } from "../daemon_process.ts";
import { originSource } from "../direct/origin_source.ts";
import { usualReach } from "../fetch_content.ts";
import { absolutePath } from "../output_path.ts";
import { ProgressDisplay } from "../progress.ts";
import type { DownloadSettings, RecursiveSettings } from "../settings.ts";
import { safeLine, writeStdout } from "../terminal.ts";
import { FindQueue } from "./find_queue.ts";
import { makeFolders } from "./local_file.ts";
import { RateShare } from "./rate_share.ts";
import { TreeFiles } from "./tree_files.ts";
import { folderName } from "./tree_path.ts";
import { TreeReport } from "./tree_report.ts";
import { type Found, type FoundFile, walk } from "./walk.ts";

/** INTERFACE section 2. */
const FILES_AT_ONCE = 8;
/** Finds ahead of the downloads, so that the progress knows how much there is. */
const FINDS_AHEAD = 10_000;

export type TreeSettings = DownloadSettings & { readonly recursive: RecursiveSettings };

interface Surroundings {
  readonly context: CommandContext;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** @throws {LacewingError} what kept the folder from being listed, or the worst failure of its files */
export async function downloadTree(settings: TreeSettings, around: Surroundings): Promise<void> {
  const { context, signal, log } = around;
  const startedMs = context.clock.nowMs();
  await using source = await originSource(settings, { ...context, log });
  const origin = await Origin.open(settings, source, signal);
  const report = new TreeReport();
  if (settings.recursive.list) await printUrls(origin, report);
  else await saveFiles({ settings, around, origin, report });
  for (const line of report.failures()) context.terminal.write(`lacewing: ${safeLine(line)}\n`);
  const elapsedMs = context.clock.nowMs() - startedMs;
  if (!settings.recursive.list) context.terminal.write(`${safeLine(report.summary(elapsedMs))}\n`);
  log.info("done", { url: settings.url, summary: report.summary(elapsedMs) });
  const worst = report.worst();
  if (worst !== null) throw worst;
}

/** The folder's origin: what is below, and what may be sent there. */
class Origin {
  private constructor(
    readonly settings: TreeSettings,
    readonly source: Sources,
    readonly signal: AbortSignal,
    readonly root: Listing,
    /** Whether the folder lies where the caller's headers and user info may go. */
    private readonly isOwn: boolean,
  ) {}

  /** @throws {LacewingError} why the URL's folder cannot be listed */
  static async open(settings: TreeSettings, source: Sources, signal: AbortSignal): Promise<Origin> {
    const { url, headers } = settings;
    const root = await source.list({ url, headers, start: null }, { signal });
    return new Origin(settings, source, signal, root, new URL(root.start).origin === new URL(url).origin);
  }

  get headers(): ListRequest["headers"] {
    return this.isOwn ? this.settings.headers : [];
  }

  /** The URL with the user info that the caller gave for its origin. */
  withUser(url: string): string {
    const { username, password } = new URL(this.settings.url);
    if (!this.isOwn || (username === "" && password === "")) return url;
    const own = new URL(url);
    own.username = username;
    own.password = password;
    return own.href;
  }

  /** All finds that the user wants. */
  async *finds(): AsyncGenerator<Found, void> {
    const { accept, reject, level, unlimited } = this.settings.recursive;
    const { headers, signal } = this;
    const list = (request: ListRequest) =>
      this.source.list({ ...request, url: this.withUser(request.url) }, { signal });
    for await (const found of walk(this.root, { list, headers, level, unlimited, signal })) {
      if (found.kind === "file" && (accept?.test(found.url) === false || reject?.test(found.url) === true)) continue;
      yield found;
    }
  }
}

async function printUrls(origin: Origin, report: TreeReport): Promise<void> {
  for await (const found of origin.finds()) {
    if (found.kind === "file") await writeStdout(`${found.url}\n`);
    if (found.kind === "failure") report.failed(found.what, found.error);
  }
}

interface Saving {
  readonly settings: TreeSettings;
  readonly around: Surroundings;
  readonly origin: Origin;
  readonly report: TreeReport;
}

async function saveFiles({ settings, around, origin, report }: Saving): Promise<void> {
  const { context, signal } = around;
  const root = absolutePath(settings.output ?? folderName(settings.url), context.cwd);
  await makeFolders(root, []);
  const queue = new FindQueue<Found>(FINDS_AHEAD);
  using display = settings.showProgress ? treeDisplay(root, { context, report, queue }) : null;
  const say = sayOnce((line) => display === null ? context.terminal.write(`${line}\n`) : display.say(line));
  const find = daemonFinder(settings, around, say);
  if (settings.disableBackSource) await needDaemon(find);
  const files = new TreeFiles({
    ...around,
    settings: { ...settings, headers: origin.headers },
    root,
    report,
    say,
    source: origin.source,
    withUser: (url) => origin.withUser(url),
    limiter: new RateLimiter(context.clock, settings.rateLimitBytesPerSecond),
    share: new RateShare(settings.rateLimitBytesPerSecond, FILES_AT_ONCE),
    find,
    waiting: () => queue.count,
    onProgress: () => display?.update(report.total(queue.isClosed)),
  });
  const feeding = feed(queue, { origin, report });
  const workers = Array.from({ length: FILES_AT_ONCE }, async () => {
    for (let found = await queue.take(); found !== undefined; found = await queue.take()) {
      await handle(found, { files, settings, root, report, signal });
    }
  });
  const ends = await Promise.allSettled(workers);
  queue.close();
  await feeding;
  signal.throwIfAborted();
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

async function handle(
  found: Found,
  { files, settings, root, report, signal }: {
    files: TreeFiles;
    settings: TreeSettings;
    root: string;
    report: TreeReport;
    signal: AbortSignal;
  },
): Promise<void> {
  if (found.kind === "failure") return report.failed(found.what, found.error);
  const { accept, reject } = settings.recursive;
  try {
    if (found.kind === "file") await files.save(found);
    // A folder that only holds what is not wanted would stand there empty.
    else if (accept === null && reject === null) await makeFolders(root, found.path);
  } catch (error) {
    signal.throwIfAborted();
    report.failed(nameOf(found), error, found.kind === "file" ? found : undefined);
  }
}

async function feed(queue: FindQueue<Found>, { origin, report }: Pick<Saving, "origin" | "report">): Promise<void> {
  try {
    for await (const found of origin.finds()) {
      if (found.kind === "file") report.found(found);
      await queue.put(found);
      if (queue.isClosed) return;
    }
    queue.close();
  } catch (error) {
    queue.close(error);
  }
}

/**
 * The way to ask the daemon for each file. It is found when the first file needs it, once: eight files shall not start
 * eight daemons, and a run that finds nothing to do shall start none.
 */
function daemonFinder(
  settings: TreeSettings,
  around: Surroundings,
  say: (message: string) => void,
): () => Promise<FoundDaemon<DaemonConnection>> {
  let looked: Promise<{ socket: string } | { reason: string }> | undefined;
  const look = async () => {
    const found = await usualReach(settings, around).find();
    if (found.connection === null) return { reason: found.reason };
    found.connection[Symbol.dispose]();
    const started = found.startedPid === null ? "" : `, started as process ${found.startedPid}`;
    if (settings.verbose) say(`daemon at ${found.socket}${started}`);
    return { socket: found.socket };
  };
  return async () => {
    looked ??= look();
    const place = await looked;
    if ("reason" in place) return { connection: null, reason: place.reason };
    try {
      return { connection: await connectDaemon(place.socket), socket: place.socket, startedPid: null };
    } catch (error) {
      return { connection: null, reason: error instanceof Error ? error.message : String(error) };
    }
  };
}

/** Without a daemon and without the origin every file would fail: that is said once. */
async function needDaemon(find: () => Promise<FoundDaemon<DaemonConnection>>): Promise<void> {
  const found = await find();
  if (found.connection === null) {
    throw new LacewingError("no_daemon", `Cannot download without a daemon: ${found.reason}`);
  }
  found.connection[Symbol.dispose]();
}

function treeDisplay(
  root: string,
  { context, report, queue }: { context: CommandContext; report: TreeReport; queue: FindQueue<Found> },
): ProgressDisplay {
  const name = root.slice(root.lastIndexOf("/") + 1) || "/";
  const display = new ProgressDisplay(context.terminal, { name, clock: context.clock });
  display.update(report.total(queue.isClosed));
  return display;
}

/** What goes for every file is said once. */
function sayOnce(write: (line: string) => void): (message: string) => void {
  const said = new Set<string>();
  return (message) => {
    if (said.has(message) || said.size >= 20) return;
    said.add(message);
    write(`lacewing: ${safeLine(message)}`);
  };
}

function nameOf(found: FoundFile | Extract<Found, { kind: "folder" }>): string {
  return found.kind === "file" ? found.url : found.path.join("/");
}
