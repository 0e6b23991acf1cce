/**
 * A set of ids kept in ascending order, so that a draw from it depends on what
 * is in it and never on the order in which it came.
 */
import type { Random } from "../../peer/core/clock.ts";

export class SortedIds {
  readonly #ids: string[] = [];

  get size(): number {
    return this.#ids.length;
  }

  add(id: string): void {
    const at = this.#position(id);
    if (this.#ids[at] !== id) this.#ids.splice(at, 0, id);
  }

  delete(id: string): void {
    const at = this.#position(id);
    if (this.#ids[at] === id) this.#ids.splice(at, 1);
  }

  has(id: string): boolean {
    return this.#ids[this.#position(id)] === id;
  }

  /** Any one of them, all equally likely; undefined when empty. */
  draw(random: Random): string | undefined {
    return this.#ids[Math.floor(random() * this.#ids.length)];
  }

  /** Up to `count` different ones; all of them, in order, when there are no more than that. */
  sample(count: number, random: Random): string[] {
    if (this.#ids.length <= count) return [...this.#ids];
    const taken = new Set<number>();
    while (taken.size < count) taken.add(Math.floor(random() * this.#ids.length));
    return [...taken].map((index) => this.#ids[index]!);
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#ids[Symbol.iterator]();
  }

  #position(id: string): number {
    let low = 0;
    let high = this.#ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ids[middle]! < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** A copy in random order (Fisher and Yates). */
export function shuffled<T>(items: Iterable<T>, random: Random): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [result[last], result[other]] = [result[other]!, result[last]!];
  }
  return result;
}
