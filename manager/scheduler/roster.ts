/**
 * The members of a task by host id, and in ascending order of their ids: what
 * is decided about them must not depend on who came first, and nobody sorts
 * 100,000 of them for each lease and each flush.
 */
import { OrderedList } from "./ordered_list.ts";
import type { Member } from "./resource.ts";

/** What may be asked of members in order. */
export type OrderedMembers = Pick<OrderedList<Member>, "size" | "filter" | "some" | typeof Symbol.iterator>;

export class Roster extends Map<string, Member> {
  readonly #ordered = new OrderedList<Member>(({ hostId }) => hostId);

  /** Ascending by id; never a copy. */
  get ordered(): OrderedMembers {
    return this.#ordered;
  }

  override set(id: string, member: Member): this {
    this.#ordered.put(member);
    return super.set(id, member);
  }

  override delete(id: string): boolean {
    return super.delete(id) && this.#ordered.delete(id);
  }

  override clear(): void {
    this.#ordered.clear();
    super.clear();
  }
}
