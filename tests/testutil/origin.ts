/**
 * An HTTP origin in the test's own process: contents of any size by path,
 * ranges and validators that can be switched off, faults on demand, and a
 * count of the body bytes handed to the network for each path.
 *
 * `/anything?size=N&seed=S` is served without being registered.
 */
import { RateLimiter } from "../../peer/core/rate_limit.ts";
import { systemClock } from "../../peer/core/clock.ts";
import { createHash } from "node:crypto";
import { contentBytes, contentDigest } from "./content.ts";

const CHUNK_LENGTH = 64 * 1024;
const SENT_TIMEOUT_MS = 60_000;

/** What stands at a path, and how it is served. */
export interface OriginContent {
  /** Bytes of the content; made from `seed` unless `bytes` are given. */
  size?: number;
  seed?: number;
  bytes?: Uint8Array;
  /** Default: a strong ETag that changes with the content. False: none. */
  etag?: string | false;
  /** Default: none. */
  lastModified?: string;
  /** False: ranges are ignored, and `Accept-Ranges` is not sent. */
  ranges?: boolean;
  /** True: no length is announced. */
  chunked?: boolean;
  headers?: Record<string, string>;
  /** Answers this status, always or the first `failures` times. */
  status?: number;
  failures?: number;
  /** Waits before the answer. */
  delayMs?: number;
  /** Ends the connection after so many body bytes of one answer, always or the first `cuts` times. */
  cutAfter?: number;
  cuts?: number;
  /** Body bytes a second of each answer. */
  bytesPerSecond?: number;
  /** Sends no byte of the body beyond this one until the promise resolves. */
  gate?: { after: number; open: Promise<unknown> };
  /** Answers this header value's absence with 401. */
  authorization?: string;
  /** Redirects there. */
  location?: string;
}

export interface OriginRequest {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly range: string | null;
  readonly headers: Headers;
  status: number;
}

/** Starts an origin on a free port of loopback. */
export function startOrigin(options: { port?: number; hostname?: string; bytesPerSecond?: number } = {}): Origin {
  return new Origin(options);
}

export class Origin implements AsyncDisposable {
  readonly requests: OriginRequest[] = [];
  readonly #contents = new Map<string, OriginContent>();
  readonly #sent = new Map<string, number>();
  readonly #stop = new AbortController();
  readonly #limiter: RateLimiter;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #bodies = new Set<Promise<void>>();

  constructor({ port = 0, hostname = "127.0.0.1", bytesPerSecond = 0 }: Parameters<typeof startOrigin>[0] = {}) {
    this.#limiter = new RateLimiter(systemClock, bytesPerSecond);
    this.#server = Deno.serve(
      { port, hostname, signal: this.#stop.signal, onListen: () => {} },
      (request) => this.#answer(request),
    );
  }

  get port(): number {
    return this.#server.addr.port;
  }

  /** `HOST:PORT`. */
  get host(): string {
    return `${this.#server.addr.hostname}:${this.port}`;
  }

  url(path: string): string {
    return `http://${this.host}${path}`;
  }

  /** Puts or changes what stands at a path. @returns its URL */
  put(path: string, content: OriginContent): string {
    this.#contents.set(path, content);
    return this.url(path);
  }

  remove(path: string): void {
    this.#contents.delete(path);
  }

  /** Body bytes handed to the network: of a path, or of all. */
  bytesSent(path?: string): number {
    if (path !== undefined) return this.#sent.get(keyOf(new URL(path, "http://origin"))) ?? 0;
    return [...this.#sent.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Resolves when so many body bytes were handed over of a path, or of all; rejects when that takes more than a minute. */
  async sent(bytes: number, path?: string): Promise<void> {
    const untilMs = performance.now() + SENT_TIMEOUT_MS;
    while (this.bytesSent(path) < bytes) {
      if (performance.now() > untilMs) {
        throw new Error(`the origin was to send ${bytes} B, it sent ${this.bytesSent(path)} B`);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Forgets what was counted and logged. */
  resetCounts(): void {
    this.#sent.clear();
    this.requests.length = 0;
  }

  /** Body bytes a second of all answers together; 0 is no limit. */
  setRate(bytesPerSecond: number): void {
    this.#limiter.setRate(bytesPerSecond);
  }

  /** What stands at a path, or a part of it. */
  bytes(path: string, range?: { offset: number; length: number }): Uint8Array<ArrayBuffer> {
    const content = this.#find(path);
    const { offset, length } = range ?? { offset: 0, length: sizeOf(content) };
    return part(content, offset, length);
  }

  /** `algorithm:hex` of what stands at a path. */
  digest(path: string, algorithm = "sha256"): string {
    const content = this.#find(path);
    if (content.bytes !== undefined) return `${algorithm}:${createHash(algorithm).update(content.bytes).digest("hex")}`;
    return contentDigest({ seed: content.seed ?? 1, size: sizeOf(content) }, algorithm);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(quiet("stopped"));
    await this.#server.finished;
    await Promise.allSettled(this.#bodies);
  }

  #find(path: string): OriginContent {
    const url = new URL(path, "http://origin");
    const content = this.#contents.get(url.pathname + url.search) ?? this.#contents.get(url.pathname);
    if (content !== undefined) return content;
    const size = url.searchParams.get("size");
    if (size === null) return { status: 404 };
    return { size: Number(size), seed: Number(url.searchParams.get("seed") ?? 1) };
  }

  async #answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const record: OriginRequest = {
      method: request.method,
      path: url.pathname + url.search,
      range: request.headers.get("range"),
      headers: new Headers(request.headers),
      status: 0,
    };
    this.requests.push(record);
    const content = this.#find(record.path);
    if (content.delayMs !== undefined) await this.#sleep(content.delayMs);
    const response = this.#respond(request, content, keyOf(url));
    record.status = response.status;
    return response;
  }

  #respond(request: Request, content: OriginContent, key: string): Response {
    const headers = new Headers({ "content-type": "application/octet-stream", ...content.headers });
    if (content.authorization !== undefined && request.headers.get("authorization") !== content.authorization) {
      headers.set("www-authenticate", 'Basic realm="origin"');
      return new Response("no\n", { status: 401, headers });
    }
    if (content.location !== undefined) {
      headers.set("location", content.location);
      return new Response(null, { status: content.status ?? 302, headers });
    }
    if (content.status !== undefined && (content.failures === undefined || content.failures-- > 0)) {
      return new Response(`status ${content.status}\n`, { status: content.status, headers });
    }
    const size = sizeOf(content);
    const etag = content.etag ?? `"${content.seed ?? 1}-${size}"`;
    if (etag !== false) headers.set("etag", etag);
    if (content.lastModified !== undefined) headers.set("last-modified", content.lastModified);
    if (content.ranges !== false) headers.set("accept-ranges", "bytes");
    const match = request.headers.get("if-match");
    if (match !== null && match !== "*" && match !== etag) return new Response(null, { status: 412, headers });
    const range = content.ranges === false ? null : rangeOf(request, { size, etag, content });
    if (range === "unsatisfiable") {
      headers.set("content-range", `bytes */${size}`);
      return new Response(null, { status: 416, headers });
    }
    const { offset, length } = range ?? { offset: 0, length: size };
    if (!content.chunked) headers.set("content-length", String(length));
    if (range !== null) headers.set("content-range", `bytes ${offset}-${offset + length - 1}/${size}`);
    const status = range === null ? 200 : 206;
    if (request.method === "HEAD") return new Response(null, { status, headers });
    return new Response(this.#body({ ...content }, { offset, length, key, source: content }), { status, headers });
  }

  /** The body as a stream that makes its bytes when they are asked for, and counts them. */
  #body(
    content: OriginContent,
    { offset, length, key, source }: { offset: number; length: number; key: string; source: OriginContent },
  ): ReadableStream<Uint8Array<ArrayBuffer>> {
    const limiter = content.bytesPerSecond === undefined ? null : new RateLimiter(systemClock, content.bytesPerSecond);
    const cut = content.cutAfter !== undefined && (source.cuts === undefined || source.cuts-- > 0)
      ? content.cutAfter
      : Infinity;
    const canceled = new AbortController();
    const signal = AbortSignal.any([canceled.signal, this.#stop.signal]);
    let at = 0;
    const produce = async (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
      if (at >= cut) throw quiet("connection cut on purpose");
      let step = Math.min(CHUNK_LENGTH, length - at, cut - at);
      if (content.gate !== undefined && offset + at + step > content.gate.after) {
        step = Math.min(step, content.gate.after - offset - at);
        if (step <= 0) {
          await aborting(content.gate.open, signal);
          content.gate = undefined;
          return produce(controller);
        }
      }
      if (step > 0) {
        await this.#limiter.take(step, signal);
        await limiter?.take(step, signal);
        controller.enqueue(part(content, offset + at, step));
        at += step;
        this.#sent.set(key, (this.#sent.get(key) ?? 0) + step);
      }
      if (at >= length) controller.close();
    };
    return new ReadableStream({
      pull: (controller) => this.#track(produce(controller)),
      cancel: () => canceled.abort(),
    }, { highWaterMark: 0 });
  }

  #track(work: Promise<void>): Promise<void> {
    const settled = work.catch(() => {});
    this.#bodies.add(settled);
    settled.finally(() => this.#bodies.delete(settled));
    return work;
  }

  async #sleep(ms: number): Promise<void> {
    await systemClock.sleep(ms, this.#stop.signal).catch(() => {});
  }
}

/** An error without a stack: Deno prints what ends a body, and this is no news. */
function quiet(message: string): Error {
  const error = new Error(message);
  error.stack = `origin: ${message}`;
  return error;
}

function sizeOf(content: OriginContent): number {
  return content.bytes?.length ?? content.size ?? 0;
}

function part(content: OriginContent, offset: number, length: number): Uint8Array<ArrayBuffer> {
  return content.bytes?.slice(offset, offset + length) as Uint8Array<ArrayBuffer> | undefined ??
    contentBytes(content.seed ?? 1, offset, length);
}

/** Signatures and other parameters do not make another content here. */
function keyOf(url: URL): string {
  const [size, seed] = [url.searchParams.get("size"), url.searchParams.get("seed")];
  return url.pathname + (size === null ? "" : `?size=${size}&seed=${seed ?? 1}`);
}

function rangeOf(
  request: Request,
  { size, etag, content }: { size: number; etag: string | false; content: OriginContent },
): { offset: number; length: number } | "unsatisfiable" | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(request.headers.get("range") ?? "");
  if (match === null || (match[1] === "" && match[2] === "")) return null;
  const condition = request.headers.get("if-range");
  if (condition !== null && condition !== etag && condition !== content.lastModified) return null;
  if (match[1] === "") {
    const length = Math.min(Number(match[2]), size);
    return length === 0 ? "unsatisfiable" : { offset: size - length, length };
  }
  const offset = Number(match[1]);
  if (offset >= size) return "unsatisfiable";
  const last = match[2] === "" ? size - 1 : Math.min(Number(match[2]), size - 1);
  return { offset, length: last - offset + 1 };
}

function aborting(promise: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
