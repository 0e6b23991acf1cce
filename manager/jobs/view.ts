/**
 * A job as the API shows it: the record, and a `result` made of what is
 * written down and what runs right now. Failures come first; a cluster shows
 * a bounded number of tasks, all of them are in pages of their own.
 */
import type { PreheatProgress } from "../scheduler/schedulers.ts";
import type { JobRecord } from "../store/jobs.ts";
import type { JobTask, TaskSums } from "../store/job_tasks.ts";
import type { Store } from "../store/store.ts";
import { hasEnded, type JobState, outcomeOf, type StateCounts } from "./job.ts";
import type { JobTaskView, JobView } from "./job_schemas.ts";
import type { JobWatch } from "./watch.ts";

/** Task entries of one cluster in one job. */
export const ENTRIES_MAX = 1000;
/** The same where many jobs, or the same job many times, are shown. */
export const ENTRIES_BRIEF_MAX = 10;

/** One task as the API shows it. */
export function taskView(task: JobTask, live: PreheatProgress | undefined): JobTaskView {
  const running = task.state === "PENDING" ? live : undefined;
  return {
    task_id: task.taskId,
    url: task.url,
    digest: task.digest,
    content_length: running?.contentLength ?? task.contentLength,
    state: task.state,
    error: task.error,
    hosts: (running?.hosts ?? task.hosts).map((host) => ({ ...host })),
  };
}

/** What all the hosts together shall have of a task, bytes. */
export function expectedBytes({ contentLength, hosts }: Pick<PreheatProgress, "contentLength" | "hosts">): number {
  return (contentLength ?? 0) * Math.max(1, hosts.length);
}

/** The whole job. @param entriesMax tasks shown of each cluster */
export async function jobView(
  job: JobRecord,
  { store, watch, entriesMax = ENTRIES_MAX }: {
    store: Pick<Store, "jobTasks">;
    watch: JobWatch;
    entriesMax?: number;
  },
): Promise<JobView> {
  return {
    id: job.id,
    task_id: job.taskId,
    type: job.type as JobView["type"],
    status: job.state,
    state: job.state,
    bio: job.bio,
    args: job.args,
    result: job.result as JobView["result"] ?? await preheatResult(job, { store, watch, entriesMax }),
    scheduler_clusters: job.clusters,
    created_at: new Date(job.createdAtMs).toISOString(),
    updated_at: new Date(job.updatedAtMs).toISOString(),
  };
}

async function preheatResult(
  job: JobRecord,
  { store, watch, entriesMax }: { store: Pick<Store, "jobTasks">; watch: JobWatch; entriesMax: number },
): Promise<JobView["result"]> {
  const sums = await store.jobTasks.sums(job.id);
  if (sums.length === 0) return null;
  const live = watch.live(job.id);
  const clusters = [];
  for (const { id, name } of job.clusters) {
    const counts = countsOf(sums.filter(({ clusterId }) => clusterId === id));
    const tasks = await store.jobTasks.list(job.id, { clusterId: id, limit: entriesMax });
    clusters.push({
      id,
      name,
      state: clusterState(job.state, counts),
      tasks: tasks.map((task) => taskView(task, live.get(task.id))),
    });
  }
  const counts = countsOf(sums);
  return {
    bytes: await bytesOf(job, { store, sums, live }),
    tasks: {
      total: Object.entries(counts).reduce((sum, [state, count]) => sum + (state === "SKIPPED" ? 0 : count), 0),
      done: counts.SUCCESS ?? 0,
      failed: counts.FAILURE ?? 0,
    },
    clusters,
  };
}

/** A cluster whose tasks are not there yet is as the job is. */
function clusterState(job: JobState, counts: StateCounts): JobState {
  if (Object.keys(counts).length === 0) return job;
  return outcomeOf(counts);
}

function countsOf(sums: readonly TaskSums[]): StateCounts {
  const counts: Partial<Record<TaskSums["state"], number>> = {};
  for (const { state, count } of sums) counts[state] = (counts[state] ?? 0) + count;
  return counts;
}

async function bytesOf(
  job: JobRecord,
  { store, sums, live }: {
    store: Pick<Store, "jobTasks">;
    sums: readonly TaskSums[];
    live: ReadonlyMap<number, PreheatProgress>;
  },
) {
  const bytes = { total: 0, done: 0, from_source: 0, from_peers: 0 };
  for (const row of sums) {
    bytes.total += row.total;
    bytes.done += row.done;
    bytes.from_source += row.fromSource;
    bytes.from_peers += row.fromPeers;
  }
  if (hasEnded(job.state) || live.size === 0) return bytes;
  for (const task of await store.jobTasks.byIds([...live.keys()])) {
    const progress = live.get(task.id);
    if (progress === undefined || task.state !== "PENDING") continue;
    const { hosts, contentLength } = progress;
    // The registry told the length before any host has asked: it counts from the beginning.
    bytes.total += expectedBytes({ hosts, contentLength: contentLength ?? task.contentLength }) - task.total;
    bytes.done += progress.done;
    bytes.from_source += progress.fromSource;
    bytes.from_peers += progress.fromPeers;
  }
  return bytes;
}
