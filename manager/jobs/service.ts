/**
 * Everything that the API does with jobs: it writes what is asked for into the
 * store, tells the worker, and shows records. A job that was answered with
 * 200 is on disk.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import type { JobFilter } from "../store/jobs.ts";
import type { TaskQuery } from "../store/job_tasks.ts";
import type { Store } from "../store/store.ts";
import { hasEnded } from "./job.ts";
import { clusterIdsOf, echoOf, runArgsOf } from "./job_args.ts";
import type { JobRequest } from "./job_request.ts";
import type { JobView } from "./job_schemas.ts";
import { ENTRIES_BRIEF_MAX, jobView, taskView } from "./view.ts";
import type { JobWatch } from "./watch.ts";

/** Jobs that may wait or run; more are refused until some have ended. */
const PENDING_JOBS_MAX = 10_000;

export interface JobServiceDeps {
  readonly store: Pick<Store, "jobs" | "jobTasks" | "clusters">;
  readonly watch: JobWatch;
  /** Told of new and cancelled jobs. */
  readonly worker: { wake(): void; cancel(jobId: number): void };
}

export interface JobServiceConfig {
  /** What counts for jobs that name no timeout, seconds. */
  readonly timeoutSeconds: number;
}

export interface Page {
  readonly limit: number;
  readonly offset: number;
}

export class JobService {
  readonly #deps: JobServiceDeps;
  readonly #config: JobServiceConfig;

  constructor(deps: JobServiceDeps, config: JobServiceConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  /** @throws {LacewingError} `invalid` for an unknown cluster, `too_many_requests` above the bound. */
  async create(request: JobRequest): Promise<JobView> {
    const { store, worker } = this.#deps;
    const clusters = await this.#clusters(clusterIdsOf(request));
    if (await store.jobs.count({ state: "PENDING" }) >= PENDING_JOBS_MAX) {
      throw new LacewingError(
        "too_many_requests",
        `Cannot take the job: ${PENDING_JOBS_MAX} are pending already; try again when some have ended`,
      );
    }
    const runArgs = runArgsOf(request, this.#config);
    const job = await store.jobs.create({
      taskId: `group_${crypto.randomUUID()}`,
      type: request.type,
      bio: request.bio ?? "",
      args: echoOf(request, runArgs),
      runArgs: { ...runArgs },
      clusters,
    });
    worker.wake();
    return await jobView(job, this.#deps);
  }

  /** @throws {LacewingError} `not_found` */
  async get(id: number): Promise<JobView> {
    return await jobView(await this.#deps.store.jobs.get(id), this.#deps);
  }

  /** As `get`, with few tasks of each cluster. */
  async brief(id: number): Promise<JobView> {
    return await jobView(await this.#deps.store.jobs.get(id), { ...this.#deps, entriesMax: ENTRIES_BRIEF_MAX });
  }

  /** Newest first, with few tasks of each cluster. */
  async list(filter: JobFilter, page: Page): Promise<{ jobs: JobView[]; total: number }> {
    const { jobs } = this.#deps.store;
    const records = await jobs.list({ ...filter, ...page });
    const views = [];
    for (const record of records) {
      views.push(await jobView(record, { ...this.#deps, entriesMax: ENTRIES_BRIEF_MAX }));
    }
    return { jobs: views, total: await jobs.count(filter) };
  }

  /** All tasks in pages, failures first. @throws {LacewingError} `not_found` */
  async tasks(id: number, query: TaskQuery, page: Page) {
    const { store, watch } = this.#deps;
    await store.jobs.get(id);
    const tasks = await store.jobTasks.list(id, { ...query, ...page });
    const live = watch.live(id);
    return {
      tasks: tasks.map((task) => ({ cluster_id: task.clusterId, ...taskView(task, live.get(task.id)) })),
      total: await store.jobTasks.count(id, query),
    };
  }

  /** @throws {LacewingError} `not_found` */
  async setBio(id: number, bio: string): Promise<JobView> {
    const job = await this.#deps.store.jobs.setBio(id, bio);
    this.#deps.watch.changed(id);
    return await jobView(job, this.#deps);
  }

  /**
   * Cancels a pending job, or removes the record of an ended one.
   *
   * @returns the cancelled job, or null when the record was removed
   * @throws {LacewingError} `not_found`
   */
  async remove(id: number): Promise<JobView | null> {
    const { store, worker, watch } = this.#deps;
    const job = await store.jobs.get(id);
    if (!hasEnded(job.state) && await store.jobs.cancel(id)) {
      worker.cancel(id);
      watch.changed(id);
      return await this.get(id);
    }
    await store.jobs.remove(id);
    watch.changed(id);
    return null;
  }

  /** The clusters with these ids, or all. */
  async #clusters(ids: readonly number[] | null): Promise<{ id: number; name: string }[]> {
    const all = await this.#deps.store.clusters.list();
    const unknown = (ids ?? []).filter((id) => !all.some((cluster) => cluster.id === id));
    if (unknown.length > 0) {
      const known = all.map(({ id }) => id).slice(0, 20).join(", ");
      throw new LacewingError(
        "invalid",
        `Cannot preheat scheduler_cluster_ids ${unknown.join(", ")}: there is no such cluster; known are ${known}`,
      );
    }
    return all.filter(({ id }) => ids === null || ids.includes(id)).map(({ id, name }) => ({ id, name }));
  }
}
