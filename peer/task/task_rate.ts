/**
 * How fast one task may receive: its own bucket at the rate that its requests
 * ask for, and its fair share of the daemon's total.
 */
import type { Clock } from "../core/clock.ts";
import { type Limiter, RateLimiter } from "../core/rate_limit.ts";
import type { Requests } from "./requests.ts";

export class TaskRate {
  /** Every byte that the task receives passes all of them. */
  readonly limiters: readonly Limiter[];
  readonly #own: RateLimiter;
  #perTask: number;

  /** @param perTask bytes per second that no request can raise; 0 is no limit */
  constructor(
    { clock, totalLimiter }: { clock: Clock; totalLimiter: RateLimiter },
    private readonly requests: Requests,
    perTask: number,
  ) {
    this.#perTask = perTask;
    this.#own = new RateLimiter(clock, perTask);
    this.limiters = [this.#own, totalLimiter.share()];
  }

  /** Changes the daemon's limit of one task from now on. */
  setPerTask(bytesPerSecond: number): void {
    this.#perTask = bytesPerSecond;
    this.update();
  }

  /** A request came or went. */
  update(): void {
    this.#own.setRate(this.requests.rate(this.#perTask));
  }
}
