/**
 * What happens to jobs right now, in memory: the progress of tasks that run,
 * which is written down only when they end, and listeners that want to hear
 * of a change. Bounded by the tasks and streams that are under way.
 */
import type { PreheatProgress } from "../scheduler/schedulers.ts";

export class JobWatch {
  readonly #live = new Map<number, Map<number, PreheatProgress>>();
  readonly #listeners = new Map<number, Set<() => void>>();

  /** Progress by job task id of what runs in a job. */
  live(jobId: number): ReadonlyMap<number, PreheatProgress> {
    return this.#live.get(jobId) ?? new Map();
  }

  /** A running task came on; null when it no longer runs. */
  progress(jobId: number, jobTaskId: number, progress: PreheatProgress | null): void {
    const tasks = this.#live.get(jobId) ?? new Map<number, PreheatProgress>();
    if (progress === null) tasks.delete(jobTaskId);
    else tasks.set(jobTaskId, progress);
    if (tasks.size === 0) this.#live.delete(jobId);
    else this.#live.set(jobId, tasks);
    this.changed(jobId);
  }

  /** Something about the job is not as it was. */
  changed(jobId: number): void {
    for (const listener of this.#listeners.get(jobId) ?? []) listener();
  }

  /** @returns the way to stop listening */
  onChange(jobId: number, listener: () => void): () => void {
    const listeners = this.#listeners.get(jobId) ?? new Set();
    listeners.add(listener);
    this.#listeners.set(jobId, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(jobId) === listeners) this.#listeners.delete(jobId);
    };
  }
}
