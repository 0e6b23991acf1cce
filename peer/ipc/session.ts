/**
 * One client's connection to the daemon: reads its request, starts a run, and
 * writes progress, bytes and the end. The connection is the request: when the
 * client closes it, the run is aborted.
 *
 * Keeps: a run is disposed when its connection ends, not earlier: the path in
 * `done` stays valid until then. An error is the last line.
 */
import { parseDigest } from "../core/digest.ts";
import { LacewingError, toWireError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { parseRange } from "../core/range.ts";
import {
  type DownloadRequest,
  type Explained,
  type ExplainRequest,
  ipcFollowUp,
  type IpcReply,
  type IpcRequest,
  ipcRequest,
} from "../core/wire/ipc.ts";
import { IPC_PROTOCOL } from "../core/wire/ipc_reply.ts";
import { LineReader, LineWriter } from "../core/wire/json_lines.ts";
import type { TaskRequest, TaskRun, TaskStarter } from "../task/task.ts";

/** The daemon's own state, as `status` shows it. */
export type IpcStatus = Omit<Extract<IpcReply, { type: "status" }>, "type">;

export interface IpcSessionDeps {
  readonly tasks: TaskStarter;
  readonly status: () => IpcStatus;
  /** What `explain` answers. */
  readonly explain?: (request: ExplainRequest) => Promise<Explained>;
  readonly log: Logger;
  /** Where the store's files are, for clients that link them. */
  readonly dataDir?: string;
}

/** A client sends its request at once; who does not is no client of ours. */
const REQUEST_TIMEOUT_MS = 10_000;
/** Progress lines of one download are at least this far apart. */
const PROGRESS_PAUSE_MS = 100;

export class IpcSession {
  readonly #reader: LineReader;
  readonly #writer: LineWriter;
  readonly #abort = new AbortController();
  #isClosed = false;

  constructor(private readonly conn: Deno.UnixConn, private readonly deps: IpcSessionDeps) {
    this.#reader = new LineReader(conn, { chunkLength: 4096 });
    this.#writer = new LineWriter(conn);
  }

  /** Serves until the connection ends; never rejects. */
  async run(): Promise<void> {
    try {
      const request = await this.#request();
      if (request?.type === "status") await this.#say({ type: "status", ...this.deps.status() });
      if (request?.type === "explain") await this.#say({ type: "explained", ...await this.#explain(request) });
      if (request?.type === "download") await this.#download(request);
    } catch (error) {
      await this.#fail(error);
    } finally {
      this.close();
    }
  }

  /** Ends what runs; the client hears the reason. */
  stop(reason: LacewingError): void {
    this.#abort.abort(reason);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.conn.close();
  }

  async #request(): Promise<IpcRequest | null> {
    const expired = new LacewingError("timeout", `Cannot serve: no request within ${REQUEST_TIMEOUT_MS} ms`);
    const timer = setTimeout(() => this.#abort.abort(expired), REQUEST_TIMEOUT_MS);
    try {
      const value = await orAborted(this.#reader.readJson(), this.#abort.signal);
      return value === undefined ? null : readRequest(value);
    } finally {
      clearTimeout(timer);
    }
  }

  async #explain(request: ExplainRequest): Promise<Explained> {
    const { explain } = this.deps;
    if (explain === undefined) {
      throw new LacewingError("protocol", "Cannot explain a task: this daemon does not know how");
    }
    return await orAborted(explain(request), this.#abort.signal);
  }

  async #download(request: DownloadRequest): Promise<void> {
    const signal = this.#abort.signal;
    await using run = this.deps.tasks.start(toTaskRequest(request), { signal });
    // The only thing that may come now is `send`, or the end of the connection, which ends the run.
    let isDone = false;
    const followUp = this.#reader.readJson().then((value) => {
      if (value === undefined) this.#abort.abort(new DOMException("The client went away", "AbortError"));
      else if (!isDone) this.#abort.abort(new LacewingError("protocol", "Cannot serve: want one request a connection"));
      return value;
    });
    followUp.catch((error) => this.#abort.abort(error));
    run.finished.catch(() => {});
    const { dataDir } = this.deps;
    await this.#say({ type: "accepted", task_id: run.taskId, ...(dataDir === undefined ? {} : { data_dir: dataDir }) });
    using _progress = this.#reportProgress(run);
    if (request.delivery === "stream") await this.#sendBytes(run);
    const { stats, path } = await orAborted(run.finished, signal);
    isDone = true;
    await this.#say({ type: "done", path: request.delivery === "stream" ? null : path, stats });
    if (request.delivery === "stream") return;
    const value = await orAborted(followUp, signal);
    if (value === undefined) return;
    if (!ipcFollowUp.safeParse(value).success) {
      throw new LacewingError("protocol", "Cannot serve: want send, or the end of the connection");
    }
    await this.#sendBytes(run);
    await this.#say({ type: "done", path: null, stats });
  }

  async #sendBytes(run: TaskRun): Promise<void> {
    const signal = this.#abort.signal;
    for await (const bytes of run.read()) {
      signal.throwIfAborted();
      if (bytes.length === 0) continue;
      // Both go into the writer in one turn, so that no other line comes between them.
      const line = this.#say({ type: "data", length: bytes.length });
      const raw = this.#writer.writeBytes(bytes);
      // The bytes may be overwritten by the run as soon as this loop goes on.
      await Promise.all([line, raw]);
    }
  }

  #reportProgress(run: TaskRun): Disposable {
    let lastMs = -Infinity;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isWriting = false;
    let isOver = false;
    const report = async () => {
      timer = undefined;
      lastMs = performance.now();
      const { total, done, fromLocal, fromPeers, fromSource, peers } = run.progress();
      isWriting = true;
      await this.#say({
        type: "progress",
        total,
        done,
        from_local: fromLocal,
        from_peers: fromPeers,
        from_source: fromSource,
        peers,
      }).catch(() => {});
      isWriting = false;
    };
    const stop = run.onProgress(() => {
      // A client that does not read gets the next one when it does.
      if (timer !== undefined || isWriting || isOver) return;
      timer = setTimeout(report, Math.max(lastMs + PROGRESS_PAUSE_MS - performance.now(), 0));
    });
    return {
      [Symbol.dispose]: () => {
        isOver = true;
        stop();
        clearTimeout(timer);
      },
    };
  }

  #say(reply: IpcReply): Promise<void> {
    return this.#writer.writeJson(reply);
  }

  async #fail(error: unknown): Promise<void> {
    if (this.#isClosed || isGone(error)) return;
    if (!(error instanceof LacewingError) && !(error instanceof DOMException)) {
      this.deps.log.error("A client's request failed unexpectedly", { error });
    }
    await this.#say({ type: "error", error: toWireError(error) }).catch(() => {});
  }
}

function readRequest(value: unknown): IpcRequest {
  const parsed = ipcRequest.safeParse(value);
  if (parsed.success) return parsed.data;
  const version = (value as { v?: unknown } | null)?.v;
  if (version !== IPC_PROTOCOL) {
    throw new LacewingError(
      "protocol",
      `Cannot serve: the client speaks version ${JSON.stringify(version)?.slice(0, 20)}, this daemon ${IPC_PROTOCOL}`,
    );
  }
  const type = (value as { type?: unknown }).type;
  const issue = parsed.error.issues[0];
  throw new LacewingError(
    type === "download" || type === "status" || type === "explain" ? "usage" : "protocol",
    `Cannot serve: ${issue?.path.join(".") || "(top)"}: ${issue?.message}`,
  );
}

function toTaskRequest(request: DownloadRequest): TaskRequest {
  return {
    url: request.url,
    headers: request.headers,
    tag: request.tag,
    filter: request.filter,
    digest: request.digest === null ? null : parseDigest(request.digest),
    range: request.range === null ? null : parseRange(request.range),
    disableBackSource: request.disable_back_source,
    rateLimitBytesPerSecond: request.rate_limit,
    ...(request.traceparent === undefined ? {} : { traceparent: request.traceparent }),
  };
}

/** Whether the client is not there any more, so that there is nobody to tell. */
function isGone(error: unknown): boolean {
  return error instanceof Deno.errors.BrokenPipe || error instanceof Deno.errors.ConnectionReset ||
    error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted;
}

/** Settles as `work`, or rejects with `signal.reason` as soon as it is aborted. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
