/**
 * JSON lines over a byte connection, with raw bytes in between: the framing of
 * the daemon's Unix socket and of the exchange between neighbours. A line is
 * at most `LINE_LENGTH_MAX` bytes; a longer one is an error, not memory.
 */
import { LacewingError } from "../errors.ts";

/** Bytes of one line, newline included, unless a reader is told less. */
export const LINE_LENGTH_MAX = 1024 * 1024;
/** Bytes asked for at once; a reader of short lines with raw bytes behind them asks for less. */
const CHUNK_LENGTH = 64 * 1024;
const NEWLINE = 10;
/** Stateless as they are used, so that one of each serves all. */
const DECODER = new TextDecoder();
const ENCODER = new TextEncoder();

/** What is read from: `Deno.Conn` and anything shaped like it. */
export interface ByteReader {
  read(buffer: Uint8Array): Promise<number | null>;
}

/** What is written to: `Deno.Conn` and anything shaped like it. */
export interface ByteWriter {
  write(bytes: Uint8Array): Promise<number>;
}

/** Reads lines and, where a line announces them, the raw bytes that follow. */
export class LineReader {
  readonly #lineLengthMax: number;
  #buffer: Uint8Array<ArrayBuffer>;
  #start = 0;
  #end = 0;

  constructor(
    private readonly source: ByteReader,
    { lineLengthMax = LINE_LENGTH_MAX, chunkLength = CHUNK_LENGTH }: {
      lineLengthMax?: number;
      chunkLength?: number;
    } = {},
  ) {
    this.#lineLengthMax = lineLengthMax;
    this.#buffer = new Uint8Array(Math.min(lineLengthMax, chunkLength));
  }

  /** Bytes that came behind the last line and were not asked for yet. */
  get bufferedLength(): number {
    return this.#end - this.#start;
  }

  /**
   * The next line's JSON value, or undefined at the end of the connection.
   *
   * @throws {LacewingError} `protocol` on a line that is too long, cut off or no JSON.
   */
  async readJson(): Promise<unknown> {
    const line = await this.readLine();
    if (line === undefined) return undefined;
    try {
      return JSON.parse(line);
    } catch (cause) {
      throw new LacewingError("protocol", "Cannot read line: not JSON", { cause });
    }
  }

  /** The next line without its newline (and carriage return), or undefined at the end. */
  async readLine(): Promise<string | undefined> {
    let scanned = 0;
    while (true) {
      const newline = this.#buffer.subarray(this.#start + scanned, this.#end).indexOf(NEWLINE);
      if (newline >= 0) {
        const end = this.#start + scanned + newline;
        const line = DECODER.decode(this.#buffer.subarray(this.#start, end));
        this.#start = end + 1;
        return line.endsWith("\r") ? line.slice(0, -1) : line;
      }
      scanned = this.#end - this.#start;
      if (scanned >= this.#lineLengthMax) {
        throw new LacewingError("protocol", `Cannot read line: longer than ${this.#lineLengthMax} bytes`);
      }
      if (!await this.#fill()) {
        if (scanned === 0) return undefined;
        throw new LacewingError("protocol", "Cannot read line: the connection ended in the middle");
      }
    }
  }

  /**
   * Raw bytes into `target`, as many as are there, at least 1.
   *
   * @returns bytes read, or null at the end of the connection
   */
  async readBytes(target: Uint8Array): Promise<number | null> {
    const buffered = this.#end - this.#start;
    if (buffered === 0) return await this.source.read(target);
    const length = Math.min(buffered, target.length);
    target.set(this.#buffer.subarray(this.#start, this.#start + length));
    this.#start += length;
    return length;
  }

  async #fill(): Promise<boolean> {
    if (this.#start > 0) {
      this.#buffer.copyWithin(0, this.#start, this.#end);
      this.#end -= this.#start;
      this.#start = 0;
    }
    if (this.#end === this.#buffer.length) {
      const larger = new Uint8Array(Math.min(this.#buffer.length * 2, this.#lineLengthMax));
      larger.set(this.#buffer);
      this.#buffer = larger;
    }
    const read = await this.source.read(this.#buffer.subarray(this.#end));
    if (read === null) return false;
    this.#end += read;
    return true;
  }
}

/** Writes lines and raw bytes in the order of the calls. */
export class LineWriter {
  #last: Promise<void> = Promise.resolve();

  constructor(private readonly sink: ByteWriter) {}

  /** @throws {RangeError} if the line would be over the bound. */
  writeJson(value: unknown): Promise<void> {
    const bytes = ENCODER.encode(JSON.stringify(value) + "\n");
    if (bytes.length > LINE_LENGTH_MAX) throw new RangeError(`Cannot write line: ${bytes.length} bytes`);
    return this.writeBytes(bytes);
  }

  /** Resolves when the kernel has taken all of them; the buffer may be reused then. */
  writeBytes(bytes: Uint8Array): Promise<void> {
    const turn = this.#last.then(() => writeAll(this.sink, bytes));
    this.#last = turn.catch(() => {});
    return turn;
  }
}

/** Writes all of `bytes`. */
export async function writeAll(sink: ByteWriter, bytes: Uint8Array): Promise<void> {
  let written = 0;
  while (written < bytes.length) written += await sink.write(bytes.subarray(written));
}
