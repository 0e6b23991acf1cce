/**
 * Runs one preheat job: makes the tasks of each cluster, orders each onto the
 * hosts of the scope, tries again what may pass, and writes down how each
 * ended. Run again after a crash it goes on with what has not ended; a task
 * that fails never stops the others.
 */
import type { Clock, Random } from "../../peer/core/clock.ts";
import { ERRORS, fromWireError, isErrorCode, LacewingError, toWireError } from "../../peer/core/errors.ts";
import { type Logger, redactText } from "../../peer/core/log.ts";
import type { OrderTask } from "../../peer/core/wire/scheduler.ts";
import type { PreheatProgress, Schedulers } from "../scheduler/schedulers.ts";
import type { JobRecord } from "../store/jobs.ts";
import type { JobTask } from "../store/job_tasks.ts";
import type { Store } from "../store/store.ts";
import { clusterTasks, type Resolve, resolveRequest } from "./expand.ts";
import type { PreheatArgs } from "./job_args.ts";
import type { ResolvedItem, Resolver } from "../registry/resolver.ts";
import { expectedBytes } from "./view.ts";
import type { JobWatch } from "./watch.ts";

export interface PreheatDeps {
  readonly store: Pick<Store, "jobTasks">;
  readonly schedulers: Schedulers;
  readonly resolver: Resolver;
  readonly watch: JobWatch;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface PreheatConfig {
  /** Tasks of one job that run at once. */
  readonly concurrentTasks: number;
  /** Further tries of what may pass. */
  readonly retries: number;
  /** Time of the clock until which hosts are waited for: they come back after a restart of the manager. */
  readonly hostsBackAtMs: number;
}

/** First pause before another try, milliseconds; doubles each time, with up to half of it at random. */
const BACKOFF_MS = 1000;
const BACKOFF_MS_MAX = 30_000;
/** Between two looks at which hosts are back, milliseconds. */
const HOSTS_LOOK_MS = 100;

interface Attempt {
  readonly progress: PreheatProgress | null;
  readonly error: LacewingError | null;
}

export class PreheatRunner {
  readonly #deps: PreheatDeps;
  readonly #config: PreheatConfig;

  constructor(deps: PreheatDeps, config: PreheatConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  /** Resolves when every task has ended; rejects with `signal.reason`, or what went wrong with the job itself. */
  async run(job: JobRecord, signal: AbortSignal): Promise<void> {
    const args = job.runArgs as unknown as PreheatArgs;
    const { jobTasks } = this.#deps.store;
    const parts = await jobTasks.clusters(job.id);
    await together(signal, (all) => {
      const resolve = this.#resolveOnce(all);
      return job.clusters.map(async (cluster) => {
        await this.#hostsBack(cluster.id, parts.get(cluster.id) ?? null, all);
        if (!parts.has(cluster.id)) await this.#makeTasks(job, { args, cluster, resolve, signal: all });
      });
    });
    const queue = interleave(await Promise.all(job.clusters.map(({ id }) => jobTasks.pending(job.id, id))));
    await together(
      signal,
      (all) =>
        Array.from({ length: Math.min(this.#config.concurrentTasks, queue.length) }, async () => {
          for (let task = queue.shift(); task !== undefined; task = queue.shift()) {
            all.throwIfAborted();
            await this.#runTask(task, args, all);
          }
        }),
    );
  }

  async #makeTasks(
    job: JobRecord,
    { args, cluster, resolve, signal }: {
      args: PreheatArgs;
      cluster: JobRecord["clusters"][number];
      resolve: Resolve;
      signal: AbortSignal;
    },
  ): Promise<void> {
    const hosts = this.#deps.schedulers.hosts(cluster.id);
    const tasks = await clusterTasks(args, { cluster, hosts, resolve });
    signal.throwIfAborted();
    await this.#deps.store.jobTasks.addCluster(job.id, {
      clusterId: cluster.id,
      hostIds: hosts.map(({ id }) => id),
      tasks,
    });
    this.#deps.watch.changed(job.id);
  }

  /** After a restart: waits for the hosts that the job knew, or for any, but not for ever. */
  async #hostsBack(clusterId: number, expected: readonly string[] | null, signal: AbortSignal): Promise<void> {
    const { schedulers, clock } = this.#deps;
    while (clock.nowMs() < this.#config.hostsBackAtMs) {
      const live = new Set(schedulers.hosts(clusterId).map(({ id }) => id));
      if (expected === null ? live.size > 0 : expected.every((id) => live.has(id))) return;
      await clock.sleep(HOSTS_LOOK_MS, signal);
    }
  }

  /** Several clusters with the same platforms ask the registry once. */
  #resolveOnce(signal: AbortSignal): Resolve {
    const asked = new Map<string, ReturnType<Resolver["resolve"]>>();
    return (request) => {
      const key = JSON.stringify([request.url, request.platforms]);
      const known = asked.get(key) ?? this.#resolve(request, signal);
      asked.set(key, known);
      return known;
    };
  }

  async #resolve(request: Parameters<Resolve>[0], signal: AbortSignal): ReturnType<Resolve> {
    for (let attempt = 0;; attempt++) {
      try {
        return await this.#deps.resolver.resolve(request, { signal });
      } catch (error) {
        signal.throwIfAborted();
        const retryable = error instanceof LacewingError && ERRORS[error.code].retryable;
        if (!retryable || attempt >= this.#config.retries) throw error;
        this.#deps.log.warn("asking the registry failed, trying again", { error, attempt });
        await this.#backOff(attempt, signal);
      }
    }
  }

  async #runTask(task: JobTask, args: PreheatArgs, signal: AbortSignal): Promise<void> {
    const { watch } = this.#deps;
    try {
      const { progress, error } = await this.#try(task, args, signal);
      const contentLength = progress?.contentLength ?? task.contentLength;
      const hosts = progress?.hosts ?? [];
      await this.#deps.store.jobTasks.end(task.id, {
        state: error === null ? "SUCCESS" : "FAILURE",
        error: error === null ? null : toWireError(error),
        contentLength,
        hosts,
        total: expectedBytes({ contentLength, hosts }),
        done: progress?.done ?? 0,
        fromSource: progress?.fromSource ?? 0,
        fromPeers: progress?.fromPeers ?? 0,
      });
    } finally {
      watch.progress(task.jobId, task.id, null);
    }
  }

  /** Tries until it went well, may not pass, or has been tried enough. */
  async #try(task: JobTask, args: PreheatArgs, signal: AbortSignal): Promise<Attempt> {
    const { retries } = this.#config;
    const item = task.item as ResolvedItem | null;
    let headers: Readonly<Record<string, string>> = item?.headers ?? args.headers;
    for (let attempt = 0, refreshed = 0;;) {
      const result = await this.#order(task, { args, headers }, signal);
      if (result.error === null) return result;
      if (result.error.code === "source_refused" && item !== null && refreshed < Math.max(1, retries)) {
        refreshed += 1;
        const fresh = await this.#freshHeaders(item, args, signal);
        if (fresh === null || JSON.stringify(fresh) === JSON.stringify(headers)) return result;
        headers = fresh;
        continue;
      }
      if (!ERRORS[result.error.code].retryable || attempt >= retries) return result;
      this.#deps.log.info("preheating a task failed, trying again", { job: task.jobId, error: result.error, attempt });
      await this.#backOff(attempt, signal);
      attempt += 1;
    }
  }

  async #freshHeaders(item: ResolvedItem, args: PreheatArgs, signal: AbortSignal) {
    try {
      const request = resolveRequest(args, args.urls[0] ?? item.url, []);
      return await this.#deps.resolver.refreshHeaders(item, request, { signal });
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.log.warn("the registry gives no fresh credentials", { error });
      return null;
    }
  }

  async #order(
    task: JobTask,
    { args, headers }: { args: PreheatArgs; headers: Readonly<Record<string, string>> },
    signal: AbortSignal,
  ): Promise<Attempt> {
    const order: OrderTask = {
      task_id: task.taskId,
      url: task.url,
      tag: args.tag,
      filter: args.filter,
      ...(task.digest === null ? {} : { digest: task.digest }),
      headers: { ...headers },
    };
    let last: PreheatProgress | null = null;
    const onProgress = (progress: PreheatProgress) => {
      last = progress;
      this.#deps.watch.progress(task.jobId, task.id, progress);
    };
    try {
      const progress = await this.#deps.schedulers.preheat(task.clusterId, { task: order, scope: args.scope }, {
        signal,
        onProgress,
      });
      return { progress, error: failureOf(task.url, progress) };
    } catch (error) {
      signal.throwIfAborted();
      const { code, message } = toWireError(error);
      if (!(error instanceof LacewingError)) this.#deps.log.error("preheating a task failed unexpectedly", { error });
      return { progress: last, error: new LacewingError(code, sentence(task.url, message), { cause: error }) };
    }
  }

  #backOff(attempt: number, signal: AbortSignal): Promise<void> {
    const pause = Math.min(BACKOFF_MS * 2 ** attempt, BACKOFF_MS_MAX);
    return this.#deps.clock.sleep(pause * (1 + this.#deps.random() / 2), signal);
  }
}

/** Why a task that ran is not complete everywhere, or null. What cannot pass outweighs what may. */
export function failureOf(url: string, { hosts }: PreheatProgress): LacewingError | null {
  if (hosts.length === 0) {
    return new LacewingError("unavailable", sentence(url, "no live host of the cluster is in the scope"));
  }
  const failures = hosts.filter(({ state }) => state !== "SUCCESS");
  const reasons = failures.map(({ error }) => fromWireError(error ?? { code: "unknown", message: "no reason given" }));
  const worst = reasons.findIndex(({ code }) => isErrorCode(code) && !ERRORS[code].retryable);
  const at = worst === -1 ? 0 : worst;
  const [host, reason] = [failures[at], reasons[at]];
  if (host === undefined || reason === undefined) return null;
  const more = failures.length === 1 ? "" : ` (and ${failures.length - 1} more hosts)`;
  return new LacewingError(reason.code, sentence(url, `host ${host.hostname} (${host.ip}): ${reason.message}${more}`));
}

/** Waits for all; the first that fails ends the others too, and nothing is left running behind. */
async function together(signal: AbortSignal, start: (signal: AbortSignal) => Promise<void>[]): Promise<void> {
  const failed = new AbortController();
  const running = start(AbortSignal.any([signal, failed.signal])).map((work) =>
    work.catch((error) => {
      failed.abort(error);
      throw error;
    })
  );
  await Promise.allSettled(running);
  signal.throwIfAborted();
  await Promise.all(running);
}

function sentence(url: string, reason: string): string {
  return redactText(`Cannot preheat ${url}: ${reason}`);
}

/** One of each list in turn, so that every cluster begins at once. */
function interleave<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, index) => lists.flatMap((list) => list.slice(index, index + 1))).flat();
}
