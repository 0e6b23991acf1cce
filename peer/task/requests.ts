/**
 * The requests that share one task: what they allow and want together. Pure
 * but for the set itself.
 */
import type { Run } from "./run.ts";

export class Requests {
  readonly #runs = new Set<Run>();

  get size(): number {
    return this.#runs.size;
  }

  add(run: Run): void {
    this.#runs.add(run);
  }

  /** @returns whether it was there */
  delete(run: Run): boolean {
    return this.#runs.delete(run);
  }

  [Symbol.iterator](): Iterator<Run> {
    return [...this.#runs].values();
  }

  /** Whether any of them lets this host read the origin. */
  get canSource(): boolean {
    return [...this.#runs].some((run) => !run.request.disableBackSource);
  }

  /** The span of the oldest one that takes part in a trace. */
  get traceparent(): string | undefined {
    return [...this.#runs].find((run) => run.request.traceparent !== undefined)?.request.traceparent;
  }

  /** Whether all of them want only a part. */
  get isPartial(): boolean {
    return this.#runs.size > 0 && [...this.#runs].every((run) => run.request.range !== null);
  }

  /** Headers for the origin: those of the newest request that may read it. */
  get headers(): readonly (readonly [string, string])[] {
    return [...this.#runs].filter((run) => !run.request.disableBackSource).at(-1)?.request.headers ?? [];
  }

  /**
   * The highest limit among them, none if one has none; never above the task's own.
   *
   * @returns bytes per second; 0 is no limit
   */
  rate(perTaskRateLimit: number): number {
    const rates = [...this.#runs].map((run) => run.request.rateLimitBytesPerSecond);
    const asked = rates.includes(0) || rates.length === 0 ? 0 : Math.max(...rates);
    if (asked === 0) return perTaskRateLimit;
    return perTaskRateLimit === 0 ? asked : Math.min(asked, perTaskRateLimit);
  }
}
