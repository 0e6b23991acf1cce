/**
 * Saves one file of a tree: leaves it alone where it is what the origin has,
 * else downloads it as a single download does, with its part of the rate.
 */
import type { Logger } from "../../peer/core/log.ts";
import type { RateLimiter } from "../../peer/core/rate_limit.ts";
import { timeOf } from "../../peer/source/listing/links.ts";
import type { Sources } from "../../peer/source/sources.ts";
import type { CommandContext } from "../context.ts";
import { orderOf } from "../daemon_download.ts";
import { Delivery } from "../delivery.ts";
import { type ContentJob, fetchContent } from "../fetch_content.ts";
import { OutputFile } from "../output_file.ts";
import type { DownloadSettings } from "../settings.ts";
import { dateFile, isCurrent, lookBelow, type RemoteFile } from "./local_file.ts";
import type { RateShare } from "./rate_share.ts";
import type { TreeReport } from "./tree_report.ts";
import type { FoundFile } from "./walk.ts";

export interface TreeFilesDeps {
  readonly settings: DownloadSettings;
  readonly context: CommandContext;
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** The output folder, absolute. */
  readonly root: string;
  readonly report: TreeReport;
  readonly say: (message: string) => void;
  readonly source: Sources;
  readonly withUser: (url: string) => string;
  /** Of all files that the client reads itself. */
  readonly limiter: RateLimiter;
  /** Among all files that the daemon reads. */
  readonly share: RateShare;
  readonly find: ContentJob["find"];
  /** Files that wait for their turn. */
  readonly waiting: () => number;
  readonly onProgress: () => void;
}

export class TreeFiles {
  constructor(private readonly deps: TreeFilesDeps) {}

  /** @throws {LacewingError} why this file cannot be had; `signal.reason` */
  async save(found: FoundFile): Promise<void> {
    const { root, report, share, waiting, onProgress, signal } = this.deps;
    signal.throwIfAborted();
    const url = this.deps.withUser(found.url);
    const local = await lookBelow(root, found.path);
    if (local !== null && (isCurrent(local, found) ?? isCurrent(local, await this.#askOrigin(url))) === true) {
      report.unchanged(found);
      return onProgress();
    }
    const part = share.take(waiting());
    const settings = { ...this.deps.settings, url, rateLimitBytesPerSecond: part.bytesPerSecond, verbose: false };
    using boost = new RateBoost(settings, this.deps);
    part.onGrow = (bytesPerSecond) => boost.raise(bytesPerSecond);
    try {
      await this.#download(found, settings);
    } finally {
      share.release(part, waiting());
      onProgress();
    }
  }

  async #download(found: FoundFile, settings: DownloadSettings): Promise<void> {
    const { context, log, report, root, signal, onProgress } = this.deps;
    const path = [root, ...found.path].join("/");
    using output = await OutputFile.prepare(path);
    const discard = () => output.discard();
    context.cleanups.add(discard);
    try {
      const { stats } = await fetchContent({
        ...this.deps,
        settings,
        linked: null,
        delivery: new Delivery({ output, digest: null, signal }),
        onProgress: (progress) => {
          report.progress(found, progress);
          onProgress();
        },
        openSource: () => Promise.resolve(borrowed(this.deps.source)),
      });
      const modifiedMs = timeOf(stats.last_modified);
      if (modifiedMs !== null) await dateFile(path, modifiedMs);
      report.done(found, stats);
      log.info("saved", { url: found.url, output: path, ...stats });
    } finally {
      context.cleanups.delete(discard);
    }
  }

  /** Length and time as the origin says them, with a request of one byte. */
  async #askOrigin(url: string): Promise<RemoteFile> {
    const { settings, signal, source } = this.deps;
    // Who forbids to read the origin gets the file from the others.
    if (settings.disableBackSource) return { size: null, modifiedMs: null };
    const range = { offset: 0, length: 1 };
    await using body = await source.open({ url, headers: settings.headers, range }, { signal });
    return { size: body.contentLength, modifiedMs: timeOf(body.version.lastModified) };
  }
}

/**
 * Raises the rate of a download that runs in the daemon: a task receives at the
 * highest rate that any request for it asks for, so another request is made.
 */
class RateBoost implements Disposable {
  #stop = new AbortController();

  constructor(
    private readonly settings: DownloadSettings,
    private readonly deps: Pick<TreeFilesDeps, "find" | "log">,
  ) {}

  raise(bytesPerSecond: number): void {
    this.#stop.abort();
    this.#stop = new AbortController();
    this.#ask(bytesPerSecond, this.#stop.signal).catch((error) => {
      this.deps.log.debug("a larger rate was not taken", { error });
    });
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
  }

  async #ask(bytesPerSecond: number, signal: AbortSignal): Promise<void> {
    const { connection } = await this.deps.find();
    if (connection === null) return;
    using _ = connection;
    await connection.download(orderOf({ ...this.settings, rateLimitBytesPerSecond: bytesPerSecond }), { signal });
  }
}

/** A source that is closed by someone else. */
function borrowed(source: Sources): Awaited<ReturnType<ContentJob["openSource"]>> {
  return { open: (request, options) => source.open(request, options), [Symbol.asyncDispose]: () => Promise.resolve() };
}
