/**
 * The manager's database, opened and brought to the present schema: one small
 * repository a resource. Nothing else in the manager sees SQL.
 */
import { Kysely } from "kysely";
import { LacewingError } from "../../peer/core/errors.ts";
import { ClusterStore } from "./clusters.ts";
import { JobStore } from "./jobs.ts";
import { JobTaskStore } from "./job_tasks.ts";
import { migrate } from "./migrations.ts";
import type { Tables } from "./schema.ts";
import { NodeSqliteDialect, openDatabase } from "./sqlite_dialect.ts";
import { TokenStore } from "./tokens.ts";

export interface Store extends AsyncDisposable {
  readonly clusters: ClusterStore;
  readonly jobs: JobStore;
  readonly jobTasks: JobTaskStore;
  readonly tokens: TokenStore;
  /** Names of the migrations that opening has applied. */
  readonly migrated: readonly string[];
  /** A name for this database's owner, made once and kept. */
  readonly managerId: string;
  /** @throws when the database does not answer. */
  ping(): Promise<void>;
}

/**
 * The database file that a URL means: empty is `manager.db` in the work home.
 *
 * @throws {LacewingError} `config_invalid` for anything but `sqlite:///absolute/path`.
 */
export function databasePath(url: string, workHome: string): string {
  if (url === "") return `${workHome}/manager.db`;
  const scheme = url.split(":", 1)[0] ?? "";
  if (scheme === "postgres" || scheme === "postgresql") {
    throw new LacewingError(
      "config_invalid",
      "Cannot use database.url: PostgreSQL is not available in this version; leave it empty or use sqlite:///path",
    );
  }
  const match = /^sqlite:\/\/(\/[^?#]+)$/.exec(url);
  if (match?.[1] === undefined) {
    throw new LacewingError(
      "config_invalid",
      `Cannot use database.url: want sqlite:///absolute/path or nothing, not a URL of scheme ${JSON.stringify(scheme)}`,
    );
  }
  return decodeURIComponent(match[1]);
}

/**
 * Opens the database and applies missing migrations.
 *
 * @param path a file, or `:memory:`
 * @param now wall clock, milliseconds
 * @throws {LacewingError} `file`
 */
export async function openStore(path: string, now: () => number = Date.now): Promise<Store> {
  const db = new Kysely<Tables>({ dialect: new NodeSqliteDialect(openDatabase(path)) });
  try {
    const migrated = await migrate(db);
    await db.insertInto("settings").values({ name: "manager_id", value: crypto.randomUUID() })
      .onConflict((conflict) => conflict.column("name").doNothing()).execute();
    const { value } = await db.selectFrom("settings").select("value").where("name", "=", "manager_id")
      .executeTakeFirstOrThrow();
    const clusters = new ClusterStore(db, now);
    await clusters.refresh();
    return {
      clusters,
      jobs: new JobStore(db, now),
      jobTasks: new JobTaskStore(db),
      tokens: new TokenStore(db, now),
      migrated,
      managerId: value,
      ping: async () => {
        await db.selectFrom("settings").select("name").limit(1).execute();
      },
      [Symbol.asyncDispose]: () => db.destroy(),
    };
  } catch (error) {
    await db.destroy();
    throw error;
  }
}
