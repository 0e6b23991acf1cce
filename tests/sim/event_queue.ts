/**
 * The virtual clock: what is to happen at which time, in order of time and,
 * at the same time, in order of asking. Nothing here waits for a real clock,
 * so that a run depends on its seed alone.
 */

export class EventQueue {
  /** A binary heap over three parallel arrays: a hundred million events go through it. */
  #times = new Float64Array(1024);
  #order = new Float64Array(1024);
  readonly #work: (() => void)[] = [];
  #lastOrder = 0;
  #nowMs = 0;

  /** Virtual milliseconds since the start. */
  get nowMs(): number {
    return this.#nowMs;
  }

  get size(): number {
    return this.#work.length;
  }

  at(timeMs: number, work: () => void): void {
    if (Number.isNaN(timeMs)) throw new RangeError("Cannot plan an event at no time");
    const index = this.#work.length;
    if (index === this.#times.length) this.#grow();
    this.#work.push(work);
    this.#climb(index, Math.max(timeMs, this.#nowMs), this.#lastOrder += 1, work);
  }

  after(ms: number, work: () => void): void {
    this.at(this.#nowMs + ms, work);
  }

  /** Runs events until there are none, `endMs` is passed, or `isDone` says so. */
  run(endMs: number, isDone: () => boolean): void {
    while (this.#work.length > 0 && !isDone() && this.#times[0]! <= endMs) {
      this.#nowMs = this.#times[0]!;
      this.#take()();
    }
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

  #grow(): void {
    const grown = (from: Float64Array<ArrayBuffer>) => {
      const to = new Float64Array(from.length * 2);
      to.set(from);
      return to;
    };
    this.#times = grown(this.#times);
    this.#order = grown(this.#order);
  }
}
