/**
 * The jobs without tasks of their own: `get_task` says who holds a content,
 * `delete_task` has every host drop it and waits until they have,
 * `sync_peers` lists the live hosts. Their result has the frame of a preheat's.
 */
import type { Clock } from "../../peer/core/clock.ts";
import type { Schedulers, TaskView } from "../scheduler/schedulers.ts";
import type { JobRecord } from "../store/jobs.ts";
import type { JobState } from "./job.ts";
import type { TaskArgs } from "./job_args.ts";

export interface TaskJobDeps {
  readonly schedulers: Schedulers;
  readonly clock: Clock;
}

export interface TaskJobOutcome {
  readonly state: JobState;
  readonly result: unknown;
}

/** Between two looks at who still holds a content, milliseconds. */
const LOOK_MS = 100;
/** How long hosts get to drop a content, milliseconds. */
const DROP_MS_MAX = 30_000;

/** Runs a job of one of these types to its end; rejects with `signal.reason`. */
export async function runTaskJob(
  job: JobRecord,
  { deps, signal }: { deps: TaskJobDeps; signal: AbortSignal },
): Promise<TaskJobOutcome> {
  if (job.type === "sync_peers") return { state: "SUCCESS", result: syncPeers(job, deps) };
  const { task_id: taskId, url } = job.runArgs as unknown as TaskArgs;
  if (job.type === "get_task") return getTask(job, { taskId, url }, deps);
  return await deleteTask(job, { taskId, url }, { ...deps, signal });
}

/** The result of a job that ended for a reason of its own. */
export function failedResult({ clusters, runArgs }: JobRecord, error: { code: string; message: string }) {
  const { task_id: taskId, url = null } = runArgs as Partial<TaskArgs>;
  const tasks = taskId === undefined
    ? []
    : [{ ...entry(null, { taskId, url, failed: false }), state: "FAILURE", error }];
  return frame(clusters.map(({ id, name }) => ({ id, name, state: "FAILURE", error, tasks })));
}

function syncPeers({ clusters }: JobRecord, { schedulers }: TaskJobDeps) {
  return frame(clusters.map(({ id, name }) => ({
    id,
    name,
    state: "SUCCESS",
    tasks: [],
    hosts: schedulers.hosts(id),
  })));
}

function getTask(
  { clusters }: JobRecord,
  { taskId, url }: { taskId: string; url: string | null },
  deps: TaskJobDeps,
): TaskJobOutcome {
  const parts = clusters.map(({ id, name }) => {
    const view = held(deps.schedulers, id, taskId);
    return { id, name, state: "SUCCESS", tasks: [entry(view, { taskId, url, failed: false })] };
  });
  const found = parts.some(({ tasks }) => tasks.some(({ hosts }) => hosts.length > 0));
  if (found) return { state: "SUCCESS", result: frame(parts) };
  const error = { code: "no_holder", message: `Cannot find task ${taskId}: no live host holds it` };
  const failed = parts.map((part) => ({
    ...part,
    state: "FAILURE",
    tasks: part.tasks.map((task) => ({ ...task, state: "FAILURE", error })),
  }));
  return { state: "FAILURE", result: frame(failed) };
}

async function deleteTask(
  { clusters }: JobRecord,
  { taskId, url }: { taskId: string; url: string | null },
  { schedulers, clock, signal }: TaskJobDeps & { signal: AbortSignal },
): Promise<TaskJobOutcome> {
  const untilMs = clock.nowMs() + DROP_MS_MAX;
  const before = new Map(clusters.map(({ id }) => [id, held(schedulers, id, taskId)]));
  for (const { id } of clusters) schedulers.drop(id, taskId);
  const left = () => clusters.filter(({ id }) => (held(schedulers, id, taskId)?.hosts.length ?? 0) > 0);
  while (left().length > 0 && clock.nowMs() < untilMs) await clock.sleep(LOOK_MS, signal);
  const parts = clusters.map(({ id, name }) => {
    const still = held(schedulers, id, taskId);
    const view = still ?? before.get(id) ?? null;
    const failed = still !== null && still.hosts.length > 0;
    return { id, name, state: failed ? "FAILURE" : "SUCCESS", tasks: [entry(view, { taskId, url, failed })] };
  });
  return { state: parts.some(({ state }) => state === "FAILURE") ? "FAILURE" : "SUCCESS", result: frame(parts) };
}

function held(schedulers: Schedulers, clusterId: number, taskId: string): TaskView | null {
  return schedulers.tasks(clusterId).find((task) => task.task_id === taskId) ?? null;
}

/** @param failed whether the hosts shown should no longer hold the content */
function entry(
  view: TaskView | null,
  { taskId, url, failed }: { taskId: string; url: string | null; failed: boolean },
) {
  const error = failed ? { code: "timeout", message: `Cannot delete task ${taskId}: the host still holds it` } : null;
  const state = failed ? "FAILURE" : "SUCCESS";
  const meta = view?.meta ?? null;
  return {
    task_id: taskId,
    url: view?.url ?? url,
    digest: view?.digest ?? null,
    content_length: meta?.content_length ?? null,
    state,
    error,
    hosts: (view?.hosts ?? []).map(({ id, hostname, ip, complete, piece_count }) => ({
      id,
      hostname,
      ip,
      state: failed || complete ? state : "PENDING",
      error,
      complete,
      piece_count,
      bytes: complete
        ? meta?.content_length ?? 0
        : Math.min(piece_count * (meta?.piece_length ?? 0), meta?.content_length ?? 0),
    })),
  };
}

/** Totals beside the clusters, as a preheat has them; `bytes.done` is what the hosts shown hold. */
function frame<
  Cluster extends {
    tasks: readonly { state: string; content_length: number | null; hosts: readonly { bytes: number }[] }[];
  },
>(
  clusters: readonly Cluster[],
) {
  const tasks = clusters.flatMap((cluster) => cluster.tasks);
  const of = (state: string) => tasks.filter((task) => task.state === state).length;
  return {
    bytes: {
      total: tasks.reduce((sum, task) => sum + (task.content_length ?? 0) * task.hosts.length, 0),
      done: tasks.reduce((sum, task) => sum + task.hosts.reduce((bytes, host) => bytes + host.bytes, 0), 0),
      from_source: 0,
      from_peers: 0,
    },
    tasks: { total: tasks.length, done: of("SUCCESS"), failed: of("FAILURE") },
    clusters,
  };
}
