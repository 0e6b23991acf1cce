/**
 * Decides how many pieces all tasks of this host together ask of neighbours,
 * and remembers of each neighbour what all of them found: how many requests it
 * has, and until when it is left alone. A neighbour's slots, like this host's
 * link, are there once, however many contents want them. Pure.
 *
 * Keeps: no more requests than `RequestDepth` says, but one for each task;
 * tasks that found it full are woken in the order in which they came.
 *
 * 16 hosts that fetched eight contents at once, with a depth for each: four of
 * five requests were turned away, and the cores were busy with that
 * (tests/bench, scenario J: 92 s; 34 CPU seconds per GB).
 */
import { RequestDepth } from "./request_depth.ts";

/** One neighbour, as all tasks see it. */
export interface NeighbourLoad {
  /** Requests under way. */
  inFlight: number;
  /** Requests in a row that it failed. */
  failures: number;
  /** Not to be asked before this. */
  pausedUntilMs: number;
}

export class RequestGate {
  readonly depth: RequestDepth;
  readonly #neighbours = new Map<string, { load: NeighbourLoad; users: number }>();
  readonly #waiting = new Set<() => void>();
  #inFlight = 0;

  /** @param max requests at once, at least 1 */
  constructor(max: number) {
    this.depth = new RequestDepth(max);
  }

  /** A task has this neighbour from now on; it gives it back by `release`. */
  neighbour(hostId: string): NeighbourLoad {
    const known = this.#neighbours.get(hostId) ?? { load: { inFlight: 0, failures: 0, pausedUntilMs: 0 }, users: 0 };
    known.users += 1;
    this.#neighbours.set(hostId, known);
    return known.load;
  }

  /** A task has this neighbour no more. */
  release(hostId: string): void {
    const known = this.#neighbours.get(hostId);
    if (known === undefined) return;
    known.users -= 1;
    if (known.users === 0) this.#neighbours.delete(hostId);
  }

  /** Whether any task waits for a piece that it has asked for. */
  get isBusy(): boolean {
    return this.#inFlight > 0;
  }

  /** Whether a task that has so many requests under way may start another. */
  isOpenTo(own: number): boolean {
    return own === 0 || this.#inFlight < this.depth.count;
  }

  /** A request begins. */
  started(): void {
    this.#inFlight += 1;
  }

  /** A request has ended: whoever waits looks again. */
  ended(): void {
    this.#inFlight -= 1;
    this.wake();
  }

  /** Calls `look` once, when a request of any task has ended. */
  wait(look: () => void): void {
    this.#waiting.add(look);
  }

  /** The task waits no more. */
  forget(look: () => void): void {
    this.#waiting.delete(look);
  }

  /** Something is free at a neighbour. */
  wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const look of waiting) look();
  }
}
