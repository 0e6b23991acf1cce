/**
 * Slows down who tries tokens: after some failures within a minute an address
 * has to wait until the minute is over. Pure but for its memory, which is bounded.
 */

/** Failures of one address within a window. */
const FAILURES_MAX = 10;
const WINDOW_MS = 60_000;
/** Addresses remembered; the oldest is forgotten first. */
const ADDRESSES_MAX = 10_000;

export class Throttle {
  readonly #failures = new Map<string, { count: number; untilMs: number }>();

  /** @returns milliseconds that the address has to wait, 0 when it may try */
  waitMs(address: string, nowMs: number): number {
    const entry = this.#failures.get(address);
    if (entry === undefined || entry.untilMs <= nowMs || entry.count < FAILURES_MAX) return 0;
    return entry.untilMs - nowMs;
  }

  failed(address: string, nowMs: number): void {
    const entry = this.#failures.get(address);
    if (entry !== undefined && entry.untilMs > nowMs) {
      entry.count += 1;
      return;
    }
    this.#failures.delete(address);
    this.#failures.set(address, { count: 1, untilMs: nowMs + WINDOW_MS });
    const oldest = this.#failures.keys().next();
    if (this.#failures.size > ADDRESSES_MAX && !oldest.done) this.#failures.delete(oldest.value);
  }
}
