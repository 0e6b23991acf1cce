/**
 * Decides whether the next call on a file is made on the main thread: yes,
 * until some were slow; then for a while not, and ever more rarely while the
 * one that tries it again is slow too. Pure: told how long each took.
 */

/** How long other threads work then; doubled with each try in a row that is slow, up to the maximum. */
const PAUSE_MS = 250;
const PAUSE_MS_MAX = 8_000;
/** Slow calls that far apart have nothing to do with each other: the process was out of a core for a moment. */
const NEAR_CALLS = 8;

export interface SlowCallsConfig {
  /** A call that takes as long is slow: two of them near each other make a slow disk. */
  readonly slowMs: number;
  /** One that takes as long makes a slow disk by itself. */
  readonly onceMs: number;
}

export class SlowCalls {
  #untilMs: number | null = null;
  #pauseMs = PAUSE_MS;
  #callsSinceSlow = Infinity;

  constructor(private readonly config: SlowCallsConfig) {}

  /** Whether a call now belongs on another thread. */
  isPaused(nowMs: number): boolean {
    return this.#untilMs !== null && nowMs < this.#untilMs;
  }

  /** A call on the main thread has ended. */
  took(ms: number, endedMs: number): void {
    if (ms < this.config.slowMs) {
      this.#callsSinceSlow += 1;
      this.#untilMs = null;
      this.#pauseMs = PAUSE_MS;
      return;
    }
    const isSlowDisk = this.#untilMs !== null || ms >= this.config.onceMs || this.#callsSinceSlow < NEAR_CALLS;
    this.#callsSinceSlow = 0;
    if (!isSlowDisk) return;
    this.#untilMs = endedMs + this.#pauseMs;
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MS_MAX);
  }
}
