/**
 * The port of the daemon's content store: one file per generation of a task,
 * a record of which pieces are valid, and their digests. A piece is recorded
 * only after its bytes are written, so that what is recorded may be trusted
 * after a crash.
 */
import type { Bitmap } from "../core/bitmap.ts";
import type { TaskMeta, TaskSpec } from "../core/wire/scheduler.ts";

/** What the store knows of one generation of a task. */
export interface StoredTaskInfo {
  readonly spec: TaskSpec;
  readonly meta: TaskMeta;
  /** Pieces that are valid on disk. */
  readonly pieceCount: number;
  readonly complete: boolean;
  /** Digest `algorithm:hex` that the whole content was checked against, or null. */
  readonly verified: string | null;
  /** Wall-clock milliseconds of the last use. */
  readonly lastUsedAtMs: number;
  /** Wall-clock milliseconds when the origin was last known to have this generation. */
  readonly checkedAtMs: number;
}

/** One generation of a task, open for reading and writing. Close it when done. */
export interface StoredTask extends AsyncDisposable {
  readonly info: StoredTaskInfo;
  /** Absolute path of the content's file. */
  readonly path: string;
  /** Valid pieces; read only for everyone but the store. */
  readonly pieces: Bitmap;
  /** SHA-256 hex of a valid piece, or null. */
  digestOf(number: number): string | null;
  /** All valid pieces with their digests, ascending. */
  digests(): [number, string][];
  /**
   * Writes bytes at a position of the content; the piece does not count yet.
   * The buffer may be reused when the promise resolves.
   * @throws {LacewingError} `disk_full`, `file`
   */
  write(bytes: Uint8Array, offset: number): Promise<void>;
  /** Records a piece as valid: its bytes are written and have this digest. */
  commit(number: number, sha256Hex: string): void;
  /**
   * Reads up to `buffer.length` bytes from `offset`.
   * @returns bytes read; fewer only at the content's end
   */
  read(buffer: Uint8Array, offset: number): Promise<number>;
  /** Marks the whole content as complete, and as checked against a digest if there was one. */
  complete(verified: string | null): void;
  /** The origin was asked just now and still has this generation. */
  checked(): void;
}

/** The daemon's store of contents. Every method may throw `disk_full` or `file`. */
export interface PieceStore extends AsyncDisposable {
  /** The newest generation of a task, or null. Counts as a use. Opening twice gives handles on one shared state. */
  open(taskId: string): Promise<StoredTask | null>;
  /** Makes an empty generation, replacing (removing) any other generation of the task. */
  create(spec: TaskSpec, meta: TaskMeta): Promise<StoredTask>;
  /** Every generation on disk, last used first. */
  list(): StoredTaskInfo[];
  /** Removes a task with all its bytes; open handles go on reading until closed. Unknown tasks are fine. */
  remove(taskId: string): Promise<void>;
  /** Bytes on disk and free, of the store's file system. */
  usage(): { storedBytes: number; freeBytes: number; totalBytes: number };
  /** Evicts what may go now (expired, or least recently used above the thresholds); tasks open elsewhere stay. @returns ids removed */
  collectGarbage(): Promise<string[]>;
}
