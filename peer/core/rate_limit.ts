/**
 * A token bucket over bytes: `take` waits until the rate allows them. Waiters
 * are served in order, so that two streams that take chunks of one size share
 * it fairly. A change of the rate holds at once, also for who is waiting.
 */
import type { Clock } from "./clock.ts";

/** How much may pass at once after a pause, in seconds of the rate. */
const BURST_S = 0.1;

export class RateLimiter {
  #bytesPerSecond: number;
  #availableBytes: number;
  #refilledAtMs: number;
  #queue: Promise<void> = Promise.resolve();
  /** Ends the sleep of the waiter whose turn it is. */
  #wake: () => void = () => {};

  /** @param bytesPerSecond 0 means no limit. */
  constructor(private readonly clock: Clock, bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#availableBytes = bytesPerSecond * BURST_S;
    this.#refilledAtMs = clock.nowMs();
  }

  get bytesPerSecond(): number {
    return this.#bytesPerSecond;
  }

  /** Changes the rate from now on, also for those who wait; 0 means no limit. */
  setRate(bytesPerSecond: number): void {
    this.#refill();
    this.#bytesPerSecond = bytesPerSecond;
    // Who had no limit for a while begins without debt and without savings.
    this.#availableBytes = bytesPerSecond === 0 ? 0 : Math.min(this.#availableBytes, bytesPerSecond * BURST_S);
    this.#wake();
  }

  /**
   * Waits until `bytes` may pass; rejects with `signal.reason` as soon as it is
   * aborted, and nothing is taken then.
   *
   * @returns undefined when they may pass at once because there is no limit
   */
  take(bytes: number, signal?: AbortSignal): Promise<void> | undefined {
    if (this.#bytesPerSecond === 0 && !signal?.aborted) return undefined;
    const turn = this.#queue.then(() => this.#wait(bytes, signal));
    this.#queue = turn.catch(() => {});
    return signal === undefined ? turn : orAborted(turn, signal);
  }

  async #wait(bytes: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#bytesPerSecond === 0) return;
    this.#refill();
    // The bucket may go into debt by one chunk: chunks may be larger than the burst.
    this.#availableBytes -= bytes;
    try {
      while (this.#availableBytes < 0 && this.#bytesPerSecond > 0) {
        if (await this.#sleep((-this.#availableBytes / this.#bytesPerSecond) * 1000, signal)) return;
      }
    } catch (error) {
      this.#availableBytes += bytes;
      throw error;
    }
  }

  /** @returns false when a change of the rate ended the sleep early */
  async #sleep(ms: number, signal?: AbortSignal): Promise<boolean> {
    const controller = new AbortController();
    const onAbort = () => controller.abort();
    this.#wake = onAbort;
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await this.clock.sleep(ms, controller.signal);
      return true;
    } catch (error) {
      if (!controller.signal.aborted) throw error;
      signal?.throwIfAborted();
      return false;
    } finally {
      this.#wake = () => {};
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #refill(): void {
    const nowMs = this.clock.nowMs();
    const earned = ((nowMs - this.#refilledAtMs) / 1000) * this.#bytesPerSecond;
    this.#refilledAtMs = nowMs;
    this.#availableBytes = Math.min(this.#availableBytes + earned, this.#bytesPerSecond * BURST_S);
  }
}

/** Who waits in the queue hears of an abort before the turn comes. */
function orAborted(turn: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    turn.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
