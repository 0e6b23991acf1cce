/**
 * A set of ids kept in ascending order, so that a draw from it depends on what
 * is in it and never on the order in which it came.
 */
import type { Random } from "../../peer/core/clock.ts";
import { OrderedList } from "./ordered_list.ts";

export class SortedIds {
  readonly #ids = new OrderedList<string>((id) => id);

  get size(): number {
    return this.#ids.size;
  }

  add(id: string): void {
    this.#ids.put(id);
  }

  delete(id: string): void {
    this.#ids.delete(id);
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Any one of them, all equally likely; undefined when empty. */
  draw(random: Random): string | undefined {
    return this.#ids.at(Math.floor(random() * this.#ids.size));
  }

  /** Up to `count` different ones; all of them, in order, when there are no more than that. */
  sample(count: number, random: Random): string[] {
    if (this.#ids.size <= count) return [...this.#ids];
    const taken = new Set<number>();
    while (taken.size < count) taken.add(Math.floor(random() * this.#ids.size));
    return [...taken].map((index) => this.#ids.at(index)!);
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#ids[Symbol.iterator]();
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
