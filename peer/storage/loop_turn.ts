/**
 * Ends the event loop's turn when moving bytes has taken long enough. A socket
 * or a file that always has bytes never makes anybody wait, so that a receiver
 * whose disk or digests are slower than its network goes on for up to 48 chunks
 * in one turn (tests/bench, scenario I): 10 ms where a chunk takes 0.4 ms, 80 ms
 * where it takes 2, in which no timer runs and no message is read.
 *
 * One for all that moves bytes in a process: they share its turns.
 */

/** A turn is about that long and one chunk; the loop is asked for the next one 100 times a second at most. */
const TURN_MS = 10;
/** After so long without a chunk a turn begins with the next one: what is tiny waits for nothing. */
const IDLE_MS = 1_000;

export class LoopTurn {
  #sinceMs = -Infinity;
  #lastMs = -Infinity;
  #next: PromiseWithResolvers<void> | null = null;

  /** @param defer calls back when the turn is over, after timers and what has arrived had theirs */
  constructor(
    private readonly nowMs: () => number = () => performance.now(),
    private readonly defer: (callback: () => void) => void = setImmediate,
  ) {}

  /** To be called after each chunk. @returns null while the turn may go on, else what resolves in the next one */
  spent(): Promise<void> | null {
    if (this.#next !== null) return this.#next.promise;
    const nowMs = this.nowMs();
    if (nowMs - this.#lastMs >= IDLE_MS) this.#sinceMs = nowMs;
    this.#lastMs = nowMs;
    if (nowMs - this.#sinceMs < TURN_MS) return null;
    this.#next = Promise.withResolvers<void>();
    this.defer(() => this.#begin());
    return this.#next.promise;
  }

  #begin(): void {
    const next = this.#next;
    this.#sinceMs = this.#lastMs = this.nowMs();
    this.#next = null;
    next?.resolve();
  }
}
