/**
 * Asks the daemon of this machine over its Unix socket: one connection, one
 * request. Closing the connection cancels the request.
 *
 * Keeps: after `done` the daemon's file stays while the connection is open. A
 * daemon that goes away in the middle is `no_daemon`, never a short download.
 */
import { fromWireError, LacewingError } from "../core/errors.ts";
import type {
  DownloadRequestInput,
  DownloadStats,
  Explained,
  ExplainRequest,
  IpcReply,
  IpcRequest,
} from "../core/wire/ipc.ts";
import { IPC_PROTOCOL, readIpcReply } from "../core/wire/ipc_reply.ts";
import { type ByteReader, LineReader, LineWriter } from "../core/wire/json_lines.ts";
import type { TaskProgress } from "../task/task.ts";

/** What a client asks for; the delivery is chosen by the method. */
export type DownloadOrder = Omit<DownloadRequestInput, "type" | "v" | "delivery">;
/** Which task a URL is. */
export type ExplainQuestion = Pick<ExplainRequest, "url" | "tag" | "filter">;
export type { Explained };
export type DownloadProgress = TaskProgress;
/** The daemon's own state. */
export type DaemonStatus = Omit<Extract<IpcReply, { type: "status" }>, "type">;

export interface DownloadOptions {
  readonly signal?: AbortSignal;
  /** Hears of the daemon's data folder before anything is downloaded; a rejection ends the download. */
  readonly onAccepted?: ((facts: { dataDir: string | null }) => Promise<void>) | undefined;
  readonly onProgress?: ((progress: DownloadProgress) => void) | undefined;
}

type Listeners = Pick<DownloadOptions, "onAccepted" | "onProgress">;

/** A download that is complete and verified in the daemon's store. */
export interface DaemonDownload {
  /** The daemon's file of the whole content; it stays until the connection is disposed. */
  readonly path: string;
  readonly stats: DownloadStats;
  /** The bytes asked for, for callers that cannot read `path`. Once only; each view is valid until the next. */
  send(): AsyncIterable<Uint8Array>;
}

/** A download whose bytes come in order while they arrive; each view is valid until the next. */
export interface DaemonStream extends AsyncIterable<Uint8Array> {
  /** Resolves after the last byte. */
  readonly stats: Promise<DownloadStats>;
}

/** One connection, for one request. */
export interface DaemonConnection extends Disposable {
  /** @throws {LacewingError} `no_daemon` when the daemon goes away, or what it answers */
  status(): Promise<DaemonStatus>;
  /** As `status`. */
  explain(question: ExplainQuestion): Promise<Explained>;
  /** @throws {LacewingError} `no_daemon` when the daemon goes away, or what it answers; `signal.reason` */
  download(order: DownloadOrder, options?: DownloadOptions): Promise<DaemonDownload>;
  /** As `download`; what goes wrong is thrown while iterating. */
  stream(order: DownloadOrder, options?: DownloadOptions): DaemonStream;
}

const RECEIVE_LENGTH = 256 * 1024;

/**
 * Connects to the daemon.
 *
 * @throws {LacewingError} `no_daemon` when none listens at `path`, or it may not be asked
 */
export async function connectDaemon(path: string): Promise<DaemonConnection> {
  try {
    return new UnixDaemonConnection(await Deno.connect({ transport: "unix", path }), path);
  } catch (cause) {
    throw new LacewingError("no_daemon", `Cannot ask the daemon at ${path}: ${connectReason(cause)}`, { cause });
  }
}

class UnixDaemonConnection implements DaemonConnection {
  readonly #reader: LineReader;
  readonly #writer: LineWriter;
  #isUsed = false;
  #isClosed = false;
  #hasEnded = false;

  constructor(private readonly conn: Deno.UnixConn, private readonly path: string) {
    const source: ByteReader = {
      read: async (buffer) => {
        const read = await conn.read(buffer);
        this.#hasEnded ||= read === null;
        return read;
      },
    };
    this.#reader = new LineReader(source, { chunkLength: 4096 });
    this.#writer = new LineWriter(conn);
  }

  async status(): Promise<DaemonStatus> {
    await this.#ask({ type: "status", v: IPC_PROTOCOL });
    const { type: _, ...status } = await this.#expect("status");
    return status;
  }

  async explain(question: ExplainQuestion): Promise<Explained> {
    await this.#ask({ ...question, type: "explain", v: IPC_PROTOCOL });
    const { type: _, ...explained } = await this.#expect("explained");
    return explained;
  }

  async download(order: DownloadOrder, { signal, ...listeners }: DownloadOptions = {}): Promise<DaemonDownload> {
    using _closing = this.#closeOn(signal);
    try {
      await this.#ask({ ...order, type: "download", v: IPC_PROTOCOL, delivery: "file" });
      const { path, stats } = await this.#expect("done", listeners);
      if (path === null) throw new LacewingError("protocol", "Cannot take the download: the daemon names no file");
      let isSent = false;
      const send = () => {
        if (isSent) throw new TypeError("Cannot send twice");
        isSent = true;
        return this.#send(stats, signal);
      };
      return { path, stats, send };
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  }

  stream(order: DownloadOrder, options: DownloadOptions = {}): DaemonStream {
    const { promise, resolve, reject } = Promise.withResolvers<DownloadStats>();
    // Who iterates hears of the failure there.
    promise.catch(() => {});
    const bytes = this.#stream(order, options, { resolve, reject });
    return { stats: promise, [Symbol.asyncIterator]: () => bytes };
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.conn.close();
  }

  async *#stream(
    order: DownloadOrder,
    { signal, ...listeners }: DownloadOptions,
    settle: { resolve: (stats: DownloadStats) => void; reject: (error: unknown) => void },
  ): AsyncGenerator<Uint8Array, void> {
    let isOver = false;
    using _closing = this.#closeOn(signal);
    try {
      await this.#ask({ ...order, type: "download", v: IPC_PROTOCOL, delivery: "stream" });
      settle.resolve(yield* this.#receive(null, listeners));
      isOver = true;
    } catch (error) {
      isOver = true;
      const reason = signal?.aborted ? signal.reason : error;
      settle.reject(reason);
      throw reason;
    } finally {
      // Left early by the caller.
      if (!isOver) settle.reject(new DOMException("The stream was left before its end", "AbortError"));
      this[Symbol.dispose]();
    }
  }

  async *#send(stats: DownloadStats, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void> {
    using _closing = this.#closeOn(signal);
    try {
      await this.#guard(this.#writer.writeJson({ type: "send" }));
      yield* this.#receive(stats.length);
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  }

  /** The bytes of all `data` frames up to `done`. */
  async *#receive(
    expectedLength: number | null,
    listeners: Listeners = {},
  ): AsyncGenerator<Uint8Array, DownloadStats> {
    const buffer = new Uint8Array(RECEIVE_LENGTH);
    let received = 0;
    while (true) {
      const reply = await this.#reply();
      if (reply.type === "data") {
        for (let left = reply.length; left > 0;) {
          const read = await this.#guard(this.#reader.readBytes(buffer.subarray(0, Math.min(left, buffer.length))));
          if (read === null) throw this.#wentAway();
          left -= read;
          received += read;
          yield buffer.subarray(0, read);
        }
      } else if (reply.type === "done") {
        if (received === (expectedLength ?? reply.stats.length)) return reply.stats;
        throw new LacewingError(
          "protocol",
          `Cannot take the download: the daemon sent ${received} bytes, expected ${reply.stats.length}`,
        );
      } else await this.#pass(reply, listeners);
    }
  }

  async #ask(request: { type: IpcRequest["type"]; v: number } & Record<string, unknown>): Promise<void> {
    if (this.#isUsed) throw new TypeError("Cannot ask twice over one connection to the daemon");
    this.#isUsed = true;
    try {
      await this.#writer.writeJson(request);
    } catch (error) {
      if (error instanceof RangeError) throw new LacewingError("usage", `Cannot ask the daemon: ${error.message}`);
      // A daemon that has refused already may have closed; its line is still there to read.
    }
  }

  async #expect<Type extends IpcReply["type"]>(
    type: Type,
    listeners: Listeners = {},
  ): Promise<Extract<IpcReply, { type: Type }>> {
    while (true) {
      const reply = await this.#reply();
      if (reply.type === type) return reply as Extract<IpcReply, { type: Type }>;
      await this.#pass(reply, listeners);
    }
  }

  /** Replies that may come at any time: the beginning and the progress. */
  async #pass(reply: IpcReply, { onAccepted, onProgress }: Listeners): Promise<void> {
    if (reply.type === "accepted") return await onAccepted?.({ dataDir: reply.data_dir ?? null });
    if (reply.type !== "progress") {
      throw new LacewingError("protocol", `Cannot understand the daemon: ${reply.type} was not expected`);
    }
    onProgress?.({
      total: reply.total,
      done: reply.done,
      fromLocal: reply.from_local,
      fromPeers: reply.from_peers,
      fromSource: reply.from_source,
      peers: reply.peers,
    });
  }

  async #reply(): Promise<IpcReply> {
    const value = await this.#guard(this.#reader.readJson());
    if (value === undefined) throw this.#wentAway();
    const read = readIpcReply(value);
    if ("wrong" in read) {
      throw new LacewingError("protocol", `Cannot understand the daemon: ${read.wrong} is not as expected`);
    }
    if (read.reply.type === "error") throw fromWireError(read.reply.error);
    return read.reply;
  }

  /** A connection that breaks is a daemon that went away. */
  async #guard<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      // A line that was cut off is `protocol` to the reader; here it is a daemon that was killed.
      if (error instanceof LacewingError && !this.#hasEnded && !this.#isClosed) throw error;
      throw this.#wentAway(error);
    }
  }

  #wentAway(cause?: unknown): LacewingError {
    return new LacewingError("no_daemon", `The daemon at ${this.path} went away before it was done; try again`, {
      cause,
    });
  }

  #closeOn(signal: AbortSignal | undefined): Disposable {
    const onAbort = () => this[Symbol.dispose]();
    signal?.throwIfAborted();
    signal?.addEventListener("abort", onAbort, { once: true });
    return { [Symbol.dispose]: () => signal?.removeEventListener("abort", onAbort) };
  }
}

function connectReason(cause: unknown): string {
  if (cause instanceof Deno.errors.NotFound) return "there is no socket; start one with lacewing daemon";
  if (cause instanceof Deno.errors.ConnectionRefused) return "nobody listens; start one with lacewing daemon";
  return cause instanceof Error ? cause.message : String(cause);
}
