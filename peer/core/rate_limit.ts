/**
 * A token bucket over bytes: `take` waits until the rate allows them. Waiters
 * are served in order, so that two streams on one bucket share it fairly.
 */
import type { Clock } from "./clock.ts";

/** How much may pass at once after a pause, in seconds of the rate. */
const BURST_S = 0.1;

export class RateLimiter {
  #bytesPerSecond: number;
  #availableBytes: number;
  #refilledAtMs: number;
  #queue: Promise<void> = Promise.resolve();

  /** @param bytesPerSecond 0 means no limit. */
  constructor(private readonly clock: Clock, bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#availableBytes = bytesPerSecond * BURST_S;
    this.#refilledAtMs = clock.nowMs();
  }

  get bytesPerSecond(): number {
    return this.#bytesPerSecond;
  }

  /** Changes the rate for what is taken from now on; 0 means no limit. */
  setRate(bytesPerSecond: number): void {
    this.#refill();
    this.#bytesPerSecond = bytesPerSecond;
    this.#availableBytes = Math.min(this.#availableBytes, bytesPerSecond * BURST_S);
  }

  /** Waits until `bytes` may pass; rejects with `signal.reason` when aborted. */
  take(bytes: number, signal?: AbortSignal): Promise<void> | undefined {
    if (this.#bytesPerSecond === 0) return undefined;
    const turn = this.#queue.then(() => this.#wait(bytes, signal));
    this.#queue = turn.catch(() => {});
    return turn;
  }

  async #wait(bytes: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#bytesPerSecond === 0) return;
    this.#refill();
    // The bucket may go into debt by one chunk: chunks may be larger than the burst.
    this.#availableBytes -= bytes;
    if (this.#availableBytes >= 0) return;
    try {
      await this.clock.sleep((-this.#availableBytes / this.#bytesPerSecond) * 1000, signal);
    } catch (error) {
      this.#availableBytes += bytes;
      throw error;
    }
  }

  #refill(): void {
    const nowMs = this.clock.nowMs();
    const earned = ((nowMs - this.#refilledAtMs) / 1000) * this.#bytesPerSecond;
    this.#refilledAtMs = nowMs;
    this.#availableBytes = Math.min(this.#availableBytes + earned, this.#bytesPerSecond * BURST_S);
  }
}
