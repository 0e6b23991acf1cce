/**
 * Tells when something took too long: armed before a wait, disarmed after it.
 * One timer for a whole connection instead of one for every read and write:
 * arming again while the timer runs costs a comparison.
 */
import type { Clock } from "../core/clock.ts";

export class Watchdog implements Disposable {
  #deadlineMs = Infinity;
  #wakesAtMs = Infinity;
  #timer: AbortController | null = null;
  #isDisposed = false;

  /** @param onExpire called once for each deadline that passes; it must not throw */
  constructor(private readonly clock: Clock, private readonly onExpire: () => void) {}

  /** Expires `ms` from now, whatever was armed before; once disposed it never does. */
  arm(ms: number): void {
    if (this.#isDisposed) return;
    this.#deadlineMs = this.clock.nowMs() + ms;
    if (this.#deadlineMs < this.#wakesAtMs) this.#watch();
  }

  disarm(): void {
    this.#deadlineMs = Infinity;
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.disarm();
    this.#timer?.abort();
  }

  async #watch(): Promise<void> {
    this.#timer?.abort();
    const timer = this.#timer = new AbortController();
    try {
      while (this.#deadlineMs < Infinity) {
        this.#wakesAtMs = this.#deadlineMs;
        await this.clock.sleep(Math.max(this.#deadlineMs - this.clock.nowMs(), 0), timer.signal);
        // A timer may fire a fraction of a millisecond early.
        if (this.clock.nowMs() + 1 < this.#deadlineMs) continue;
        this.disarm();
        this.onExpire();
      }
    } catch {
      // Aborted: replaced by an earlier deadline, or disposed.
    } finally {
      if (this.#timer === timer) {
        this.#timer = null;
        this.#wakesAtMs = Infinity;
      }
    }
  }
}
