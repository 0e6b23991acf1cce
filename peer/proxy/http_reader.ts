/**
 * Reads HTTP/1.1 messages from a connection: a head at a time, then its body
 * in the order of the bytes. Bounded: a head is at most `HEAD_LENGTH_MAX`, a
 * body goes through one buffer. Chunked bodies are decoded strictly.
 */
import { LacewingError } from "../core/errors.ts";
import type { ByteReader } from "../core/wire/json_lines.ts";
import type { Framing } from "./http_message.ts";

export const HEAD_LENGTH_MAX = 64 * 1024;
const FIRST_LENGTH = 8 * 1024;
/** Bytes of a body at once: 64 KiB costs 0.9 CPU s/GB, 256 KiB 0.7. */
const BODY_LENGTH = 256 * 1024;
const CHUNK_LINE_LENGTH_MAX = 256;
const TRAILERS_LENGTH_MAX = 8 * 1024;
const [CR, LF] = [13, 10];

/** A body that is read piece by piece. */
export interface BodyReader {
  /** Next bytes, valid until the next call, or null at the end. @throws {LacewingError} `protocol`, `network` */
  read(): Promise<Uint8Array | null>;
}

export class HttpReader {
  #buffer = new Uint8Array(FIRST_LENGTH);
  #start = 0;
  #end = 0;
  #filling: Promise<boolean> | null = null;

  constructor(private readonly source: ByteReader) {}

  /** Bytes that came and were not asked for yet. */
  get bufferedLength(): number {
    return this.#end - this.#start;
  }

  /**
   * The next head without the empty line at its end, one character a byte; null when the connection ended before it.
   *
   * @throws {LacewingError} `protocol` for one that is too long or cut off.
   */
  async readHead(): Promise<string | null> {
    let scanned = 0;
    for (;;) {
      // RFC 9112 section 2.2: empty lines before a request are passed over.
      while (scanned === 0 && this.bufferedLength >= 2 && this.#isBreak(0)) this.#start += 2;
      // A client that tries TLS first would wait for its own timeout: no head of ours begins so.
      if (this.bufferedLength > 0 && !isVisible(this.#buffer[this.#start]!)) throw refuse("it is no HTTP");
      const length = this.#findEnd(scanned);
      if (length >= 0) {
        const text = latin1(this.#buffer.subarray(this.#start, this.#start + length));
        this.#start += length + 4;
        return text;
      }
      scanned = Math.max(0, this.bufferedLength - 3);
      if (this.bufferedLength >= HEAD_LENGTH_MAX) throw refuse(`its head is longer than ${HEAD_LENGTH_MAX} bytes`);
      if (await this.#fill()) continue;
      if (this.bufferedLength === 0) return null;
      throw refuse("the connection ended in the middle of a head");
    }
  }

  /** The body behind the head just read; read it to its end before the next head. */
  body(framing: Framing): BodyReader {
    if (framing.kind === "chunked") return this.#chunkedBody();
    let left = framing.kind === "length" ? framing.length : Infinity;
    return {
      read: async () => {
        if (left === 0) return null;
        const bytes = await this.#some(left);
        if (bytes === null && left === Infinity) return null;
        if (bytes === null) throw new LacewingError("network", `Cannot read body: it ended ${left} B early`);
        left -= bytes.length;
        return bytes;
      },
    };
  }

  /** Raw bytes, as many as are there; null at the end. Valid until the next call. */
  readRaw(): Promise<Uint8Array | null> {
    return this.#some(Infinity);
  }

  /** Waits in the background until more comes; `onEnd` is called if that is the end of the connection. */
  watch(onEnd: () => void): void {
    if (this.bufferedLength > 0) return;
    this.#startFill().then((isMore) => {
      if (!isMore) onEnd();
    }, onEnd);
  }

  #chunkedBody(): BodyReader {
    let left = 0;
    let state: "size" | "data" | "end" = "size";
    return {
      read: async () => {
        if (state === "end") return null;
        if (state === "size") {
          left = chunkSize(await this.#line(CHUNK_LINE_LENGTH_MAX));
          if (left === 0) {
            await this.#trailers();
            state = "end";
            return null;
          }
          state = "data";
        }
        const bytes = await this.#some(left);
        if (bytes === null) throw new LacewingError("network", "Cannot read body: it ended in the middle of a chunk");
        left -= bytes.length;
        if (left > 0) return bytes;
        state = "size";
        // The line break may come later than the bytes, and reading it may move them.
        const copy = this.bufferedLength >= 2 ? bytes : bytes.slice();
        if (await this.#line(0) !== "") throw refuse("a chunk is longer than it says");
        return copy;
      },
    };
  }

  async #trailers(): Promise<void> {
    for (let length = 0;;) {
      const line = await this.#line(TRAILERS_LENGTH_MAX);
      if (line === "") return;
      length += line.length;
      if (length > TRAILERS_LENGTH_MAX) throw refuse("its trailers are too long");
    }
  }

  /** A line that ends with CR LF. */
  async #line(lengthMax: number): Promise<string> {
    for (;;) {
      const at = this.#buffer.subarray(this.#start, this.#end).indexOf(LF);
      if (at > lengthMax + 1 || (at < 0 && this.bufferedLength > lengthMax + 1)) throw refuse("a line is too long");
      if (at >= 0) {
        const text = latin1(this.#buffer.subarray(this.#start, this.#start + at));
        if (!text.endsWith("\r")) throw refuse("a line ends without CR");
        this.#start += at + 1;
        return text.slice(0, -1);
      }
      if (!await this.#fill()) throw new LacewingError("network", "Cannot read body: it ended early");
    }
  }

  async #some(max: number): Promise<Uint8Array | null> {
    if (this.bufferedLength === 0) {
      if (this.#filling === null && this.#buffer.length < BODY_LENGTH && max > this.#buffer.length) {
        this.#buffer = new Uint8Array(BODY_LENGTH);
        [this.#start, this.#end] = [0, 0];
      }
      if (!await this.#fill()) return null;
    }
    const length = Math.min(max, this.bufferedLength);
    const bytes = this.#buffer.subarray(this.#start, this.#start + length);
    this.#start += length;
    return bytes;
  }

  /** @returns false at the end of the connection */
  #fill(): Promise<boolean> {
    return this.#filling ?? this.#startFill();
  }

  #startFill(): Promise<boolean> {
    this.#filling ??= this.#read().finally(() => this.#filling = null);
    return this.#filling;
  }

  async #read(): Promise<boolean> {
    if (this.#start === this.#end) [this.#start, this.#end] = [0, 0];
    if (this.#end === this.#buffer.length && this.#start > 0) {
      this.#buffer.copyWithin(0, this.#start, this.#end);
      [this.#start, this.#end] = [0, this.#end - this.#start];
    }
    if (this.#end === this.#buffer.length) {
      const larger = new Uint8Array(this.#buffer.length * 2);
      larger.set(this.#buffer);
      this.#buffer = larger;
    }
    const read = await this.source.read(this.#buffer.subarray(this.#end));
    if (read === null || read === 0) return false;
    this.#end += read;
    return true;
  }

  #isBreak(at: number): boolean {
    return this.#buffer[this.#start + at] === CR && this.#buffer[this.#start + at + 1] === LF;
  }

  /** Where CR LF CR LF begins, or -1. */
  #findEnd(from: number): number {
    for (let at = from; at < this.bufferedLength; at++) {
      if (this.#buffer[this.#start + at] !== LF) continue;
      // At once: who ends lines so never sends the end that is waited for.
      if (this.#buffer[this.#start + at - 1] !== CR) throw refuse("a line ends without CR");
      if (at >= 3 && this.#isBreak(at - 3)) return at - 3;
    }
    return -1;
  }
}

function isVisible(byte: number): boolean {
  return (byte > 0x20 && byte < 0x7f) || byte === CR;
}

function chunkSize(line: string): number {
  const match = /^([0-9A-Fa-f]{1,12})(?:[ \t]*;[\t\x20-\x7e]*)?$/.exec(line);
  if (match === null) throw refuse("a chunk has no size");
  return parseInt(match[1]!, 16);
}

function latin1(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

function refuse(reason: string): LacewingError {
  return new LacewingError("protocol", `Cannot read the message: ${reason}`);
}
