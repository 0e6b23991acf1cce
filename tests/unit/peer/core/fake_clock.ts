/**
 * A clock whose time moves only when it is told to: sleepers wake in the order
 * of their times, and all that follows from one waking happens before the next.
 */
import { setImmediate } from "node:timers";
import type { Clock } from "../../../../peer/core/clock.ts";

interface Sleeper {
  readonly atMs: number;
  readonly wake: () => void;
}

export class FakeClock implements Clock {
  #nowMs = 0;
  #sleepers: Sleeper[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  /** How many wait for their time. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        reject(signal?.reason);
      };
      const wake = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const sleeper = { atMs: this.#nowMs + Math.max(0, ms), wake };
      this.#sleepers.push(sleeper);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Lets `ms` pass, waking every sleeper at its time. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await settle();
    while (true) {
      const next = this.#sleepers.reduce<Sleeper | null>((a, b) => a !== null && a.atMs <= b.atMs ? a : b, null);
      if (next === null || next.atMs > endMs) break;
      this.#nowMs = next.atMs;
      this.#sleepers = this.#sleepers.filter((other) => other !== next);
      next.wake();
      await settle();
    }
    this.#nowMs = endMs;
  }
}

/** Lets everything run that is due, and what follows from it. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
