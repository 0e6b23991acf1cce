/**
 * Notices that a simulated host has had nothing to do for a while, as the daemon's
 * look every 100 ms does (peer/task/session.ts): here a look is planned when
 * the host becomes idle, and none while it works.
 */
import { ArrivalPace } from "../../peer/task/arrival_pace.ts";
import type { EventQueue } from "./event_queue.ts";

/** As peer/task/session.ts has it. */
const CHECK_INTERVAL_MS = 100;

/** What is watched. */
export interface IdleHost {
  readonly isIdle: boolean;
  /** It has been idle for longer than its patience. @returns whether it is to be looked at again */
  starve(idleMs: number): boolean;
}

export class IdleWatch {
  readonly #pace = new ArrivalPace();
  #sinceMs: number | null = null;
  #life = 0;
  /** Longest time that the host was idle. */
  longestMs = 0;

  /** @param offsetMs hosts do not all look in the same moment */
  constructor(private readonly host: IdleHost, private readonly queue: EventQueue, private readonly offsetMs: number) {}

  /** A piece is here. */
  arrived(): void {
    this.#sinceMs = null;
    this.#pace.arrived(this.queue.nowMs);
  }

  /** The host is dead. */
  stop(): void {
    this.#sinceMs = null;
    this.#life += 1;
  }

  /** Something has begun or ended. */
  look(): void {
    const { nowMs } = this.queue;
    if (!this.host.isIdle) {
      if (this.#sinceMs !== null) this.longestMs = Math.max(this.longestMs, nowMs - this.#sinceMs);
      this.#sinceMs = null;
      return;
    }
    if (this.#sinceMs !== null) return;
    const offsetMs = this.offsetMs % CHECK_INTERVAL_MS;
    const nextMs = Math.ceil((nowMs + offsetMs) / CHECK_INTERVAL_MS) * CHECK_INTERVAL_MS - offsetMs;
    this.#sinceMs = nowMs;
    this.#lookAt(nextMs + this.#pace.patienceMs, this.#life, nowMs);
  }

  #lookAt(timeMs: number, life: number, sinceMs: number): void {
    this.queue.at(timeMs, () => {
      if (life !== this.#life || this.#sinceMs !== sinceMs || !this.host.isIdle) return;
      const { nowMs } = this.queue;
      this.longestMs = Math.max(this.longestMs, nowMs - sinceMs);
      if (this.host.starve(nowMs - sinceMs)) this.#lookAt(nowMs + CHECK_INTERVAL_MS, life, sinceMs);
    });
  }
}
