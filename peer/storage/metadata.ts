/**
 * The store's records in `node:sqlite`: one row a generation, one row a valid
 * piece. WAL with `synchronous=NORMAL`: what was committed survives the death
 * of the process, and a power cut may lose the last rows but never mixes them.
 *
 * Holds the database's lock for itself, so that two daemons never share a data
 * folder: each would remove the other's files as orphans.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { LacewingError } from "../core/errors.ts";
import { type TaskMeta, taskMeta, type TaskSpec, taskSpec } from "../core/wire/scheduler.ts";
import { fileError, isLockedDatabase } from "./file_errors.ts";

/** One generation of a task as it is recorded. */
export interface GenerationRecord {
  readonly id: number;
  readonly spec: TaskSpec;
  readonly meta: TaskMeta;
  complete: boolean;
  verified: string | null;
  lastUsedAtMs: number;
  checkedAtMs: number;
  /** Modification time of the file when it was complete, or null. */
  fileMtimeMs: number | null;
  /** The machine went down without a clean stop since: the bytes may not have reached the disk. */
  suspect: boolean;
}

export interface PieceRecord {
  readonly generationId: number;
  readonly number: number;
  readonly sha256: string;
}

/** Schema changes in order; `user_version` counts those that are in. Never change one that was released. */
const MIGRATIONS = [
  `CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
   CREATE TABLE generation (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     task_id TEXT NOT NULL UNIQUE,
     spec TEXT NOT NULL,
     meta TEXT NOT NULL,
     complete INTEGER NOT NULL DEFAULT 0,
     verified TEXT,
     last_used_ms INTEGER NOT NULL,
     checked_ms INTEGER NOT NULL,
     file_mtime_ms REAL,
     suspect INTEGER NOT NULL DEFAULT 0
   ) STRICT;
   CREATE TABLE piece (
     generation_id INTEGER NOT NULL REFERENCES generation(id) ON DELETE CASCADE,
     number INTEGER NOT NULL,
     sha256 BLOB NOT NULL,
     PRIMARY KEY (generation_id, number)
   ) STRICT, WITHOUT ROWID;`,
];

export class Metadata {
  readonly #database: DatabaseSync;
  readonly #folder: string;
  readonly #statements = new Map<string, StatementSync>();

  /**
   * Opens or makes the database.
   *
   * @param bootId names this run of the machine, or null where it has no name
   * @throws {LacewingError} `already_running` if another process has it, `file` if a newer version made it;
   * SQLite's own error if the file is damaged.
   */
  constructor(path: string, { folder, bootId }: { folder: string; bootId: string | null }) {
    this.#folder = folder;
    this.#database = new DatabaseSync(path);
    try {
      this.#lock();
      this.#migrate(path);
      this.#begin(bootId);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** Every generation with how many valid pieces it has; a row that cannot be read is deleted. */
  generations(): { record: GenerationRecord; pieceCount: number }[] {
    const rows = this.#all(
      `SELECT g.*, (SELECT count(*) FROM piece p WHERE p.generation_id = g.id) AS pieces FROM generation g`,
    );
    return rows.flatMap((row) => {
      const record = toRecord(row);
      if (record === null) this.delete(Number(row.id));
      return record === null ? [] : [{ record, pieceCount: Number(row.pieces) }];
    });
  }

  /** Valid pieces of a generation with their SHA-256 in hex, ascending. */
  pieces(generationId: number): [number, string][] {
    const rows = this.#all(`SELECT number, sha256 FROM piece WHERE generation_id = ? ORDER BY number`, generationId);
    return rows.map((row) => [Number(row.number), toHex(row.sha256)]);
  }

  insert(spec: TaskSpec, meta: TaskMeta, nowMs: number): GenerationRecord {
    const row = this.#write(
      "record a task",
      `INSERT INTO generation (task_id, spec, meta, last_used_ms, checked_ms) VALUES (?, ?, ?, ?, ?)`,
      spec.task_id,
      JSON.stringify(spec),
      JSON.stringify(meta),
      nowMs,
      nowMs,
    );
    return {
      id: Number(row.lastInsertRowid),
      spec,
      meta,
      complete: false,
      verified: null,
      lastUsedAtMs: nowMs,
      checkedAtMs: nowMs,
      fileMtimeMs: null,
      suspect: false,
    };
  }

  /** Writes what may change of a record. */
  save(record: GenerationRecord): void {
    this.#write(
      "record a task",
      `UPDATE generation SET complete = ?, verified = ?, last_used_ms = ?, checked_ms = ?, file_mtime_ms = ?, suspect = ? WHERE id = ?`,
      Number(record.complete),
      record.verified,
      Math.round(record.lastUsedAtMs),
      Math.round(record.checkedAtMs),
      record.fileMtimeMs,
      Number(record.suspect),
      record.id,
    );
  }

  /** Forgets a generation with its pieces. */
  delete(generationId: number): void {
    this.#write("forget a task", `DELETE FROM generation WHERE id = ?`, generationId);
  }

  /** Records pieces, all or none. */
  addPieces(pieces: readonly PieceRecord[]): void {
    this.#transaction("record pieces", () => {
      const insert = this.#prepare(`INSERT OR REPLACE INTO piece (generation_id, number, sha256) VALUES (?, ?, ?)`);
      for (const { generationId, number, sha256 } of pieces) insert.run(generationId, number, fromHex(sha256));
    });
  }

  forgetPieces(generationId: number, numbers: readonly number[]): void {
    this.#transaction("forget pieces", () => {
      const remove = this.#prepare(`DELETE FROM piece WHERE generation_id = ? AND number = ?`);
      for (const number of numbers) remove.run(generationId, number);
    });
  }

  /** @param clean whether every byte that is recorded has reached the disk. */
  close(clean: boolean): void {
    try {
      if (clean) {
        this.#database.exec("PRAGMA synchronous = FULL");
        this.#setState("clean", "1");
      }
    } finally {
      this.#database.close();
    }
  }

  #lock(): void {
    try {
      this.#database.exec(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; " +
          "PRAGMA foreign_keys = ON; BEGIN IMMEDIATE; COMMIT",
      );
    } catch (cause) {
      if (!isLockedDatabase(cause)) throw cause;
      throw new LacewingError("already_running", `Cannot use ${this.#folder}: another daemon has it open`, { cause });
    }
  }

  #migrate(path: string): void {
    const version = Number(this.#database.prepare("PRAGMA user_version").get()?.user_version);
    if (version > MIGRATIONS.length) {
      throw new LacewingError(
        "file",
        `Cannot use ${path}: a newer version made it (schema ${version}, known up to ${MIGRATIONS.length})`,
      );
    }
    for (const [index, migration] of MIGRATIONS.entries()) {
      if (index < version) continue;
      this.#database.exec(`BEGIN; ${migration}; PRAGMA user_version = ${index + 1}; COMMIT`);
    }
  }

  #begin(bootId: string | null): void {
    const wasClean = this.#state("clean") !== "0";
    const before = this.#state("boot_id");
    if (!wasClean && this.#database.prepare("PRAGMA quick_check(1)").get()?.quick_check !== "ok") {
      throw new Error("database disk image is malformed");
    }
    this.#transaction("start the store", () => {
      const rebooted = bootId !== null && before !== null && before !== bootId;
      if (rebooted && !wasClean) this.#database.exec("UPDATE generation SET suspect = 1");
      if (bootId !== null) this.#setState("boot_id", bootId);
      this.#setState("clean", "0");
    });
  }

  #state(name: string): string | null {
    const value = this.#all(`SELECT value FROM state WHERE name = ?`, name)[0]?.value;
    return typeof value === "string" ? value : null;
  }

  #setState(name: string, value: string): void {
    this.#write("start the store", `INSERT OR REPLACE INTO state (name, value) VALUES (?, ?)`, name, value);
  }

  #all(sql: string, ...values: (string | number)[]): Record<string, unknown>[] {
    return this.#prepare(sql).all(...values) as Record<string, unknown>[];
  }

  #write(action: string, sql: string, ...values: (string | number | null)[]) {
    try {
      return this.#prepare(sql).run(...values);
    } catch (cause) {
      throw fileError(cause, { action, folder: this.#folder });
    }
  }

  #transaction(action: string, act: () => void): void {
    try {
      this.#database.exec("BEGIN");
      act();
      this.#database.exec("COMMIT");
    } catch (cause) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw fileError(cause, { action, folder: this.#folder });
    }
  }

  #prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

function toRecord(row: Record<string, unknown>): GenerationRecord | null {
  const spec = taskSpec.safeParse(readJson(row.spec));
  const meta = taskMeta.safeParse(readJson(row.meta));
  if (!spec.success || !meta.success || spec.data.task_id !== row.task_id) return null;
  return {
    id: Number(row.id),
    spec: spec.data,
    meta: meta.data,
    complete: row.complete === 1,
    verified: typeof row.verified === "string" ? row.verified : null,
    lastUsedAtMs: Number(row.last_used_ms),
    checkedAtMs: Number(row.checked_ms),
    fileMtimeMs: typeof row.file_mtime_ms === "number" ? row.file_mtime_ms : null,
    suspect: row.suspect === 1,
  };
}

function readJson(text: unknown): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return null;
  }
}

function toHex(bytes: unknown): string {
  return bytes instanceof Uint8Array ? bytes.toHex() : "";
}

function fromHex(hex: string): Uint8Array {
  return Uint8Array.fromHex(hex);
}
