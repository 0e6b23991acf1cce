/**
 * SQLite for kysely on `node:sqlite`: one connection, WAL, FULL synchronous,
 * so that what was answered survives a power cut. Transactions begin
 * IMMEDIATE, so that none fails half-way because another process wrote.
 *
 * SQLite's errors carry no code: this file alone matches their messages.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import {
  CompiledQuery,
  type DatabaseConnection,
  type DialectAdapter,
  type Driver,
  SqliteAdapter,
  SqliteDialect,
  SqliteDriver,
} from "kysely";
import { LacewingError } from "../../peer/core/errors.ts";

/** How long a write waits for another process (such as `token create`), milliseconds. */
const BUSY_TIMEOUT_MS = 5000;

class NodeSqliteAdapter extends SqliteAdapter {
  /** SQLite can roll back DDL; a migration that was killed leaves nothing behind. */
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class NodeSqliteDriver extends SqliteDriver {
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("begin immediate"));
  }
}

/** The dialect over one open database file; `Kysely.destroy` closes it. */
export class NodeSqliteDialect extends SqliteDialect {
  readonly #config: ConstructorParameters<typeof SqliteDriver>[0];

  constructor(database: DatabaseSync) {
    const config = {
      database: {
        close: () => database.close(),
        prepare: (sql: string) => adapt(translated(() => database.prepare(sql))),
      },
    };
    super(config);
    this.#config = config;
  }

  override createAdapter(): DialectAdapter {
    return new NodeSqliteAdapter();
  }

  override createDriver(): Driver {
    return new NodeSqliteDriver(this.#config);
  }
}

/**
 * Opens a database file, made if missing, readable by this user alone.
 *
 * @throws {LacewingError} `file` when it cannot be opened or is no database.
 */
export function openDatabase(path: string): DatabaseSync {
  try {
    if (path !== ":memory:") Deno.openSync(path, { create: true, write: true, mode: 0o600 }).close();
    const database = new DatabaseSync(path);
    database.exec(
      `PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON`,
    );
    return database;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LacewingError("file", `Cannot open database ${path}: ${reason}`, { cause });
  }
}

function adapt(statement: StatementSync) {
  const bind = (parameters: readonly unknown[]) => parameters.map(toSql);
  return {
    reader: statement.columns().length > 0,
    all: (parameters: readonly unknown[]) => translated(() => statement.all(...bind(parameters))),
    run: (parameters: readonly unknown[]) => translated(() => statement.run(...bind(parameters))),
    iterate: (parameters: readonly unknown[]) => translated(() => statement.iterate(...bind(parameters))),
  };
}

function toSql(value: unknown): null | number | bigint | string | Uint8Array {
  if (value === undefined || value === null) return null;
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "string") return value;
  if (value instanceof Uint8Array) return value;
  throw new TypeError(`Cannot bind a ${typeof value} to a statement`);
}

function translated<T>(run: () => T): T {
  try {
    return run();
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    if (message.includes("UNIQUE constraint failed")) {
      throw new LacewingError("conflict", `Cannot store: ${message.split(": ").at(-1)} is already taken`, { cause });
    }
    if (/database (table )?is locked/.test(message)) {
      throw new LacewingError("unavailable", "Cannot use the database: another process holds it; try again", { cause });
    }
    if (/disk is full/.test(message)) {
      throw new LacewingError("disk_full", "Cannot write the database: its disk is full", { cause });
    }
    throw cause;
  }
}
