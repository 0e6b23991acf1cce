/**
 * The steps that bring a database to the present schema, oldest first, each
 * in a transaction. A step that was released is never changed; a new one is
 * added below it. Cluster 1 `default` is made by the first.
 */
import type { Kysely } from "kysely";
import { sql } from "kysely";
import { type Migration, type MigrationResultSet, Migrator } from "kysely/migration";
import { LacewingError } from "../../peer/core/errors.ts";
import type { Tables } from "./schema.ts";

const MIGRATIONS: Record<string, Migration> = {
  "0001_first": { up: first },
};

/**
 * Applies what is missing.
 *
 * @returns names of the steps applied
 * @throws {LacewingError} `file` when a step fails, or the database is of a newer version.
 */
export async function migrate(db: Kysely<Tables>): Promise<string[]> {
  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(MIGRATIONS) } });
  let outcome: MigrationResultSet;
  try {
    outcome = await migrator.migrateToLatest();
  } catch (cause) {
    outcome = { error: cause };
  }
  if (outcome.error === undefined) return (outcome.results ?? []).map(({ migrationName }) => migrationName);
  const reason = outcome.error instanceof Error ? outcome.error.message : String(outcome.error);
  throw new LacewingError("file", `Cannot bring the database to this version: ${reason}`, { cause: outcome.error });
}

/** As `SQL` text: the tables read better so, and both dialects will take them with few changes. */
async function first(db: Kysely<unknown>): Promise<void> {
  const run = (text: string) => sql.raw(text).execute(db);
  await run(`CREATE TABLE scheduler_clusters (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, bio TEXT NOT NULL,
    is_default INTEGER NOT NULL, scopes TEXT NOT NULL, created_at_ms INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL)`);
  await run(`CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL UNIQUE, type TEXT NOT NULL, state TEXT NOT NULL,
    bio TEXT NOT NULL, args TEXT NOT NULL, run_args TEXT, clusters TEXT NOT NULL, result TEXT,
    deadline_at_ms INTEGER, lease_owner TEXT, lease_until_ms INTEGER,
    created_at_ms INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL, ended_at_ms INTEGER)`);
  await run("CREATE INDEX jobs_state ON jobs (state, id)");
  await run(`CREATE TABLE job_clusters (
    job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, cluster_id INTEGER NOT NULL,
    host_ids TEXT NOT NULL, PRIMARY KEY (job_id, cluster_id))`);
  await run(`CREATE TABLE job_tasks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    cluster_id INTEGER NOT NULL, task_id TEXT NOT NULL, url TEXT NOT NULL, digest TEXT, content_length INTEGER,
    state TEXT NOT NULL, error_code TEXT, error_message TEXT, hosts TEXT NOT NULL, item TEXT,
    total INTEGER NOT NULL, done INTEGER NOT NULL, from_source INTEGER NOT NULL, from_peers INTEGER NOT NULL,
    UNIQUE (job_id, cluster_id, task_id))`);
  await run("CREATE INDEX job_tasks_state ON job_tasks (job_id, state)");
  await run("CREATE INDEX job_tasks_task ON job_tasks (task_id)");
  await run(`CREATE TABLE personal_access_tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, bio TEXT NOT NULL, digest TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL, expires_at_ms INTEGER, last_used_at_ms INTEGER, created_at_ms INTEGER NOT NULL)`);
  await run("CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)");
  await sql`INSERT INTO scheduler_clusters (name, bio, is_default, scopes, created_at_ms, updated_at_ms)
    VALUES ('default', '', 1, '{}', ${Date.now()}, ${Date.now()})`.execute(db);
}
