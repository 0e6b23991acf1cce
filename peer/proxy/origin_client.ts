/**
 * Sends the proxy's requests to origins and gives their answers exactly as
 * they came: every field, spelling and byte. Connections are kept for the next
 * request to the same origin. Has timeouts of its own, because the container
 * runtimes behind the proxy have none. Follows nothing, retries nothing but a
 * kept connection that turned out to be closed.
 */
import { type Clock, systemClock } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import { writeAll } from "../core/wire/json_lines.ts";
import { hostAndPort, shownUrl } from "../source/http_request.ts";
import { reachError } from "../source/transport.ts";
import { closeQuietly } from "../transfer/connection.ts";
import { Watchdog } from "../transfer/watchdog.ts";
import {
  answerFraming,
  type AnswerHead,
  type Field,
  formatHead,
  type Framing,
  keepsAlive,
  ofOrigin,
  parseAnswerHead,
} from "./http_message.ts";
import { type BodyReader, HttpReader } from "./http_reader.ts";
import type { Opened, OriginLinks } from "./origin_link.ts";

export interface OriginRequest {
  readonly method: string;
  readonly url: URL;
  /** End-to-end fields, without Host and framing. */
  readonly fields: readonly Field[];
  /** What the client sends behind its head; null is nothing. */
  readonly body: { readonly framing: Framing; readonly reader: BodyReader } | null;
}

export interface OriginAnswer extends BodyReader, Disposable {
  readonly head: AnswerHead;
  readonly framing: Framing;
}

export interface OriginTimeouts {
  /** Until the answer's head. */
  readonly headMs: number;
  /** For each next byte of a body, while somebody waits for it. */
  readonly idleMs: number;
}

const TIMEOUTS: OriginTimeouts = { headMs: 60_000, idleMs: 60_000 };
const KEEP_MS = 20_000;
const KEPT_PER_ORIGIN = 8;

interface Kept extends Opened {
  readonly reader: HttpReader;
  readonly key: string;
}

export class OriginClient implements Disposable {
  readonly #idle = new Map<string, Kept[]>();
  readonly #timers = new Map<Kept, ReturnType<typeof setTimeout>>();
  readonly #clock: Clock = systemClock;
  readonly #timeouts: OriginTimeouts;
  #isClosed = false;

  constructor(private readonly links: OriginLinks, timeouts: Partial<OriginTimeouts> = {}) {
    this.#timeouts = { ...TIMEOUTS, ...timeouts };
  }

  /** @throws {LacewingError} `network`, `timeout`, `tls`, `policy`, `source_failed`; `signal.reason` when aborted */
  async send(request: OriginRequest, signal: AbortSignal): Promise<OriginAnswer> {
    signal.throwIfAborted();
    const key = request.url.origin;
    const kept = this.#take(key);
    if (kept !== null) {
      try {
        return await this.#exchange(kept, request, signal);
      } catch (error) {
        // Closed meanwhile: nothing was answered, and a request without body can be sent again.
        const isStale = error instanceof LacewingError && error.code === "network" && request.body === null;
        if (!isStale || signal.aborted) throw error;
      }
    }
    const opened = await this.links.open(request.url, signal);
    return await this.#exchange({ ...opened, key, reader: new HttpReader(opened.link) }, request, signal);
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    for (const list of this.#idle.values()) for (const kept of list) this.#drop(kept);
    this.#idle.clear();
  }

  async #exchange(kept: Kept, request: OriginRequest, signal: AbortSignal): Promise<OriginAnswer> {
    const { url, method } = request;
    let failure: LacewingError | null = null;
    const watchdog = new Watchdog(this.#clock, () => {
      failure = new LacewingError("timeout", `Cannot read ${shownUrl(url)}: ${hostAndPort(url)} is silent`);
      closeQuietly(kept.link);
    });
    const onAbort = () => closeQuietly(kept.link);
    signal.addEventListener("abort", onAbort, { once: true });
    const end = () => {
      signal.removeEventListener("abort", onAbort);
      watchdog[Symbol.dispose]();
    };
    const failed = (cause: unknown) => {
      end();
      closeQuietly(kept.link);
      if (signal.aborted) return signal.reason;
      return failure ?? (cause instanceof LacewingError ? cause : reachError(url, cause));
    };
    try {
      watchdog.arm(this.#timeouts.headMs);
      // An origin may answer, and stop reading, before the whole body was sent.
      const sending = this.#write(kept, request, () => watchdog.arm(this.#timeouts.headMs));
      sending.catch(() => {});
      const head = await Promise.race([readHead(kept.reader, url), sending.then(() => readNever())]);
      watchdog.disarm();
      const framing = answerFraming(head, method);
      return this.#answer(kept, { head, framing, url, sending, watchdog, end, failed });
    } catch (cause) {
      throw failed(cause);
    }
  }

  #answer(
    kept: Kept,
    { head, framing, sending, watchdog, end, failed }: {
      head: AnswerHead;
      framing: Framing;
      url: URL;
      sending: Promise<void>;
      watchdog: Watchdog;
      end: () => void;
      failed: (cause: unknown) => unknown;
    },
  ): OriginAnswer {
    const body = kept.reader.body(framing);
    let isOver = false;
    let isSent = false;
    sending.then(() => isSent = true, () => {});
    const finish = (isWhole: boolean) => {
      if (isOver) return;
      isOver = true;
      end();
      if (isWhole && isSent && framing.kind !== "close" && keepsAlive(head)) this.#keep(kept);
      else closeQuietly(kept.link);
    };
    return {
      head,
      framing,
      read: async () => {
        if (isOver) return null;
        watchdog.arm(this.#timeouts.idleMs);
        try {
          const bytes = await body.read();
          watchdog.disarm();
          if (bytes === null) finish(true);
          return bytes;
        } catch (cause) {
          isOver = true;
          throw failed(ofOrigin(cause));
        }
      },
      [Symbol.dispose]: () => finish(framing.kind === "length" && framing.length === 0),
    };
  }

  async #write({ link, isProxied, proxyFields }: Kept, request: OriginRequest, onProgress: () => void): Promise<void> {
    const { method, url, fields, body } = request;
    const path = url.pathname + url.search;
    const target = isProxied ? `${url.origin}${path}` : path;
    const framing: Field[] = body?.framing.kind === "chunked"
      ? [["Transfer-Encoding", "chunked"]]
      : body?.framing.kind === "length"
      ? [["Content-Length", String(body.framing.length)]]
      // Some origins take none of these without a length (411).
      : ["POST", "PUT", "PATCH"].includes(method)
      ? [["Content-Length", "0"]]
      : [];
    await writeAll(
      link,
      formatHead(`${method} ${target} HTTP/1.1`, [["Host", url.host], ...fields, ...proxyFields, ...framing]),
    );
    if (body === null) return;
    const isChunked = body.framing.kind === "chunked";
    for (let bytes = await body.reader.read(); bytes !== null; bytes = await body.reader.read()) {
      onProgress();
      await writeBody(link, bytes, isChunked);
    }
    if (isChunked) await writeAll(link, LAST_CHUNK);
  }

  #take(key: string): Kept | null {
    const kept = this.#idle.get(key)?.pop() ?? null;
    if (kept === null) return null;
    clearTimeout(this.#timers.get(kept));
    this.#timers.delete(kept);
    return kept;
  }

  #keep(kept: Kept): void {
    const list = this.#idle.get(kept.key) ?? [];
    if (this.#isClosed || list.length >= KEPT_PER_ORIGIN || kept.reader.bufferedLength > 0) {
      return closeQuietly(kept.link);
    }
    list.push(kept);
    this.#idle.set(kept.key, list);
    this.#timers.set(
      kept,
      setTimeout(() => {
        const rest = (this.#idle.get(kept.key) ?? []).filter((other) => other !== kept);
        if (rest.length === 0) this.#idle.delete(kept.key);
        else this.#idle.set(kept.key, rest);
        this.#drop(kept);
      }, KEEP_MS),
    );
  }

  #drop(kept: Kept): void {
    clearTimeout(this.#timers.get(kept));
    this.#timers.delete(kept);
    closeQuietly(kept.link);
  }
}

export const LAST_CHUNK = new TextEncoder().encode("0\r\n\r\n");

/** Bytes of a body, as they are or as one chunk. */
export async function writeBody(
  sink: { write(bytes: Uint8Array): Promise<number> },
  bytes: Uint8Array,
  isChunked: boolean,
): Promise<void> {
  if (bytes.length === 0) return;
  if (isChunked) await writeAll(sink, new TextEncoder().encode(`${bytes.length.toString(16)}\r\n`));
  await writeAll(sink, bytes);
  if (isChunked) await writeAll(sink, new TextEncoder().encode("\r\n"));
}

/** The final answer's head; interim ones (1xx) are passed over. */
async function readHead(reader: HttpReader, url: URL): Promise<AnswerHead> {
  for (;;) {
    const text = await reader.readHead().catch((cause) => {
      throw ofOrigin(cause);
    });
    if (text === null) throw reachError(url, new Error("the connection closed without an answer"));
    const head = parseAnswerHead(text);
    if (head.status === 101) throw new LacewingError("source_failed", `Cannot read ${shownUrl(url)}: it answers 101`);
    if (head.status >= 200) return head;
  }
}

/** Lets a failed sending end the wait for an answer, and a finished one not. */
function readNever(): Promise<never> {
  return new Promise(() => {});
}
