/**
 * Takes pending jobs by lease and runs each to its outcome. A job whose worker
 * died is taken again when its lease ends (or at once, when the one manager of
 * a work home starts anew) and goes on with what is undone. A clean stop leaves
 * jobs pending and gives their leases back.
 */
import { ERRORS, LacewingError, toWireError } from "../../peer/core/errors.ts";
import type { JobRecord } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";
import { nextState, outcomeOf, type StateCounts } from "./job.ts";
import { failedTask } from "./expand.ts";
import type { PreheatArgs } from "./job_args.ts";
import { failedResult, runTaskJob } from "./task_jobs.ts";
import type { PreheatDeps, PreheatRunner } from "./preheat.ts";

/** Jobs that run at once; the others wait their turn, oldest first. */
const ACTIVE_JOBS_MAX = 20;
const LEASE_MS = 15_000;
/** Between two looks for jobs that nobody told us of, milliseconds. */
const LOOK_MS = 1000;
/** Between two removals of old jobs, milliseconds. */
const CLEAN_MS = 10 * 60_000;

export interface WorkerDeps extends Omit<PreheatDeps, "store" | "resolver" | "random"> {
  readonly store: Pick<Store, "jobs" | "jobTasks">;
  readonly preheat: Pick<PreheatRunner, "run">;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
}

export interface WorkerConfig {
  /** Names this worker in leases. */
  readonly owner: string;
  /** Ended jobs older than this are removed, milliseconds. */
  readonly keepMs: number;
}

export class JobWorker implements AsyncDisposable {
  readonly #deps: WorkerDeps;
  readonly #config: WorkerConfig;
  readonly #running = new Map<number, { controller: AbortController; ended: Promise<void> }>();
  readonly #stop = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #wake: () => void = () => {};
  #cleanedAtMs = -Infinity;

  constructor(deps: WorkerDeps, config: WorkerConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  start(): void {
    this.#loop = this.#work();
  }

  /** There may be a new job: look now. */
  wake(): void {
    this.#wake();
  }

  /** A job was cancelled in the store: stop what runs of it. */
  cancel(jobId: number): void {
    this.#running.get(jobId)?.controller.abort(new DOMException("The job was cancelled", "AbortError"));
  }

  get running(): boolean {
    return !this.#stop.signal.aborted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new DOMException("The manager is stopping", "AbortError"));
    this.#wake();
    for (const { controller } of this.#running.values()) controller.abort(this.#stop.signal.reason);
    await this.#loop;
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  async #work(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const woken = new Promise<void>((resolve) => this.#wake = resolve);
      try {
        await this.#clean();
        const limit = ACTIVE_JOBS_MAX - this.#running.size;
        const claimed = limit === 0
          ? []
          : await this.#deps.store.jobs.claim(this.#config.owner, { leaseMs: LEASE_MS, limit });
        for (const job of claimed) this.#start(job);
      } catch (error) {
        this.#deps.log.error("looking for jobs failed", { error });
      }
      await this.#pause(woken);
    }
  }

  async #pause(woken: Promise<void>): Promise<void> {
    const done = new AbortController();
    const slept = this.#deps.clock.sleep(LOOK_MS, AbortSignal.any([done.signal, this.#stop.signal])).catch(() => {});
    await Promise.race([woken, slept]);
    done.abort();
    await slept;
  }

  async #clean(): Promise<void> {
    if (this.#deps.clock.nowMs() - this.#cleanedAtMs < CLEAN_MS) return;
    this.#cleanedAtMs = this.#deps.clock.nowMs();
    const removed = await this.#deps.store.jobs.removeEndedBefore(this.#deps.now() - this.#config.keepMs);
    if (removed > 0) this.#deps.log.info("old jobs removed", { removed });
  }

  #start(job: JobRecord): void {
    const controller = new AbortController();
    const ended = this.#run(job, controller).then(() => true, (error) => {
      // Not woken at once: what failed now fails again in the same moment.
      this.#deps.log.error("running a job failed, it will be taken again", { job: job.id, error });
      return false;
    }).then((wake) => {
      this.#running.delete(job.id);
      this.#deps.watch.changed(job.id);
      if (wake) this.wake();
    });
    this.#running.set(job.id, { controller, ended });
    if (this.#stop.signal.aborted) controller.abort(this.#stop.signal.reason);
  }

  async #run(job: JobRecord, controller: AbortController): Promise<void> {
    const { log, store } = this.#deps;
    log.info("job taken", { job: job.id, type: job.type });
    const over = new AbortController();
    const guards = [this.#renewing(job, controller, over.signal), this.#deadline(job, controller, over.signal)];
    try {
      await this.#toOutcome(job, controller.signal);
    } finally {
      over.abort();
      await Promise.all(guards);
      await store.jobs.release(job.id, this.#config.owner);
    }
  }

  async #toOutcome(job: JobRecord, signal: AbortSignal): Promise<void> {
    try {
      if (job.type === "preheat") await this.#deps.preheat.run(job, signal);
      else return await this.#end(job, await runTaskJob(job, { deps: this.#deps, signal }));
    } catch (error) {
      if (signal.aborted) {
        // Cancelled, stopping or lease lost: the record says what is next. Only a timeout is an outcome.
        if (isTimeout(signal.reason)) await this.#fail(job, timeoutError(job));
        return;
      }
      if (error instanceof LacewingError && ERRORS[error.code].retryable) throw error;
      this.#deps.log.error("running a job failed", { job: job.id, error });
      return await this.#fail(job, toWireError(error));
    }
    await this.#end(job, { state: outcomeOf(await this.#counts(job.id)) });
  }

  /** Ends a job for one reason, which stands at every task that has no outcome of its own. */
  async #fail(job: JobRecord, error: { code: string; message: string }): Promise<void> {
    if (job.type !== "preheat") return await this.#end(job, { state: "FAILURE", result: failedResult(job, error) });
    const { jobTasks } = this.#deps.store;
    const args = job.runArgs as unknown as PreheatArgs;
    for (const { id } of job.clusters) {
      await jobTasks.addCluster(job.id, {
        clusterId: id,
        hostIds: [],
        tasks: args.urls.map((url) => failedTask(args, url, error)),
      });
    }
    await jobTasks.failPending(job.id, error);
    await this.#end(job, { state: "FAILURE" });
  }

  async #end(job: JobRecord, { state, result }: { state: JobRecord["state"]; result?: unknown }): Promise<void> {
    nextState(job.state, state === "SUCCESS" ? "succeed" : "fail");
    const ended = await this.#deps.store.jobs.end(job.id, { owner: this.#config.owner, state, result });
    if (ended) this.#deps.log.info("job ended", { job: job.id, state });
  }

  async #counts(jobId: number): Promise<StateCounts> {
    const counts: Record<string, number> = {};
    for (const { state, count } of await this.#deps.store.jobTasks.sums(jobId)) {
      counts[state] = (counts[state] ?? 0) + count;
    }
    return counts;
  }

  /** Keeps the lease; gives the job up when it is lost. */
  async #renewing(job: JobRecord, controller: AbortController, over: AbortSignal): Promise<void> {
    while (await this.#slept(LEASE_MS / 3, over)) {
      try {
        if (await this.#deps.store.jobs.renew(job.id, this.#config.owner, LEASE_MS)) continue;
        controller.abort(new DOMException("The job is no longer this worker's", "AbortError"));
        return;
      } catch (error) {
        this.#deps.log.warn("renewing a lease failed", { job: job.id, error: toWireError(error) });
      }
    }
  }

  async #deadline(job: JobRecord, controller: AbortController, over: AbortSignal): Promise<void> {
    const leftMs = Math.max(0, (job.deadlineAtMs ?? Infinity) - this.#deps.now());
    if (await this.#slept(leftMs, over)) controller.abort(new DOMException("The job timed out", "TimeoutError"));
  }

  async #slept(ms: number, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#deps.clock.sleep(ms, signal);
      return true;
    } catch {
      return false;
    }
  }
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === "TimeoutError";
}

function timeoutError({ runArgs }: JobRecord): { code: string; message: string } {
  const { timeout } = runArgs as { timeout: number };
  return {
    code: "timeout",
    message: `Cannot finish within the job's timeout of ${timeout} s; try again, or give a longer timeout`,
  };
}
