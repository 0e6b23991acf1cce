/**
 * Decides from when on a request for a piece is late, so that another
 * neighbour is asked too: when it takes twice what nine of ten have taken. Pure.
 */

const FACTOR = 2;
const LATE_AFTER_MS_MIN = 200;
/** Without enough requests to compare with. */
const LATE_AFTER_MS_FIRST = 2_000;
const DURATIONS_MIN = 8;
const DURATIONS_KEPT = 64;

export class RequestTimes {
  /** How long the last requests took that succeeded. */
  readonly #durationsMs: number[] = [];

  /** A request has brought its piece. */
  took(ms: number): void {
    this.#durationsMs.push(ms);
    if (this.#durationsMs.length > DURATIONS_KEPT) this.#durationsMs.shift();
  }

  /** Age of a request, in milliseconds, from which on it is late. */
  get lateAfterMs(): number {
    if (this.#durationsMs.length < DURATIONS_MIN) return LATE_AFTER_MS_FIRST;
    const sorted = this.#durationsMs.toSorted((a, b) => a - b);
    return Math.max(LATE_AFTER_MS_MIN, FACTOR * sorted[Math.floor(sorted.length * 0.9)]!);
  }
}
