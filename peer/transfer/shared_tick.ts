/**
 * Moments at which a whole daemon says what has gathered: one timer for all
 * links instead of one for each. The first word after a quiet while goes out
 * at once; those that follow it within the interval go together at its end.
 */
export class SharedTick {
  #next: Promise<void> | null = null;
  #lastMs = -Infinity;

  constructor(private readonly intervalMs: number) {}

  /** Resolves at the next moment, never in the same turn of the event loop. */
  next(): Promise<void> {
    return this.#next ??= this.#wait();
  }

  async #wait(): Promise<void> {
    const waitMs = Math.max(0, this.#lastMs + this.intervalMs - performance.now());
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    this.#next = null;
    this.#lastMs = performance.now();
  }
}
