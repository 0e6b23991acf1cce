/**
 * The content store on disk: one sparse file a generation under
 * `<dataDir>/<first 3 digits of the id>/`, records in `<dataDir>/pieces.db`.
 *
 * Keeps: a piece is recorded after its bytes are written; what touches one
 * task happens in turn; a task that is open is never evicted. A file goes
 * before its record (on a full disk the record cannot), and the record before
 * a new file: a crash in between leaves a record without a file or a file
 * without a record, which both are found out, and never a record of wrong bytes.
 */
import { closeSync, statfsSync } from "node:fs";
import { LacewingError } from "../core/errors.ts";
import { type Logger, silentLogger } from "../core/log.ts";
import { pieceCount } from "../core/piece.ts";
import type { TaskMeta, TaskSpec } from "../core/wire/scheduler.ts";
import { Content, type ContentOwner, describe, layoutOf } from "./content.ts";
import * as files from "./content_file.ts";
import { fileError } from "./file_errors.ts";
import { chooseEvictions, type EvictionPolicy } from "./gc.ts";
import { LoopTurn } from "./loop_turn.ts";
import type { GenerationRecord, Metadata, PieceRecord } from "./metadata.ts";
import type { PieceStore, StoredTask, StoredTaskInfo } from "./piece_store.ts";
import { openMetadata, readBootId, removeMetadata, syncFiles } from "./startup.ts";

/** Pieces of one content: what a bitmap and a digest list may cost in memory (64 TiB at 16 MiB). */
const PIECE_COUNT_MAX = 4 * 1024 * 1024;

/**
 * Pieces are recorded together: a transaction of one costs two writes to the log. Those of the
 * last moment before a SIGKILL are fetched again.
 */
const FLUSH_DELAY_MS = 100;

export interface StorageConfig extends EvictionPolicy {
  /** Whether contents outlive the store; if not, they go when it closes, and what a killed one left goes at the start. */
  readonly keepStorage: boolean;
}

export interface DiskStoreOptions {
  /** Absolute path; made for this user alone if it is not there. */
  readonly dataDir: string;
  readonly config: StorageConfig;
  /** Wall-clock milliseconds. */
  readonly now?: () => number;
  readonly log?: Logger;
  /** How long pieces may wait to be recorded together; 100 ms by default, 0 for the end of the same turn. */
  readonly flushDelayMs?: number;
  /** Names this run of the machine, null where it has no name; read from the kernel by default. */
  readonly bootId?: string | null;
}

/**
 * Opens the store of a data folder, which belongs to this process until it is closed. Close handles before the store.
 *
 * @throws {LacewingError} `already_running` when another process has it open, `disk_full`, `file`
 */
export async function openDiskStore(options: DiskStoreOptions): Promise<PieceStore> {
  const { dataDir: folder, config, now = Date.now, log = silentLogger, flushDelayMs = FLUSH_DELAY_MS } = options;
  const bootId = options.bootId === undefined ? await readBootId() : options.bootId;
  try {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    await Deno.chmod(folder, 0o700);
    const metadata = await openMetadata(folder, { bootId, log });
    const store = new DiskStore(metadata, { folder, config, now, log, flushDelayMs });
    const orphanCount = await files.removeOrphans(folder, store.paths());
    if (orphanCount > 0) log.info("data files without a record were removed", { count: orphanCount });
    return store;
  } catch (cause) {
    throw fileError(cause, { action: "open the content store", folder });
  }
}

/** A task of the store; `content` while it is open. */
interface Entry {
  readonly record: GenerationRecord;
  readonly path: string;
  pieceCount: number;
  content: Content | null;
}

class DiskStore implements PieceStore, ContentOwner {
  readonly folder: string;
  readonly turn = new LoopTurn();
  readonly now: () => number;
  readonly #metadata: Metadata;
  readonly #config: StorageConfig;
  readonly #log: Logger;
  readonly #entries = new Map<string, Entry>();
  /** Last thing under way for each task. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** Files with bytes that may not have reached the disk. */
  readonly #unsynced = new Set<string>();
  #pending: PieceRecord[] = [];
  readonly #flushDelayMs: number;
  #flushTimer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(
    metadata: Metadata,
    { folder, config, now, log, flushDelayMs }:
      & Required<Pick<DiskStoreOptions, "config" | "now" | "log" | "flushDelayMs">>
      & { folder: string },
  ) {
    this.#flushDelayMs = flushDelayMs;
    this.folder = folder;
    this.now = now;
    this.#metadata = metadata;
    this.#config = config;
    this.#log = log;
    for (const { record, pieceCount } of metadata.generations()) {
      if (!config.keepStorage) {
        metadata.delete(record.id);
        continue;
      }
      const path = files.dataPath(folder, record);
      this.#entries.set(record.spec.task_id, { record, path, pieceCount, content: null });
    }
  }

  /** Paths of every file that has an owner. */
  paths(): Set<string> {
    return new Set([...this.#entries.values()].map((entry) => entry.path));
  }

  async open(taskId: string): Promise<StoredTask | null> {
    return await this.#inTurn(taskId, "open a task", async () => {
      const entry = this.#entries.get(taskId);
      if (entry === undefined) return null;
      entry.content ??= await this.#load(entry);
      this.#touch(entry.record);
      return entry.content.handle();
    });
  }

  async create(spec: TaskSpec, meta: TaskMeta): Promise<StoredTask> {
    assertStorable(spec, meta);
    return await this.#inTurn(spec.task_id, "make a task", async () => {
      await this.#drop(spec.task_id);
      const path = files.dataPath(this.folder, { spec, meta });
      const file = await files.createDataFile(path, meta.content_length);
      try {
        const record = this.#metadata.insert(spec, meta, this.now());
        const content = new Content(record, file, this);
        this.#entries.set(spec.task_id, { record, path, pieceCount: 0, content });
        return content.handle();
      } catch (error) {
        closeSync(file.descriptor);
        await files.removeFile(path);
        throw error;
      }
    });
  }

  list(): StoredTaskInfo[] {
    return [...this.#entries.values()]
      .map((entry) => describe(entry.record, countOf(entry)))
      .sort((a, b) => b.lastUsedAtMs - a.lastUsedAtMs);
  }

  async remove(taskId: string): Promise<void> {
    await this.#inTurn(taskId, "remove a task", () => this.#drop(taskId));
  }

  usage(): { storedBytes: number; freeBytes: number; totalBytes: number } {
    try {
      const { bsize, blocks, bavail } = statfsSync(this.folder);
      const storedBytes = [...this.#entries.values()].reduce((sum, entry) => sum + bytesOf(entry), 0);
      return { storedBytes, freeBytes: bavail * bsize, totalBytes: blocks * bsize };
    } catch (cause) {
      throw fileError(cause, { action: "look at the disk", folder: this.folder });
    }
  }

  async collectGarbage(): Promise<string[]> {
    const tasks = [...this.#entries].map(([taskId, entry]) => ({
      taskId,
      lastUsedAtMs: entry.record.lastUsedAtMs,
      storedBytes: bytesOf(entry),
      open: entry.content !== null,
    }));
    const chosen = chooseEvictions(tasks, this.#config, { nowMs: this.now(), ...this.usage() });
    const removed: string[] = [];
    for (const taskId of chosen) {
      await this.#inTurn(taskId, "evict a task", async () => {
        // It may have been opened, or removed, since the choice was made.
        if (this.#entries.get(taskId)?.content !== null) return;
        await this.#drop(taskId);
        removed.push(taskId);
      });
    }
    return removed;
  }

  onPiece(content: Content, number: number, sha256: string): void {
    if (content.removed || this.#closed) return;
    this.#pending.push({ generationId: content.record.id, number, sha256 });
    if (this.#flushDelayMs > 0) this.#flushTimer ??= setTimeout(() => this.#flush(), this.#flushDelayMs);
    else queueMicrotask(() => this.#flush());
  }

  onRecord(content: Content): void {
    if (content.removed || this.#closed) return;
    this.#flush();
    this.#metadata.save(content.record);
  }

  onWrite(content: Content): void {
    this.#unsynced.add(content.file.path);
  }

  async onRelease(content: Content): Promise<void> {
    content.references -= 1;
    await this.#inTurn(content.record.spec.task_id, "close a task", async () => {
      if (content.references > 0 || content.closed) return;
      const entry = this.#entries.get(content.record.spec.task_id);
      if (entry?.content === content) {
        entry.pieceCount = content.pieces.count;
        entry.content = null;
        this.#flush();
        this.#touch(content.record);
      }
      await content.close();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    await Promise.allSettled(this.#turns.values());
    this.#flush();
    if (!this.#config.keepStorage) { for (const taskId of [...this.#entries.keys()]) await this.remove(taskId); }
    this.#closed = true;
    const isSynced = await syncFiles([...this.#unsynced], this.#log);
    try {
      this.#metadata.close(isSynced && this.#pending.length === 0);
    } catch (error) {
      this.#log.warn("the clean stop could not be recorded", { error });
    }
    if (!this.#config.keepStorage) await removeMetadata(this.folder);
  }

  /** Opens the file of an entry, and checks it where it cannot be taken at its record's word. */
  async #load(entry: Entry): Promise<Content> {
    const { record, path } = entry;
    const length = record.meta.content_length;
    const found = await files.lookAt(path);
    const state = files.judgeFile(record, found);
    const pieces = this.#metadata.pieces(record.id);
    if (found === null) {
      const content = new Content(record, await files.createDataFile(path, length), this);
      this.#forget(content, pieces.map(([number]) => number));
      return content;
    }
    const isShared = found.nameCount > 1;
    if (found.size !== length && isShared) await files.breakLink(path);
    let content = new Content(record, files.openDataFile(path, { length, size: found.size }), this);
    try {
      for (const [number, digest] of pieces) content.adopt(number, digest);
      if (state === "same") return content;
      const wrong = await files.findWrongPieces(content);
      if (wrong.length > 0 && isShared && found.size === length) content = await this.#unshare(content);
      this.#forget(content, wrong);
      return content;
    } catch (error) {
      await content.close();
      throw error;
    }
  }

  /** The same content in a file of its own. */
  async #unshare(content: Content): Promise<Content> {
    const { path } = content.file;
    const length = content.record.meta.content_length;
    await files.breakLink(path);
    const own = new Content(content.record, files.openDataFile(path, { length, size: length }), this);
    for (const [number, digest] of content.digests()) own.adopt(number, digest);
    await content.close();
    return own;
  }

  /** Takes pieces back after a check, and records what the check found. */
  #forget(content: Content, wrong: readonly number[]): void {
    const { record } = content;
    for (const number of wrong) content.forget(number);
    this.#metadata.forgetPieces(record.id, wrong);
    record.suspect = false;
    if (!content.pieces.isFull || wrong.length > 0) {
      record.complete = false;
      record.verified = null;
    }
    if (record.complete) content.complete(null);
    else this.#metadata.save(record);
    if (wrong.length === 0) return;
    const fields = { task_id: record.spec.task_id, wrong: wrong.length, valid: content.pieces.count };
    this.#log.warn("a stored file is not what was recorded; its wrong pieces are forgotten", fields);
  }

  async #drop(taskId: string): Promise<void> {
    const entry = this.#entries.get(taskId);
    if (entry === undefined) return;
    await files.removeFile(entry.path);
    this.#unsynced.delete(entry.path);
    this.#entries.delete(taskId);
    if (entry.content !== null) entry.content.removed = true;
    this.#pending = this.#pending.filter(({ generationId }) => generationId !== entry.record.id);
    this.#metadata.delete(entry.record.id);
  }

  /** Notes a use; one that cannot be recorded (full disk) hinders nobody. */
  #touch(record: GenerationRecord): void {
    record.lastUsedAtMs = this.now();
    if (this.#closed) return;
    try {
      this.#metadata.save(record);
    } catch (error) {
      this.#log.warn("a task's last use could not be recorded", { task_id: record.spec.task_id, error });
    }
  }

  #flush(): void {
    clearTimeout(this.#flushTimer);
    this.#flushTimer = undefined;
    if (this.#pending.length === 0 || this.#closed) return;
    try {
      this.#metadata.addPieces(this.#pending);
      this.#pending = [];
    } catch (error) {
      // The bytes are there and may be served; they are tried again with the next piece, and fetched again after a crash.
      this.#log.warn("pieces could not be recorded", { count: this.#pending.length, error });
    }
  }

  async #inTurn<T>(taskId: string, action: string, act: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(taskId) ?? Promise.resolve();
    const turn = before.then(act, act);
    const settled = turn.catch(() => {});
    this.#turns.set(taskId, settled);
    try {
      return await turn;
    } catch (cause) {
      throw fileError(cause, { action, folder: this.folder });
    } finally {
      if (this.#turns.get(taskId) === settled) this.#turns.delete(taskId);
    }
  }
}

function assertStorable(spec: TaskSpec, meta: TaskMeta): void {
  if (!/^[0-9a-f]{64}$/.test(spec.task_id)) throw new TypeError(`Cannot store task: ${spec.task_id} is no task id`);
  const count = pieceCount({ contentLength: meta.content_length, pieceLength: meta.piece_length });
  if (count <= PIECE_COUNT_MAX) return;
  throw new LacewingError(
    "protocol",
    `Cannot store task ${spec.task_id}: it has ${count} pieces, at most ${PIECE_COUNT_MAX} are allowed`,
  );
}

function countOf({ content, pieceCount }: Entry): number {
  return content?.pieces.count ?? pieceCount;
}

/** Bytes of the valid pieces; exact but for a short last piece. */
function bytesOf(entry: Entry): number {
  const { contentLength, pieceLength } = layoutOf(entry.record);
  return Math.min(contentLength, countOf(entry) * pieceLength);
}
