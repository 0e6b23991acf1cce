/**
 * One open generation: its file descriptor, which pieces are valid, and their
 * digests. Every handle on the generation shares this state. Bytes move only
 * by positional reads and writes: seeking on a shared descriptor corrupts.
 *
 * The descriptor closes when the last handle is closed and no read or write is
 * under way; a removed generation stays readable until then.
 */
import { close, fstatSync, futimesSync } from "node:fs";
import { Bitmap } from "../core/bitmap.ts";
import { pieceCount } from "../core/piece.ts";
import { fileError } from "./file_errors.ts";
import type { LoopTurn } from "./loop_turn.ts";
import type { GenerationRecord } from "./metadata.ts";
import { PositionalIo } from "./positional_io.ts";
import type { StoredTask, StoredTaskInfo } from "./piece_store.ts";

/** What a content tells the store that owns it. */
export interface ContentOwner {
  readonly folder: string;
  /** Of all that moves bytes. */
  readonly turn: LoopTurn;
  now(): number;
  /** A piece became valid. */
  onPiece(content: Content, number: number, sha256: string): void;
  /** The record changed. */
  onRecord(content: Content): void;
  /** Bytes were written that the disk may not have yet. */
  onWrite(content: Content): void;
  /** A handle was closed. */
  onRelease(content: Content): Promise<void>;
}

export interface ContentFile {
  readonly path: string;
  readonly descriptor: number;
}

export class Content {
  readonly pieces: Bitmap;
  /** Handles that are open. */
  references = 0;
  /** Whether the generation left the store while handles were open. */
  removed = false;
  /** Whether the descriptor is closed, or will be. */
  closed = false;
  readonly #digests: (string | null)[];
  readonly #owner: ContentOwner;
  readonly #io: PositionalIo;
  #busyCount = 0;
  #onIdle: (() => void) | null = null;

  constructor(readonly record: GenerationRecord, readonly file: ContentFile, owner: ContentOwner) {
    this.#owner = owner;
    this.#io = new PositionalIo(file);
    const count = pieceCount(layoutOf(record));
    this.pieces = new Bitmap(count);
    this.#digests = new Array<string | null>(count).fill(null);
  }

  get info(): StoredTaskInfo {
    return describe(this.record, this.pieces.count);
  }

  /** Takes a piece as valid without telling the owner. */
  adopt(number: number, sha256: string): void {
    if (this.pieces.add(number)) this.#digests[number] = sha256;
  }

  forget(number: number): void {
    if (this.pieces.delete(number)) this.#digests[number] = null;
  }

  commit(number: number, sha256: string): void {
    if (!Number.isInteger(number) || number < 0 || number >= this.pieces.size) {
      throw new RangeError(`Cannot commit piece ${number} of ${this.pieces.size}`);
    }
    if (!/^[0-9a-f]{64}$/.test(sha256)) throw new TypeError(`Cannot commit piece ${number}: no SHA-256 in hex`);
    if (this.pieces.has(number)) return;
    this.adopt(number, sha256);
    this.#owner.onPiece(this, number, sha256);
  }

  digestOf(number: number): string | null {
    return this.#digests[number] ?? null;
  }

  digests(): [number, string][] {
    return [...this.pieces].map((number) => [number, this.#digests[number] ?? ""]);
  }

  complete(verified: string | null): void {
    if (!this.pieces.isFull) {
      throw new TypeError(`Cannot complete task: ${this.pieces.count} of ${this.pieces.size} pieces are valid`);
    }
    this.record.complete = true;
    this.record.verified = verified ?? this.record.verified;
    this.#date();
    this.record.fileMtimeMs = this.#attempt("look at a file", () => fstatSync(this.file.descriptor).mtimeMs);
    this.#owner.onRecord(this);
  }

  /** Dates the file as the origin does: outputs that are links of it tell whether the origin has a newer one. */
  #date(): void {
    const seconds = Date.parse(this.record.meta.last_modified ?? "") / 1000;
    if (Number.isFinite(seconds)) {
      this.#attempt("date a file", () => futimesSync(this.file.descriptor, seconds, seconds));
    }
  }

  checked(): void {
    this.record.checkedAtMs = this.#owner.now();
    this.#owner.onRecord(this);
  }

  async write(bytes: Uint8Array, offset: number): Promise<void> {
    const { content_length } = this.record.meta;
    if (offset < 0 || offset + bytes.length > content_length) {
      throw new RangeError(`Cannot write ${bytes.length} B at ${offset}: the content has ${content_length} B`);
    }
    this.#owner.onWrite(this);
    await this.#busy("write piece data", async () => {
      for (let done = 0; done < bytes.length;) {
        const written = this.#io.write(bytes.subarray(done), offset + done);
        done += typeof written === "number" ? written : await written;
      }
    });
    const pause = this.#owner.turn.spent();
    if (pause !== null) await pause;
  }

  async read(buffer: Uint8Array, offset: number): Promise<number> {
    const wanted = Math.min(buffer.length, Math.max(0, this.record.meta.content_length - offset));
    let done = 0;
    await this.#busy("read piece data", async () => {
      while (done < wanted) {
        const read = this.#io.read(buffer.subarray(done, wanted), offset + done);
        const count = typeof read === "number" ? read : await read;
        if (count === 0) break;
        done += count;
      }
    });
    const pause = this.#owner.turn.spent();
    if (pause !== null) await pause;
    return done;
  }

  /** A new handle. */
  handle(): StoredTask {
    this.references += 1;
    return new Handle(this, this.#owner);
  }

  /** Closes the descriptor once nothing is under way. */
  async close(): Promise<void> {
    this.closed = true;
    if (this.#busyCount > 0) await new Promise<void>((resolve) => this.#onIdle = resolve);
    this.#io.close();
    await new Promise<void>((resolve) => close(this.file.descriptor, () => resolve()));
  }

  async #busy(action: string, act: () => Promise<void>): Promise<void> {
    this.#busyCount += 1;
    try {
      await act();
    } catch (cause) {
      throw fileError(cause, { action, folder: this.#owner.folder });
    } finally {
      this.#busyCount -= 1;
      if (this.#busyCount === 0) this.#onIdle?.();
    }
  }

  #attempt<T>(action: string, act: () => T): T {
    try {
      return act();
    } catch (cause) {
      throw fileError(cause, { action, folder: this.#owner.folder });
    }
  }
}

class Handle implements StoredTask {
  readonly #content: Content;
  readonly #owner: ContentOwner;
  #closed = false;

  constructor(content: Content, owner: ContentOwner) {
    this.#content = content;
    this.#owner = owner;
  }

  get info(): StoredTaskInfo {
    return this.#content.info;
  }

  get path(): string {
    return this.#content.file.path;
  }

  get pieces(): Bitmap {
    return this.#content.pieces;
  }

  digestOf(number: number): string | null {
    return this.#content.digestOf(number);
  }

  digests(): [number, string][] {
    return this.#content.digests();
  }

  async write(bytes: Uint8Array, offset: number): Promise<void> {
    await this.#opened().write(bytes, offset);
  }

  commit(number: number, sha256Hex: string): void {
    this.#opened().commit(number, sha256Hex);
  }

  async read(buffer: Uint8Array, offset: number): Promise<number> {
    return await this.#opened().read(buffer, offset);
  }

  complete(verified: string | null): void {
    this.#opened().complete(verified);
  }

  checked(): void {
    this.#opened().checked();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#owner.onRelease(this.#content);
  }

  #opened(): Content {
    if (this.#closed) throw new TypeError("Cannot use a stored task after it was closed");
    return this.#content;
  }
}

/** How a record's content is cut. */
export function layoutOf({ meta }: GenerationRecord): { contentLength: number; pieceLength: number } {
  return { contentLength: meta.content_length, pieceLength: meta.piece_length };
}

/** A record as the port shows it. */
export function describe(record: GenerationRecord, pieceCount: number): StoredTaskInfo {
  const { spec, meta, complete, verified, lastUsedAtMs, checkedAtMs } = record;
  return { spec, meta, pieceCount, complete, verified, lastUsedAtMs, checkedAtMs };
}
