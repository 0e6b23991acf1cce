/**
 * The members of a task by host id, and in ascending order of their ids: what
 * is decided about them must not depend on who came first, and nobody sorts
 * 100,000 of them for each lease and each flush.
 */
import type { Member } from "./resource.ts";

export class Roster extends Map<string, Member> {
  readonly #ordered: Member[] = [];

  /** Ascending by id; never a copy. */
  get ordered(): readonly Member[] {
    return this.#ordered;
  }

  override set(id: string, member: Member): this {
    const at = this.#position(id);
    this.#ordered.splice(at, this.has(id) ? 1 : 0, member);
    return super.set(id, member);
  }

  override delete(id: string): boolean {
    if (this.has(id)) this.#ordered.splice(this.#position(id), 1);
    return super.delete(id);
  }

  override clear(): void {
    this.#ordered.length = 0;
    super.clear();
  }

  #position(id: string): number {
    let low = 0;
    let high = this.#ordered.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ordered[middle]!.hostId < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
