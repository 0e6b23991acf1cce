/**
 * How fast one task may receive: its own bucket at the rate that its requests
 * ask for, and its fair share of the daemon's total.
 */
import type { Clock } from "../core/clock.ts";
import { type Limiter, RateLimiter } from "../core/rate_limit.ts";
import type { Requests } from "./requests.ts";

/** How long a piece may take, in seconds, before fewer are under way at once. */
const PIECE_S_MAX = 1;

/**
 * How many pieces should share a limit: at 100 KB/s five pieces of 256 KiB at once all come after 13 s, one after the
 * other the first comes after 3 s, and a reader waits for that one.
 *
 * @returns at least 1; `Infinity` without a limit
 */
export function piecesAtOnce(limiters: readonly Limiter[], pieceLength: number): number {
  const rates = limiters.map(({ bytesPerSecond }) => bytesPerSecond).filter((rate) => rate > 0);
  return Math.max(1, Math.floor(Math.min(...rates) * PIECE_S_MAX / pieceLength));
}

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
