/**
 * The virtual clock: what is to happen at which time, in order of time and,
 * at the same time, in order of asking. Nothing here waits for a real clock,
 * so that a run depends on its seed alone.
 *
 * Most events come a fixed delay after they were asked for. Those of one delay
 * come in the order of asking, so that they need a queue (`Lane`) and no heap: with
 * 100,000 hosts a heap holds a million events, and each step in it misses the cache.
 */

type Work = () => void;

export class EventQueue {
  /** A binary heap over three parallel arrays: a hundred million events go through it. */
  #times = new Float64Array(1024);
  #order = new Float64Array(1024);
  readonly #work: Work[] = [];
  readonly #lanes: Lane[] = [];
  #lastOrder = 0;
  #nowMs = 0;

  /** Virtual milliseconds since the start. */
  get nowMs(): number {
    return this.#nowMs;
  }

  get size(): number {
    return this.#lanes.reduce((sum, lane) => sum + lane.size, this.#work.length);
  }

  at(timeMs: number, work: Work): void {
    if (Number.isNaN(timeMs)) throw new RangeError("Cannot plan an event at no time");
    const index = this.#work.length;
    if (index === this.#times.length) [this.#times, this.#order] = [doubled(this.#times), doubled(this.#order)];
    this.#work.push(work);
    this.#climb(index, Math.max(timeMs, this.#nowMs), this.#lastOrder += 1, work);
  }

  after(ms: number, work: Work): void {
    this.at(this.#nowMs + ms, work);
  }

  /** As `after`, for a delay that many events have: the answer plans one, at a fraction of the cost. */
  lane(ms: number): (work: Work) => void {
    const lane = new Lane();
    this.#lanes.push(lane);
    return (work) => lane.push(this.#nowMs + ms, this.#lastOrder += 1, work);
  }

  /** Runs events until there are none, `endMs` is passed, or `isDone` says so. */
  run(endMs: number, isDone: () => boolean): void {
    while (!isDone()) {
      const lane = this.#nextLane();
      const timeMs = lane?.timeMs ?? (this.#work.length > 0 ? this.#times[0]! : Infinity);
      if (timeMs > endMs || timeMs === Infinity) return;
      this.#nowMs = timeMs;
      const work = lane === null ? this.#take() : lane.take();
      work();
    }
  }

  /** The lane whose first event comes before all others; null when that is the heap's. */
  #nextLane(): Lane | null {
    let best: Lane | null = null;
    let timeMs = this.#work.length > 0 ? this.#times[0]! : Infinity;
    let order = this.#work.length > 0 ? this.#order[0]! : Infinity;
    for (const lane of this.#lanes) {
      if (lane.timeMs > timeMs || (lane.timeMs === timeMs && lane.order >= order)) continue;
      [best, timeMs, order] = [lane, lane.timeMs, lane.order];
    }
    return best;
  }

  #take(): () => void {
    const first = this.#work[0]!;
    const last = this.#work.length - 1;
    const [time, order, work] = [this.#times[last]!, this.#order[last]!, this.#work.pop()!];
    if (last > 0) this.#settle(time, order, work);
    return first;
  }

  /** Moves a new entry from the end to its place. */
  #climb(start: number, time: number, order: number, work: () => void): void {
    let index = start;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(time, order, parent)) break;
      this.#move(parent, index);
      index = parent;
    }
    this.#put(index, time, order, work);
  }

  /** Moves the entry that was last from the top to its place. */
  #settle(time: number, order: number, work: () => void): void {
    const size = this.#work.length;
    let index = 0;
    for (let child = 1; child < size; child = 2 * index + 1) {
      if (child + 1 < size && this.#isBefore(this.#times[child + 1]!, this.#order[child + 1]!, child)) child += 1;
      if (this.#isBefore(time, order, child)) break;
      this.#move(child, index);
      index = child;
    }
    this.#put(index, time, order, work);
  }

  #isBefore(time: number, order: number, index: number): boolean {
    const other = this.#times[index]!;
    return time < other || (time === other && order < this.#order[index]!);
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#times[from]!, this.#order[from]!, this.#work[from]!);
  }

  #put(index: number, time: number, order: number, work: () => void): void {
    this.#times[index] = time;
    this.#order[index] = order;
    this.#work[index] = work;
  }
}

/** Events that come in the order in which they were planned: a ring that grows. */
class Lane {
  #times = new Float64Array(1024);
  #orders = new Float64Array(1024);
  #work: (Work | undefined)[] = new Array(1024).fill(undefined);
  #first = 0;
  size = 0;
  /** Of the first event; infinite when there is none. */
  timeMs = Infinity;
  order = Infinity;

  push(timeMs: number, order: number, work: Work): void {
    if (this.size === this.#times.length) this.#grow();
    const index = (this.#first + this.size) & (this.#times.length - 1);
    this.#times[index] = timeMs;
    this.#orders[index] = order;
    this.#work[index] = work;
    this.size += 1;
    if (this.size === 1) [this.timeMs, this.order] = [timeMs, order];
  }

  take(): Work {
    const work = this.#work[this.#first]!;
    this.#work[this.#first] = undefined;
    this.#first = (this.#first + 1) & (this.#times.length - 1);
    this.size -= 1;
    this.timeMs = this.size === 0 ? Infinity : this.#times[this.#first]!;
    this.order = this.size === 0 ? Infinity : this.#orders[this.#first]!;
    return work;
  }

  #grow(): void {
    const turned = [...this.#work.slice(this.#first), ...this.#work.slice(0, this.#first)];
    this.#work = [...turned, ...new Array(turned.length).fill(undefined)];
    this.#times = doubled(this.#times, this.#first);
    this.#orders = doubled(this.#orders, this.#first);
    this.#first = 0;
  }
}

/** A copy with as much room again, turned so that `first` is at the start. */
function doubled(from: Float64Array<ArrayBuffer>, first = 0): Float64Array<ArrayBuffer> {
  const to = new Float64Array(from.length * 2);
  to.set(from.subarray(first));
  to.set(from.subarray(0, first), from.length - first);
  return to;
}
