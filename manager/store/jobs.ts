/**
 * Jobs and their leases. A worker works on a job only while it holds its
 * lease; a lease that ran out (its worker died) is free for the next. Secrets
 * (`run_args`) go with the end of the job. Every change of state is
 * conditional on the state before, so that a cancel and an outcome never both win.
 */
import type { ExpressionBuilder, Kysely, Selectable } from "kysely";
import { LacewingError } from "../../peer/core/errors.ts";
import type { JobState } from "../jobs/job.ts";
import type { JobsTable, Tables } from "./schema.ts";

export interface JobRecord {
  readonly id: number;
  readonly taskId: string;
  readonly type: string;
  readonly state: JobState;
  readonly bio: string;
  /** As echoed: secrets blotted out. */
  readonly args: Record<string, unknown>;
  /** As run; null once ended. */
  readonly runArgs: Record<string, unknown> | null;
  readonly clusters: { readonly id: number; readonly name: string }[];
  readonly result: unknown;
  readonly deadlineAtMs: number | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface JobFilter {
  readonly state?: JobState;
  readonly type?: string;
}

/** Jobs removed by one statement, so that a long history does not hold up the rest. */
const REMOVED_AT_ONCE_MAX = 500;

export class JobStore {
  constructor(private readonly db: Kysely<Tables>, private readonly now: () => number) {}

  async create(
    job: Pick<JobRecord, "taskId" | "type" | "bio" | "args" | "clusters"> & { runArgs: Record<string, unknown> },
  ): Promise<JobRecord> {
    const now = this.now();
    const row = await this.db.insertInto("jobs").values({
      task_id: job.taskId,
      type: job.type,
      state: "PENDING",
      bio: job.bio,
      args: JSON.stringify(job.args),
      run_args: JSON.stringify(job.runArgs),
      clusters: JSON.stringify(job.clusters),
      created_at_ms: now,
      updated_at_ms: now,
    }).returningAll().executeTakeFirstOrThrow();
    return fromRow(row);
  }

  /** @throws {LacewingError} `not_found` */
  async get(id: number): Promise<JobRecord> {
    const row = await this.db.selectFrom("jobs").selectAll().where("id", "=", id).executeTakeFirst();
    if (row === undefined) throw noJob(id);
    return fromRow(row);
  }

  /** Newest first. */
  async list({ limit, offset, ...filter }: JobFilter & { limit: number; offset: number }): Promise<JobRecord[]> {
    const rows = await this.db.selectFrom("jobs").selectAll().where((eb) => matches(eb, filter)).orderBy("id", "desc")
      .limit(limit).offset(offset).execute();
    return rows.map(fromRow);
  }

  async count(filter: JobFilter = {}): Promise<number> {
    const row = await this.db.selectFrom("jobs").select((eb) => eb.fn.countAll<number>().as("count"))
      .where((eb) => matches(eb, filter)).executeTakeFirstOrThrow();
    return Number(row.count);
  }

  async countByState(): Promise<Record<string, number>> {
    const rows = await this.db.selectFrom("jobs").select((eb) => ["state", eb.fn.countAll<number>().as("count")])
      .groupBy("state").execute();
    return Object.fromEntries(rows.map(({ state, count }) => [state, Number(count)]));
  }

  /** @throws {LacewingError} `not_found` */
  async setBio(id: number, bio: string): Promise<JobRecord> {
    const row = await this.db.updateTable("jobs").set({ bio, updated_at_ms: this.now() }).where("id", "=", id)
      .returningAll().executeTakeFirst();
    if (row === undefined) throw noJob(id);
    return fromRow(row);
  }

  /**
   * Takes up to `limit` pending jobs that nobody holds, oldest first. The
   * deadline is set when a job is first taken, and stays over restarts.
   */
  async claim(owner: string, { leaseMs, limit }: { leaseMs: number; limit: number }): Promise<JobRecord[]> {
    const now = this.now();
    const free = (eb: ExpressionBuilder<Tables, "jobs">) =>
      eb.or([eb("lease_owner", "is", null), eb("lease_until_ms", "<", now)]);
    // Looked for outside the transaction: an idle manager must not write each second.
    const candidates = await this.db.selectFrom("jobs").select(["id", "run_args", "deadline_at_ms"])
      .where("state", "=", "PENDING").where(free).orderBy("id").limit(limit).execute();
    const claimed: JobRecord[] = [];
    for (const { id, run_args, deadline_at_ms } of candidates) {
      const timeoutSeconds = Number((JSON.parse(run_args ?? "{}") as { timeout?: number }).timeout);
      const row = await this.db.updateTable("jobs").set({
        lease_owner: owner,
        lease_until_ms: now + leaseMs,
        deadline_at_ms: deadline_at_ms ?? now + timeoutSeconds * 1000,
      }).where("id", "=", id).where("state", "=", "PENDING").where(free).returningAll().executeTakeFirst();
      if (row !== undefined) claimed.push(fromRow(row));
    }
    return claimed;
  }

  /** @returns whether the lease is still this owner's, and the job still pending */
  async renew(id: number, owner: string, leaseMs: number): Promise<boolean> {
    const { numUpdatedRows } = await this.db.updateTable("jobs").set({ lease_until_ms: this.now() + leaseMs })
      .where("id", "=", id).where("lease_owner", "=", owner).where("state", "=", "PENDING").executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  /** Gives a lease back, so that the job goes on at once elsewhere. */
  async release(id: number, owner: string): Promise<void> {
    await this.db.updateTable("jobs").set({ lease_owner: null, lease_until_ms: null })
      .where("id", "=", id).where("lease_owner", "=", owner).execute();
  }

  /** Frees all leases: only for who knows that no other manager lives (it holds the lock of the work home). */
  async releaseAll(): Promise<void> {
    await this.db.updateTable("jobs").set({ lease_owner: null, lease_until_ms: null }).where(
      "lease_owner",
      "is not",
      null,
    )
      .execute();
  }

  /** @returns whether this call ended the job: false when it had ended before, or the lease was lost */
  async end(
    id: number,
    { owner, state, result }: { owner: string; state: JobState; result?: unknown },
  ): Promise<boolean> {
    return await this.#finish(id, { state, owner, result });
  }

  /** Pending job and its pending tasks become CANCELED. @returns false when it had ended before */
  async cancel(id: number): Promise<boolean> {
    return await this.#finish(id, { state: "CANCELED" });
  }

  async #finish(id: number, { state, owner, result }: { state: JobState; owner?: string; result?: unknown }) {
    const now = this.now();
    return await this.db.transaction().execute(async (tx) => {
      const { numUpdatedRows } = await tx.updateTable("jobs").set({
        state,
        run_args: null,
        lease_owner: null,
        lease_until_ms: null,
        updated_at_ms: now,
        ended_at_ms: now,
        ...(result === undefined ? {} : { result: JSON.stringify(result) }),
      }).where("id", "=", id).where("state", "=", "PENDING")
        .$if(owner !== undefined, (query) => query.where("lease_owner", "=", owner ?? "")).executeTakeFirst();
      if (numUpdatedRows === 0n) return false;
      await tx.updateTable("job_tasks").set({ item: null }).where("job_id", "=", id).execute();
      await tx.updateTable("job_tasks").set({ state: "CANCELED" }).where("job_id", "=", id)
        .where("state", "=", "PENDING").execute();
      return true;
    });
  }

  /** Removes the record of an ended job. @returns false when there is none, or it is pending */
  async remove(id: number): Promise<boolean> {
    const { numDeletedRows } = await this.db.deleteFrom("jobs").where("id", "=", id).where("state", "!=", "PENDING")
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** Removes jobs that ended before a time. @returns how many */
  async removeEndedBefore(timeMs: number): Promise<number> {
    let removed = 0;
    while (true) {
      const old = await this.db.selectFrom("jobs").select("id").where("ended_at_ms", "<", timeMs)
        .limit(REMOVED_AT_ONCE_MAX).execute();
      if (old.length === 0) return removed;
      await this.db.deleteFrom("jobs").where("id", "in", old.map(({ id }) => id)).execute();
      removed += old.length;
    }
  }
}

function matches(eb: ExpressionBuilder<Tables, "jobs">, { state, type }: JobFilter) {
  return eb.and([
    ...(state === undefined ? [] : [eb("state", "=", state)]),
    ...(type === undefined ? [] : [eb("type", "=", type)]),
  ]);
}

function fromRow(row: Selectable<JobsTable>): JobRecord {
  return {
    id: row.id,
    taskId: row.task_id,
    type: row.type,
    state: row.state,
    bio: row.bio,
    args: JSON.parse(row.args),
    runArgs: row.run_args === null ? null : JSON.parse(row.run_args),
    clusters: JSON.parse(row.clusters),
    result: row.result === null ? null : JSON.parse(row.result),
    deadlineAtMs: row.deadline_at_ms,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
  };
}

function noJob(id: number): LacewingError {
  return new LacewingError("not_found", `Cannot find job ${id}: there is none with this id`);
}
