/**
 * A token bucket over bytes: `take` waits until the rate allows them. Who asks
 * through shares of one limiter gets the same of it, however many connections
 * or how large chunks each of them has (start-time fair queuing, Goyal et al.
 * 1996); within a share waiters are served in order. A change of the rate holds
 * at once, also for who is waiting.
 */
import type { Clock } from "./clock.ts";

/** How much may pass at once after a pause, in seconds of the rate: 1% of any 5 s. */
const BURST_S = 0.05;
/** The same at the start: enough that a small file does not wait for a timer. */
const FIRST_BURST_S = 0.01;
/** Time that a chunk cut by `chunkLengthAt` takes: 1% of 5 s. */
const CHUNK_S = 0.05;
const CHUNK_LENGTH_MIN = 4 * 1024;

export interface Limiter {
  /** 0 means no limit. */
  readonly bytesPerSecond: number;
  /**
   * Waits until `bytes` may pass; rejects with `signal.reason` as soon as it is
   * aborted, and nothing is taken then.
   *
   * @returns undefined when they may pass at once
   */
  take(bytes: number, signal?: AbortSignal): Promise<void> | undefined;
}

/** What waits in one share. */
interface Waiter {
  readonly bytes: number;
  isAborted: boolean;
  readonly pass: () => void;
}

class Lane {
  readonly waiters: Waiter[] = [];
  /** Bytes that this share has had, counted from where the others were when it began to wait. */
  tag = 0;
}

export class RateLimiter implements Limiter {
  #bytesPerSecond: number;
  #availableBytes: number;
  #refilledAtMs: number;
  readonly #own = new Lane();
  /** Those with waiters. */
  readonly #lanes = new Set<Lane>();
  /** The one whose first waiter is being served; its bytes are taken out of the bucket. */
  #current: Lane | null = null;
  /** What the share had that was let through last. */
  #servedTag = 0;
  /** Ends the sleep of the waiter that is being served. */
  #wake: () => void = () => {};

  /** @param bytesPerSecond 0 means no limit. */
  constructor(private readonly clock: Clock, bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#availableBytes = bytesPerSecond * FIRST_BURST_S;
    this.#refilledAtMs = clock.nowMs();
  }

  get bytesPerSecond(): number {
    return this.#bytesPerSecond;
  }

  /** Changes the rate from now on, also for those who wait; 0 means no limit. */
  setRate(bytesPerSecond: number): void {
    if (bytesPerSecond === this.#bytesPerSecond) return;
    this.#refill();
    this.#bytesPerSecond = bytesPerSecond;
    // Who had no limit for a while begins without debt and without savings.
    this.#availableBytes = bytesPerSecond === 0 ? 0 : Math.min(this.#availableBytes, bytesPerSecond * BURST_S);
    this.#wake();
  }

  /** A part of this limiter that gets as much as any other part that waits. */
  share(): Limiter {
    const lane = new Lane();
    const rate = () => this.#bytesPerSecond;
    return {
      get bytesPerSecond() {
        return rate();
      },
      take: (bytes, signal) => this.#take(lane, bytes, signal),
    };
  }

  take(bytes: number, signal?: AbortSignal): Promise<void> | undefined {
    return this.#take(this.#own, bytes, signal);
  }

  #take(lane: Lane, bytes: number, signal?: AbortSignal): Promise<void> | undefined {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#bytesPerSecond === 0) return undefined;
    // Who was away may catch up a moment's worth, not more.
    if (lane.waiters.length === 0) {
      lane.tag = Math.max(lane.tag, this.#servedTag - this.#bytesPerSecond * BURST_S);
    }
    this.#refill();
    if (this.#current === null && this.#availableBytes >= bytes) {
      this.#availableBytes -= bytes;
      this.#count(lane, bytes);
      return undefined;
    }
    return this.#queue(lane, bytes, signal);
  }

  #queue(lane: Lane, bytes: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        waiter.isAborted = true;
        reject(signal?.reason);
        this.#wake();
      };
      const pass = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const waiter: Waiter = { bytes, isAborted: false, pass };
      signal?.addEventListener("abort", onAbort, { once: true });
      lane.waiters.push(waiter);
      this.#lanes.add(lane);
      if (this.#current === null) this.#serve();
      else if (lane.tag < this.#current.tag) this.#wake();
    });
  }

  async #serve(): Promise<void> {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const { lane, waiter } = next;
      const { bytes } = waiter;
      this.#current = lane;
      // The bucket may go into debt by one chunk: chunks may be larger than the burst.
      this.#availableBytes -= bytes;
      const isPaid = await this.#wait(() => waiter.isAborted || this.#next()?.lane !== lane);
      if (this.#bytesPerSecond === 0) this.#availableBytes = 0;
      else if (!isPaid) this.#availableBytes += bytes;
      if (!isPaid) continue;
      lane.waiters.shift();
      this.#count(lane, bytes);
      waiter.pass();
    }
    this.#current = null;
  }

  /** The first waiter of the share that has had least. */
  #next(): { lane: Lane; waiter: Waiter } | null {
    let least: Lane | null = null;
    for (const lane of this.#lanes) {
      while (lane.waiters[0]?.isAborted) lane.waiters.shift();
      if (lane.waiters.length === 0) this.#lanes.delete(lane);
      else if (least === null || lane.tag < least.tag) least = lane;
    }
    const waiter = least?.waiters[0];
    return least === null || waiter === undefined ? null : { lane: least, waiter };
  }

  #count(lane: Lane, bytes: number): void {
    this.#servedTag = Math.max(this.#servedTag, lane.tag);
    lane.tag += bytes;
  }

  /** Waits until the bucket is out of debt. @returns false when `isOver` came first */
  async #wait(isOver: () => boolean): Promise<boolean> {
    while (this.#availableBytes < 0 && this.#bytesPerSecond > 0) {
      if (isOver()) return false;
      if (await this.#sleep((-this.#availableBytes / this.#bytesPerSecond) * 1000)) return true;
    }
    return !isOver();
  }

  /** @returns false when something ended the sleep early */
  async #sleep(ms: number): Promise<boolean> {
    const controller = new AbortController();
    this.#wake = () => controller.abort();
    try {
      await this.clock.sleep(ms, controller.signal);
      return true;
    } catch (error) {
      if (!controller.signal.aborted) throw error;
      return false;
    } finally {
      this.#wake = () => {};
      this.#refill();
    }
  }

  #refill(): void {
    const nowMs = this.clock.nowMs();
    const earned = ((nowMs - this.#refilledAtMs) / 1000) * this.#bytesPerSecond;
    this.#refilledAtMs = nowMs;
    this.#availableBytes = Math.min(this.#availableBytes + earned, this.#bytesPerSecond * BURST_S);
  }
}

/**
 * How large chunks should be at a rate, so that bytes flow instead of coming in gushes.
 *
 * @returns bytes; `Infinity` without a limit
 */
export function chunkLengthAt(bytesPerSecond: number): number {
  if (bytesPerSecond === 0) return Infinity;
  return Math.max(CHUNK_LENGTH_MIN, Math.floor(bytesPerSecond * CHUNK_S));
}
