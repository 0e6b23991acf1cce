/**
 * Decides how many pieces a host asks for at once. A piece that is asked for
 * waits at one neighbour while another might send it, so few are better than
 * many; but enough that some are on their way while others are asked for.
 *
 * A neighbour that has no free slot and no place to wait says so: then there
 * were too many. Each piece that comes lets the depth grow a little again. Where
 * no more than `DEPTH_MIN` are allowed, as by default, the depth stands. Pure.
 *
 * In a cold wave of 256 hosts a fixed depth of 8 had 4 pieces turned away for
 * each one that came, and took 1.15 × the bound; from 4 on 1.11 × (tests/sim).
 * On a real network of 16 hosts fewer than 8 left downlinks idle (tests/bench).
 */

/** As many as keep a downlink busy whose requests wait for a slot half of the time (`SLOTS_MIN` and as many in line). */
export const DEPTH_MIN = 8;
const STEP_UP = 0.05;
/** The same until the first refusal. */
const STEP_UP_FIRST = 0.25;
const STEP_DOWN = 0.5;

export class RequestDepth {
  readonly #min: number;
  #depth: number;
  #isLearned = false;

  /** @param max never more than this, at least 1 */
  constructor(private readonly max: number) {
    this.#min = Math.min(DEPTH_MIN, max);
    this.#depth = this.#min;
  }

  /** Requests that may be under way now. */
  get count(): number {
    return Math.floor(this.#depth);
  }

  /** A piece has come. */
  succeeded(): void {
    this.#depth = Math.min(this.max, this.#depth + (this.#isLearned ? STEP_UP : STEP_UP_FIRST));
  }

  /** A neighbour had no room for a request. */
  refused(): void {
    this.#isLearned = true;
    this.#depth = Math.max(this.#min, this.#depth - STEP_DOWN);
  }
}
