/**
 * A download from a program: the same order to the daemon and the same atomic
 * output as the command line, without its flags, logs and fallbacks.
 */
import { parseDigest } from "../../peer/core/digest.ts";
import type { DownloadStats } from "../../peer/core/wire/ipc.ts";
import { connectDaemon } from "../../peer/ipc/client.ts";
import { Delivery } from "../delivery.ts";
import { OutputFile } from "../output_file.ts";
import { absolutePath } from "../output_path.ts";
import { downloadByDaemon } from "../daemon_download.ts";
import { parseRange } from "../../peer/core/range.ts";

export interface DownloadOptions {
  /** Path of the daemon's Unix socket. */
  readonly socket: string;
  /** Sent to the origin of the URL only. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `algorithm:hex`, checked before the output gets its name. */
  readonly digest?: string;
  /** Another tag, another task. */
  readonly tag?: string;
  /** Query parameters left out of the task id, `key&sign`. */
  readonly filter?: string;
  /** `0-9`, `150-` or `-50`. */
  readonly range?: string;
  /** Only from other hosts, never from the origin. */
  readonly disableBackSource?: boolean;
  /** Bytes per second; 0 (default) is no limit. */
  readonly rateLimit?: number;
  readonly signal?: AbortSignal;
}

/**
 * Downloads a URL into a file through a daemon. The file appears only when it
 * is whole and right; an existing one stays untouched until then.
 *
 * @param output a path; missing folders are made
 * @returns where the bytes came from, and what they were checked against
 * @throws {LacewingError} with the code of what went wrong, such as `no_daemon`, `source_not_found`, `digest_mismatch`.
 * @example
 * ```ts
 * import { download, LacewingError, startPeer } from "./mod.ts";
 *
 * await using origin = Deno.serve({ port: 0, onListen() {} }, () => new Response("hello"));
 * const folder = await Deno.makeTempDir();
 * const config = { upload: { tcpListen: { port: 0 } }, health: { tcpListen: { port: 0 } } };
 * await using peer = await startPeer(folder, { config });
 *
 * const url = `http://127.0.0.1:${origin.addr.port}/greeting`;
 * const options = { socket: peer.addresses.socket, digest: `sha256:${"0".repeat(64)}` };
 * try {
 *   await download(url, `${folder}/greeting`, options);
 * } catch (error) {
 *   console.log(error instanceof LacewingError && error.code); // digest_mismatch
 * }
 * ```
 */
export async function download(url: string, output: string, options: DownloadOptions): Promise<DownloadStats> {
  const signal = options.signal ?? new AbortController().signal;
  const digest = options.digest === undefined ? null : parseDigest(options.digest);
  const range = options.range === undefined ? null : parseRange(options.range);
  using file = await OutputFile.prepare(absolutePath(output, Deno.cwd()));
  using connection = await connectDaemon(options.socket);
  return await downloadByDaemon(connection, {
    settings: {
      url,
      headers: Object.entries(options.headers ?? {}),
      tag: options.tag ?? "",
      filter: options.filter ?? "",
      digest,
      range,
      disableBackSource: options.disableBackSource ?? false,
      rateLimitBytesPerSecond: options.rateLimit ?? 0,
    },
    delivery: new Delivery({ output: file, digest: range === null ? null : digest, signal }),
    signal,
    onProgress: () => {},
  });
}
