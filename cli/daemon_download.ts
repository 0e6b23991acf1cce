/**
 * One download over the daemon's socket: asks, follows the progress, and takes
 * the result with this user's own rights: the daemon's file by link or copy,
 * else the bytes themselves.
 */
import { formatDigest } from "../peer/core/digest_text.ts";
import { formatRange } from "../peer/core/range.ts";
import type { DownloadStats } from "../peer/core/wire/ipc.ts";
import type { DaemonConnection, DownloadOptions, DownloadOrder } from "../peer/ipc/client.ts";
import type { Delivery } from "./delivery.ts";
import type { Progress } from "./progress.ts";
import type { DownloadSettings } from "./settings.ts";

/** What of a download's settings the daemon is told. */
export type ContentSettings = Pick<
  DownloadSettings,
  | "url"
  | "headers"
  | "tag"
  | "filter"
  | "digest"
  | "range"
  | "disableBackSource"
  | "rateLimitBytesPerSecond"
  | "traceparent"
>;

/** Where a download goes, as far as the daemon's part of it matters. */
export type Target = Pick<Delivery, "toStdout" | "takeFile" | "writeAll" | "finish">;

export interface DaemonDownload {
  readonly settings: ContentSettings;
  readonly delivery: Target;
  readonly signal: AbortSignal;
  readonly onAccepted?: DownloadOptions["onAccepted"];
  readonly onProgress: (progress: Progress) => void;
}

/** Downloads by the daemon; when this resolves, the output has its name. */
export async function downloadByDaemon(connection: DaemonConnection, job: DaemonDownload): Promise<DownloadStats> {
  const { delivery, settings, signal, onAccepted, onProgress } = job;
  const options: DownloadOptions = { signal, onAccepted, onProgress };
  const order = orderOf(settings);
  const stats = delivery.toStdout
    ? await streamOut(connection, { order, options, delivery })
    : await takeOut(connection, { order, options, delivery });
  await delivery.finish(stats.length);
  return checksPart(settings) ? { ...stats, verified: formatDigest(settings.digest!) } : stats;
}

/** The request as it goes over the socket. The digest of a range is that of the output: only the client can check it. */
export function orderOf(settings: ContentSettings): DownloadOrder {
  const { digest, range } = settings;
  return {
    url: settings.url,
    headers: settings.headers.map(([name, value]) => [name, value]),
    tag: settings.tag,
    filter: settings.filter,
    digest: digest === null || checksPart(settings) ? null : formatDigest(digest),
    range: range === null ? null : formatRange(range),
    disable_back_source: settings.disableBackSource,
    rate_limit: settings.rateLimitBytesPerSecond,
    ...(settings.traceparent === undefined ? {} : { traceparent: settings.traceparent }),
  };
}

interface Order {
  readonly order: DownloadOrder;
  readonly options: DownloadOptions;
  readonly delivery: Target;
}

async function streamOut(connection: DaemonConnection, { order, options, delivery }: Order): Promise<DownloadStats> {
  const stream = connection.stream(order, options);
  await delivery.writeAll(puller(stream));
  return await stream.stats;
}

async function takeOut(connection: DaemonConnection, { order, options, delivery }: Order): Promise<DownloadStats> {
  const download = await connection.download(order, options);
  const { offset, length } = download.stats;
  // `range` is null or left out for the whole content.
  const part = order.range ? { offset, length } : null;
  if (!await delivery.takeFile(download.path, part)) await delivery.writeAll(puller(download.send()));
  return download.stats;
}

function checksPart({ digest, range }: ContentSettings): boolean {
  return digest !== null && range !== null;
}

/** The chunks one by one, then null. */
function puller(chunks: AsyncIterable<Uint8Array>): () => Promise<Uint8Array | null> {
  const iterator = chunks[Symbol.asyncIterator]();
  return async () => {
    const { value, done } = await iterator.next();
    return done ? null : value;
  };
}
