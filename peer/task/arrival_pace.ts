/**
 * Decides when a host that has nothing under way starves: when nothing has come
 * for several times the time that lies between two pieces here. On a machine
 * that is slow or overloaded all wait longer, and to read the origin a second
 * time would only make them wait more. Pure.
 */

/** Where pieces come fast, or none has come yet. */
export const PATIENCE_MS_MIN = 300;
/** No host waits longer than this before it says so. */
export const PATIENCE_MS_MAX = 2_000;
const INTERVALS = 4;
/** Part of a new interval in the average. */
const WEIGHT = 0.2;

export class ArrivalPace {
  #lastMs: number | null = null;
  #intervalMs = 0;

  /** A piece is here, from wherever. */
  arrived(nowMs: number): void {
    if (this.#lastMs !== null) this.#intervalMs += (nowMs - this.#lastMs - this.#intervalMs) * WEIGHT;
    this.#lastMs = nowMs;
  }

  /** How long a host with nothing under way waits before it says that it starves. */
  get patienceMs(): number {
    return Math.min(PATIENCE_MS_MAX, Math.max(PATIENCE_MS_MIN, INTERVALS * this.#intervalMs));
  }
}
