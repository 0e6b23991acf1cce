/**
 * The tasks of a job, one row for each cluster and content. They appear for a
 * cluster all at once, or not at all; a row that has ended is never run again,
 * which is how a job goes on where a killed manager left it.
 */
import { type Expression, type Kysely, type Selectable, sql, type SqlBool } from "kysely";
import { FOUND_MAX, type FoundJob } from "../../peer/core/wire/scheduler.ts";
import type { TaskState } from "../jobs/job.ts";
import type { JobTasksTable, Tables } from "./schema.ts";

/** A host's part, as the API shows it. */
export interface TaskHost {
  readonly id: string;
  readonly hostname: string;
  readonly ip: string;
  readonly state: string;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export interface JobTask {
  readonly id: number;
  readonly jobId: number;
  readonly clusterId: number;
  readonly taskId: string;
  readonly url: string;
  readonly digest: string | null;
  readonly contentLength: number | null;
  readonly state: TaskState;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly hosts: readonly TaskHost[];
  /** As the resolver gave it; null where there is none, or the job has ended. */
  readonly item: unknown;
  readonly total: number;
  readonly done: number;
  readonly fromSource: number;
  readonly fromPeers: number;
}

export type NewJobTask =
  & Pick<JobTask, "taskId" | "url" | "digest" | "contentLength" | "state" | "error" | "item">
  & { readonly hosts?: readonly TaskHost[] };

/** Sums of one cluster's rows in one state. */
export interface TaskSums {
  readonly clusterId: number;
  readonly state: TaskState;
  readonly count: number;
  readonly total: number;
  readonly done: number;
  readonly fromSource: number;
  readonly fromPeers: number;
}

export interface TaskQuery {
  readonly clusterId?: number;
  readonly state?: TaskState;
}

/** Rows of one INSERT: SQLite binds at most 32,766 values. */
const INSERTED_AT_ONCE_MAX = 500;

export class JobTaskStore {
  constructor(private readonly db: Kysely<Tables>) {}

  /**
   * Adds a cluster's part, with the ids of the hosts that live now.
   * Does nothing when the job is no longer pending, or has that part already.
   */
  async addCluster(
    jobId: number,
    { clusterId, hostIds, tasks }: { clusterId: number; hostIds: readonly string[]; tasks: readonly NewJobTask[] },
  ): Promise<void> {
    await this.db.transaction().execute(async (tx) => {
      const job = await tx.selectFrom("jobs").select("id").where("id", "=", jobId).where("state", "=", "PENDING")
        .executeTakeFirst();
      if (job === undefined) return;
      const added = await tx.insertInto("job_clusters")
        .values({ job_id: jobId, cluster_id: clusterId, host_ids: JSON.stringify(hostIds) })
        .onConflict((conflict) => conflict.doNothing()).executeTakeFirst();
      if (added.numInsertedOrUpdatedRows === 0n) return;
      const unique = [...new Map(tasks.map((task) => [task.taskId, task])).values()];
      for (let at = 0; at < unique.length; at += INSERTED_AT_ONCE_MAX) {
        const rows = unique.slice(at, at + INSERTED_AT_ONCE_MAX).map((task) => toRow(task, jobId, clusterId));
        await tx.insertInto("job_tasks").values(rows).execute();
      }
    });
  }

  /** Clusters whose tasks are there, with the ids of the hosts that lived when they were made. */
  async clusters(jobId: number): Promise<Map<number, string[]>> {
    const rows = await this.db.selectFrom("job_clusters").selectAll().where("job_id", "=", jobId).execute();
    return new Map(rows.map(({ cluster_id, host_ids }) => [cluster_id, JSON.parse(host_ids)]));
  }

  /** Tasks of a cluster's part that have not ended. */
  async pending(jobId: number, clusterId: number): Promise<JobTask[]> {
    const rows = await this.db.selectFrom("job_tasks").selectAll().where("job_id", "=", jobId)
      .where("cluster_id", "=", clusterId).where("state", "=", "PENDING").orderBy("id").execute();
    return rows.map(fromRow);
  }

  /** Ends a task; does nothing to one that has ended. */
  async end(id: number, task: Pick<JobTask, Exclude<keyof JobTask, keyof Identity>>): Promise<void> {
    await this.db.updateTable("job_tasks").set({
      state: task.state,
      content_length: task.contentLength,
      error_code: task.error?.code ?? null,
      error_message: task.error?.message ?? null,
      hosts: JSON.stringify(task.hosts),
      item: null,
      total: task.total,
      done: task.done,
      from_source: task.fromSource,
      from_peers: task.fromPeers,
    }).where("id", "=", id).where("state", "=", "PENDING").execute();
  }

  /** Fails what has not ended, for one reason. */
  async failPending(jobId: number, error: { code: string; message: string }): Promise<void> {
    await this.db.updateTable("job_tasks").set({
      state: "FAILURE",
      error_code: error.code,
      error_message: error.message,
      item: null,
    }).where("job_id", "=", jobId).where("state", "=", "PENDING").execute();
  }

  /** Failures first. */
  async list(jobId: number, { limit, offset = 0, ...query }: TaskQuery & { limit: number; offset?: number }) {
    const rows = await this.db.selectFrom("job_tasks").selectAll().where("job_id", "=", jobId)
      .where(() => narrow(query))
      .orderBy(sql`CASE state WHEN 'FAILURE' THEN 0 WHEN 'PENDING' THEN 1 ELSE 2 END`).orderBy("id")
      .limit(limit).offset(offset).execute();
    return rows.map(fromRow);
  }

  /** Parts of jobs that are about these tasks, newest job first, in the words of the scheduler's protocol. */
  async about(taskIds: readonly string[]): Promise<FoundJob[]> {
    const rows = await this.db.selectFrom("job_tasks").innerJoin("jobs", "jobs.id", "job_tasks.job_id")
      .where("job_tasks.task_id", "in", taskIds)
      .select(["job_tasks.task_id", "job_id", "cluster_id", "job_tasks.state", "hosts", "jobs.state as job_state"])
      .orderBy("job_id", "desc").orderBy("cluster_id").limit(FOUND_MAX).execute();
    return rows.map(({ hosts, ...row }) => ({
      ...row,
      host_count: JSON.parse(hosts).filter((host: TaskHost) => host.state === "SUCCESS").length,
    }));
  }

  async byIds(ids: readonly number[]): Promise<JobTask[]> {
    return (await this.db.selectFrom("job_tasks").selectAll().where("id", "in", ids).execute()).map(fromRow);
  }

  async count(jobId: number, query: TaskQuery): Promise<number> {
    const row = await this.db.selectFrom("job_tasks").select((eb) => eb.fn.countAll<number>().as("count"))
      .where("job_id", "=", jobId).where(() => narrow(query)).executeTakeFirstOrThrow();
    return Number(row.count);
  }

  async sums(jobId: number): Promise<TaskSums[]> {
    const rows = await this.db.selectFrom("job_tasks").where("job_id", "=", jobId).groupBy(["cluster_id", "state"])
      .select((eb) => [
        "cluster_id",
        "state",
        eb.fn.countAll<number>().as("count"),
        eb.fn.sum<number>("total").as("total"),
        eb.fn.sum<number>("done").as("done"),
        eb.fn.sum<number>("from_source").as("from_source"),
        eb.fn.sum<number>("from_peers").as("from_peers"),
      ]).execute();
    return rows.map((row) => ({
      clusterId: row.cluster_id,
      state: row.state,
      count: Number(row.count),
      total: Number(row.total),
      done: Number(row.done),
      fromSource: Number(row.from_source),
      fromPeers: Number(row.from_peers),
    }));
  }
}

type Identity = Pick<JobTask, "id" | "jobId" | "clusterId" | "taskId" | "url" | "digest" | "item">;

function narrow({ clusterId, state }: TaskQuery): Expression<SqlBool> {
  const cluster = clusterId === undefined ? sql<SqlBool>`1 = 1` : sql<SqlBool>`cluster_id = ${clusterId}`;
  return state === undefined ? cluster : sql<SqlBool>`${cluster} AND state = ${state}`;
}

function toRow(task: NewJobTask, jobId: number, clusterId: number) {
  return {
    job_id: jobId,
    cluster_id: clusterId,
    task_id: task.taskId,
    url: task.url,
    digest: task.digest,
    content_length: task.contentLength,
    state: task.state,
    error_code: task.error?.code ?? null,
    error_message: task.error?.message ?? null,
    hosts: JSON.stringify(task.hosts ?? []),
    item: task.item === null ? null : JSON.stringify(task.item),
    total: task.state === "PENDING" ? task.contentLength ?? 0 : 0,
    done: 0,
    from_source: 0,
    from_peers: 0,
  };
}

function fromRow(row: Selectable<JobTasksTable>): JobTask {
  return {
    id: row.id,
    jobId: row.job_id,
    clusterId: row.cluster_id,
    taskId: row.task_id,
    url: row.url,
    digest: row.digest,
    contentLength: row.content_length,
    state: row.state,
    error: row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? "" },
    hosts: JSON.parse(row.hosts),
    item: row.item === null ? null : JSON.parse(row.item),
    total: row.total,
    done: row.done,
    fromSource: row.from_source,
    fromPeers: row.from_peers,
  };
}
