/**
 * The clock and the dice as ports, so that tests and the simulator decide
 * what time it is and what chance says.
 */

export interface Clock {
  /** Milliseconds of a monotonic clock; only differences mean anything. */
  nowMs(): number;
  /** Resolves after `ms`, or rejects with `signal.reason`. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A number in [0, 1), as `Math.random`. */
export type Random = () => number;

/** The longest one timer can wait (2^31 - 1 ms, 24.8 days); asked for more it fires at once. */
const TIMER_MS_MAX = 2_147_483_647;

/** The machine's own clock. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      let timer: ReturnType<typeof setTimeout>;
      const wait = (leftMs: number) => {
        timer = setTimeout(() => {
          if (leftMs > TIMER_MS_MAX) return wait(leftMs - TIMER_MS_MAX);
          signal?.removeEventListener("abort", onAbort);
          resolve();
        }, Math.min(leftMs, TIMER_MS_MAX));
      };
      wait(ms);
      signal?.addEventListener("abort", onAbort, { once: true });
    }),
};

/** A deterministic generator (mulberry32) for tests and simulations. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
