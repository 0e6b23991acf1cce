/**
 * Items in ascending order of their ids, in chunks: to put one in or take one
 * out moves a chunk and not the whole. In one array that was a third of what
 * it took 100,000 members to leave (tests/sim/scale.ts).
 *
 * Keeps: what it holds says what it answers; how the chunks came about does not.
 */

/** A chunk of more is split: it is short to move, and 100,000 items have a hundred of them at most to walk along. */
const CHUNK_MAX = 2_048;

export class OrderedList<T> {
  /** None is empty. */
  readonly #chunks: T[][] = [];
  #size = 0;

  /** @param idOf never changes for an item */
  constructor(private readonly idOf: (item: T) => string) {}

  get size(): number {
    return this.#size;
  }

  /** Puts an item in, in place of the one that has its id. @returns whether there was none */
  put(item: T): boolean {
    const id = this.idOf(item);
    const [index, at] = this.#locate(id);
    const chunk = this.#chunks[index];
    if (chunk === undefined) this.#chunks.push([item]);
    else if (at < chunk.length && this.idOf(chunk[at]!) === id) {
      chunk[at] = item;
      return false;
    } else {
      chunk.splice(at, 0, item);
      if (chunk.length > CHUNK_MAX) this.#chunks.splice(index + 1, 0, chunk.splice(CHUNK_MAX >> 1));
    }
    this.#size += 1;
    return true;
  }

  /** @returns whether there was one */
  delete(id: string): boolean {
    const [index, at] = this.#locate(id);
    const chunk = this.#chunks[index];
    if (chunk === undefined || at === chunk.length || this.idOf(chunk[at]!) !== id) return false;
    chunk.splice(at, 1);
    if (chunk.length === 0) this.#chunks.splice(index, 1);
    this.#size -= 1;
    return true;
  }

  has(id: string): boolean {
    const [index, at] = this.#locate(id);
    const item = this.#chunks[index]?.[at];
    return item !== undefined && this.idOf(item) === id;
  }

  /** The item at a place in the order, from 0; undefined beyond the end. */
  at(place: number): T | undefined {
    let left = place;
    for (const chunk of this.#chunks) {
      if (left < chunk.length) return chunk[left];
      left -= chunk.length;
    }
    return undefined;
  }

  clear(): void {
    this.#chunks.length = 0;
    this.#size = 0;
  }

  filter(isWanted: (item: T) => boolean): T[] {
    const result: T[] = [];
    for (const chunk of this.#chunks) for (const item of chunk) if (isWanted(item)) result.push(item);
    return result;
  }

  some(isWanted: (item: T) => boolean): boolean {
    return this.#chunks.some((chunk) => chunk.some(isWanted));
  }

  *[Symbol.iterator](): Generator<T, void> {
    for (const chunk of this.#chunks) for (const item of chunk) yield item;
  }

  /** The chunk that an id belongs into, and its place there. */
  #locate(id: string): [index: number, at: number] {
    const index = Math.max(0, lowest(this.#chunks.length, (middle) => this.idOf(this.#chunks[middle]![0]!) > id) - 1);
    const chunk = this.#chunks[index] ?? [];
    return [index, lowest(chunk.length, (middle) => this.idOf(chunk[middle]!) >= id)];
  }
}

/** The lowest of the numbers below `end` for which it is true, as it is for all above; `end` when for none. */
function lowest(end: number, isTrue: (middle: number) => boolean): number {
  let [low, high] = [0, end];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isTrue(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
