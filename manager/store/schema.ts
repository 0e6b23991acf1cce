/**
 * The tables of the manager's database as kysely sees them. JSON columns hold
 * text; times are wall-clock milliseconds; both are converted by the files
 * beside this one and nowhere else.
 */
import type { Generated } from "kysely";
import type { JobState, TaskState } from "../jobs/job.ts";

export interface SchedulerClustersTable {
  id: Generated<number>;
  name: string;
  bio: string;
  /** 0 or 1; exactly one row has 1. */
  is_default: number;
  /** JSON. */
  scopes: string;
  created_at_ms: number;
  updated_at_ms: number;
}

export interface JobsTable {
  id: Generated<number>;
  /** `group_` and a UUID. */
  task_id: string;
  type: string;
  state: JobState;
  bio: string;
  /** JSON: the arguments as they are echoed, without secrets. */
  args: string;
  /** JSON: the arguments as they are run; null once the job has ended. */
  run_args: string | null;
  /** JSON: `[{id, name}]`. */
  clusters: string;
  /** JSON: the result of a job that has no tasks of its own; null else. */
  result: string | null;
  /** Null until a worker first takes the job. */
  deadline_at_ms: number | null;
  lease_owner: string | null;
  lease_until_ms: number | null;
  created_at_ms: number;
  updated_at_ms: number;
  ended_at_ms: number | null;
}

/** How a cluster's part of a job began; its row is there once its tasks are. */
export interface JobClustersTable {
  job_id: number;
  cluster_id: number;
  /** JSON: ids of the hosts that lived then, waited for after a restart. */
  host_ids: string;
}

export interface JobTasksTable {
  id: Generated<number>;
  job_id: number;
  cluster_id: number;
  task_id: string;
  url: string;
  digest: string | null;
  content_length: number | null;
  state: TaskState;
  error_code: string | null;
  error_message: string | null;
  /** JSON: the hosts as the API shows them. */
  hosts: string;
  /** JSON: the item as the resolver gave it, headers included; null when not needed (any more). */
  item: string | null;
  /** Sums over the hosts, bytes; `total` is what all of them together shall have. */
  total: number;
  done: number;
  from_source: number;
  from_peers: number;
}

export interface PersonalAccessTokensTable {
  id: Generated<number>;
  name: string;
  bio: string;
  /** SHA-256 hex of the token; the token itself is kept nowhere. */
  digest: string;
  /** JSON list. */
  scopes: string;
  expires_at_ms: number | null;
  last_used_at_ms: number | null;
  created_at_ms: number;
}

export interface SettingsTable {
  name: string;
  value: string;
}

export interface Tables {
  scheduler_clusters: SchedulerClustersTable;
  jobs: JobsTable;
  job_clusters: JobClustersTable;
  job_tasks: JobTasksTable;
  personal_access_tokens: PersonalAccessTokensTable;
  settings: SettingsTable;
}
