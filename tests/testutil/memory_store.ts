/**
 * A piece store in memory, for tests of what stands on the port: passes the
 * same conformance suite as the store on disk. Paths name no file.
 */
import { Bitmap } from "../../peer/core/bitmap.ts";
import { pieceCount } from "../../peer/core/piece.ts";
import type { TaskMeta, TaskSpec } from "../../peer/core/wire/scheduler.ts";
import type { PieceStore, StoredTask, StoredTaskInfo } from "../../peer/storage/piece_store.ts";

interface Memory {
  readonly spec: TaskSpec;
  readonly meta: TaskMeta;
  readonly bytes: Uint8Array;
  readonly pieces: Bitmap;
  readonly digests: Map<number, string>;
  complete: boolean;
  verified: string | null;
  lastUsedAtMs: number;
  checkedAtMs: number;
  references: number;
}

export interface MemoryStoreOptions {
  now?: () => number;
  taskExpireTimeMs?: number;
}

export class MemoryStore implements PieceStore {
  readonly #tasks = new Map<string, Memory>();
  readonly #now: () => number;
  readonly #taskExpireTimeMs: number;

  constructor({ now = Date.now, taskExpireTimeMs = 0 }: MemoryStoreOptions = {}) {
    this.#now = now;
    this.#taskExpireTimeMs = taskExpireTimeMs;
  }

  open(taskId: string): Promise<StoredTask | null> {
    const memory = this.#tasks.get(taskId);
    if (memory === undefined) return Promise.resolve(null);
    memory.lastUsedAtMs = this.#now();
    return Promise.resolve(new MemoryTask(memory, this.#now));
  }

  create(spec: TaskSpec, meta: TaskMeta): Promise<StoredTask> {
    const memory: Memory = {
      spec,
      meta,
      bytes: new Uint8Array(meta.content_length),
      pieces: new Bitmap(pieceCount({ contentLength: meta.content_length, pieceLength: meta.piece_length })),
      digests: new Map(),
      complete: false,
      verified: null,
      lastUsedAtMs: this.#now(),
      checkedAtMs: this.#now(),
      references: 0,
    };
    this.#tasks.set(spec.task_id, memory);
    return Promise.resolve(new MemoryTask(memory, this.#now));
  }

  list(): StoredTaskInfo[] {
    return [...this.#tasks.values()].map(describe).sort((a, b) => b.lastUsedAtMs - a.lastUsedAtMs);
  }

  remove(taskId: string): Promise<void> {
    this.#tasks.delete(taskId);
    return Promise.resolve();
  }

  usage(): { storedBytes: number; freeBytes: number; totalBytes: number } {
    const storedBytes = [...this.#tasks.values()].reduce(
      (sum, { meta, pieces }) => sum + Math.min(meta.content_length, pieces.count * meta.piece_length),
      0,
    );
    return { storedBytes, freeBytes: 2 ** 40, totalBytes: 2 ** 41 };
  }

  collectGarbage(): Promise<string[]> {
    const expired = [...this.#tasks].filter(([, memory]) =>
      this.#taskExpireTimeMs > 0 && memory.references === 0 &&
      this.#now() - memory.lastUsedAtMs > this.#taskExpireTimeMs
    ).map(([taskId]) => taskId);
    for (const taskId of expired) this.#tasks.delete(taskId);
    return Promise.resolve(expired);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#tasks.clear();
    return Promise.resolve();
  }
}

class MemoryTask implements StoredTask {
  readonly #memory: Memory;
  readonly #now: () => number;
  #closed = false;

  constructor(memory: Memory, now: () => number) {
    this.#memory = memory;
    this.#now = now;
    memory.references += 1;
  }

  get info(): StoredTaskInfo {
    return describe(this.#memory);
  }

  get path(): string {
    return `/memory/${this.#memory.spec.task_id}.${this.#memory.meta.generation}`;
  }

  get pieces(): Bitmap {
    return this.#memory.pieces;
  }

  digestOf(number: number): string | null {
    return this.#memory.digests.get(number) ?? null;
  }

  digests(): [number, string][] {
    return [...this.#memory.digests].sort(([a], [b]) => a - b);
  }

  write(bytes: Uint8Array, offset: number): Promise<void> {
    this.#assertOpen();
    if (offset < 0 || offset + bytes.length > this.#memory.bytes.length) {
      return Promise.reject(new RangeError(`Cannot write ${bytes.length} B at ${offset}`));
    }
    this.#memory.bytes.set(bytes, offset);
    return Promise.resolve();
  }

  commit(number: number, sha256Hex: string): void {
    this.#assertOpen();
    if (!Number.isInteger(number) || number < 0 || number >= this.pieces.size) {
      throw new RangeError(`Cannot commit piece ${number} of ${this.pieces.size}`);
    }
    if (this.pieces.add(number)) this.#memory.digests.set(number, sha256Hex);
  }

  read(buffer: Uint8Array, offset: number): Promise<number> {
    this.#assertOpen();
    const part = this.#memory.bytes.subarray(offset, offset + buffer.length);
    buffer.set(part);
    return Promise.resolve(part.length);
  }

  complete(verified: string | null): void {
    this.#assertOpen();
    if (!this.pieces.isFull) throw new TypeError("Cannot complete task: pieces are missing");
    this.#memory.complete = true;
    this.#memory.verified = verified ?? this.#memory.verified;
  }

  checked(): void {
    this.#assertOpen();
    this.#memory.checkedAtMs = this.#now();
  }

  [Symbol.asyncDispose](): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#memory.references -= 1;
      this.#memory.lastUsedAtMs = this.#now();
    }
    return Promise.resolve();
  }

  #assertOpen(): void {
    if (this.#closed) throw new TypeError("Cannot use a stored task after it was closed");
  }
}

function describe(memory: Memory): StoredTaskInfo {
  const { spec, meta, complete, verified, lastUsedAtMs, checkedAtMs } = memory;
  return { spec, meta, pieceCount: memory.pieces.count, complete, verified, lastUsedAtMs, checkedAtMs };
}
