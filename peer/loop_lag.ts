/**
 * How long the event loop was held up: the lateness of a timer. A stall is
 * seen up to `INTERVAL_MS` too short, never too long.
 */

/** 50 wakes a second: about 0.1% of a core. */
const INTERVAL_MS = 20;

export class LoopLag implements Disposable {
  #timer: ReturnType<typeof setTimeout>;
  #dueMs: number;
  #maxMs = 0;

  constructor(private readonly nowMs: () => number = () => performance.now()) {
    this.#dueMs = nowMs() + INTERVAL_MS;
    this.#timer = this.#arm();
  }

  /** The longest stall since the last call, in seconds; one that goes on counts. */
  take(): number {
    const longestMs = Math.max(this.#maxMs, this.nowMs() - this.#dueMs, 0);
    this.#maxMs = 0;
    return longestMs / 1000;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #arm(): ReturnType<typeof setTimeout> {
    return setTimeout(() => {
      const nowMs = this.nowMs();
      this.#maxMs = Math.max(this.#maxMs, nowMs - this.#dueMs);
      this.#dueMs = nowMs + INTERVAL_MS;
      this.#timer = this.#arm();
    }, INTERVAL_MS);
  }
}
