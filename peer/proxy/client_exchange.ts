/**
 * One request of a client and the answer to it: writes the head together with
 * the first bytes, frames the body as the client can read it, and knows
 * whether the connection may go on afterwards.
 *
 * Keeps: an answer that was begun and cannot be finished never looks whole.
 */
import { type ByteWriter, writeAll } from "../core/wire/json_lines.ts";
import {
  endToEnd,
  type Field,
  formatHead,
  type Framing,
  keepsAlive,
  NO_BODY,
  type RequestHead,
} from "./http_message.ts";
import type { BodyReader } from "./http_reader.ts";
import { LAST_CHUNK, type OriginAnswer, writeBody } from "./origin_client.ts";

export interface RequestBody {
  readonly framing: Framing;
  readonly reader: BodyReader;
}

export class ClientExchange {
  #isBegun = false;
  #isWhole = false;
  #isChunked = false;
  #mayGoOn: boolean;
  #pendingHead: Uint8Array | null = null;
  #head: RequestHead;

  /** @param signal aborted when the client went away or the proxy stops */
  constructor(
    head: RequestHead,
    readonly body: RequestBody | null,
    private readonly sink: ByteWriter,
    readonly signal: AbortSignal,
  ) {
    this.#head = head;
    this.#mayGoOn = keepsAlive(head);
  }

  get head(): RequestHead {
    return this.#head;
  }

  /** From now on it is asked with these fields in place of the client's. */
  askWith(fields: readonly Field[]): void {
    this.#head = { ...this.#head, fields };
  }

  /** Whether any part of the answer was given: no other one can be then. */
  get isBegun(): boolean {
    return this.#isBegun;
  }

  /** Whether the answer was given whole, and the client may send its next request. */
  get mayGoOn(): boolean {
    return this.#isWhole && this.#mayGoOn;
  }

  /** The connection ends with this answer. */
  close(): void {
    this.#mayGoOn = false;
  }

  /** Tells a client that waits for it to send its body. */
  async letBodyCome(): Promise<void> {
    const isWaiting = this.head.fields.some(([name, value]) =>
      name.toLowerCase() === "expect" && value.toLowerCase() === "100-continue"
    );
    if (isWaiting && this.head.minor === 1) await writeAll(this.sink, formatHead("HTTP/1.1 100 Continue", []));
  }

  /** A short answer in one go. */
  async send(status: number, fields: readonly Field[], body: string | Uint8Array = ""): Promise<void> {
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    this.#begin(status, REASONS[status] ?? "", [...fields, ["Content-Length", String(bytes.length)]]);
    if (this.head.method !== "HEAD") await this.#write(bytes);
    await this.#end();
  }

  /** Begins an answer whose fields say how long it is; `write` and `end` follow. */
  begin(status: number, fields: readonly Field[]): void {
    this.#begin(status, REASONS[status] ?? "", fields);
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#write(bytes);
  }

  async end(): Promise<void> {
    await this.#end();
  }

  /** Passes an origin's answer on, field by field; `body` may stand in for its own. */
  async pass(
    answer: OriginAnswer,
    { extra = [], body = answer }: { extra?: readonly Field[]; body?: BodyReader } = {},
  ) {
    const { status, reason, fields } = answer.head;
    const isFree = this.head.method === "HEAD" || status === 304;
    const framing = answer.framing;
    const first = isFree || framing === NO_BODY ? Promise.resolve(null) : body.read();
    const isLate = await this.#isLate(first, status);
    const own: Field[] = isFree || status === 204 || status < 200
      ? []
      : framing.kind === "length"
      ? [["Content-Length", String(framing.length)]]
      : this.#streamed();
    this.#begin(status, reason, [...endToEnd(fields, isFree ? [] : ["content-length"]), ...extra, ...own]);
    if (isLate) await this.#writeHead();
    for (let bytes = await first; bytes !== null; bytes = await body.read()) await this.#write(bytes);
    await this.#end();
  }

  /**
   * Whether an answer's head shall go out without its first bytes, because these are not here after a moment, or will never be
   * where the head is all that matters. Rejects where they fail in that moment: another answer is possible then.
   */
  async #isLate(first: Promise<Uint8Array | null>, status: number): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<boolean>((resolve) => timer = setTimeout(resolve, HEAD_WAIT_MS, true));
    try {
      return await Promise.race([first.then(() => false), late]);
    } catch (error) {
      if (status < 400) throw error;
      return true;
    } finally {
      clearTimeout(timer);
    }
  }

  /** How a body of unknown length goes to this client. */
  #streamed(): Field[] {
    this.#isChunked = this.head.minor === 1;
    if (!this.#isChunked) this.close();
    return this.#isChunked ? [["Transfer-Encoding", "chunked"]] : [];
  }

  #begin(status: number, reason: string, fields: readonly Field[]): void {
    if (this.#isBegun) throw new TypeError("Cannot begin an answer twice");
    this.#isBegun = true;
    const isTunnel = this.head.method === "CONNECT" && status === 200;
    const connection: Field[] = this.#mayGoOn || isTunnel ? [] : [["Connection", "close"]];
    this.#pendingHead = formatHead(`HTTP/1.1 ${status} ${reason}`, [...fields, ...connection]);
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.signal.throwIfAborted();
    const head = this.#pendingHead;
    if (this.#isChunked || bytes.length > JOIN_LENGTH_MAX) await this.#writeHead();
    else if (head !== null) {
      this.#pendingHead = null;
      const joined = new Uint8Array(head.length + bytes.length);
      joined.set(head);
      joined.set(bytes, head.length);
      return await writeAll(this.sink, joined);
    }
    await writeBody(this.sink, bytes, this.#isChunked);
  }

  async #writeHead(): Promise<void> {
    const head = this.#pendingHead;
    this.#pendingHead = null;
    if (head !== null) await writeAll(this.sink, head);
  }

  async #end(): Promise<void> {
    await this.#writeHead();
    if (this.#isChunked) await writeAll(this.sink, LAST_CHUNK);
    this.#isWhole = true;
  }
}

/** Heads go out with bodies up to this: one packet for a small answer, no large copy for a big one. */
const JOIN_LENGTH_MAX = 64 * 1024;
/** Bytes that are not here after this time let their head go first: an origin may send events, or think. */
const HEAD_WAIT_MS = 50;

const REASONS: Record<number, string> = {
  200: "OK",
  206: "Partial Content",
  400: "Bad Request",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  407: "Proxy Authentication Required",
  416: "Range Not Satisfiable",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  508: "Loop Detected",
};
