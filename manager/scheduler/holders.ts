/**
 * Decides which idle holders a member is given: hosts that hold the whole task
 * without taking part in it. They serve and need not hear of it. Seeds first,
 * then the same idc and location, spread by chance, and each to so many members
 * at most that it is not swamped.
 */
import type { Random } from "../../peer/core/clock.ts";
import type { LinkChanges } from "./link_changes.ts";
import type { Place } from "./links.ts";
import { SortedIds } from "./sorted_ids.ts";

/** Idle holders that a joiner is given, and that a member keeps of neighbours that left. */
const GIVEN_MAX = 4;
const KEPT_MAX = 32;
/** Members that one idle holder is given to; the others have its pieces from them. */
const CHILDREN_MAX = 64;
/** Holders looked at for one joiner. */
const SAMPLE = 16;

interface Holder extends Place {
  readonly isSeed: boolean;
  readonly children: Set<string>;
}

export class IdleHolders {
  readonly #holders = new Map<string, Holder>();
  readonly #seedIds = new SortedIds();
  readonly #otherIds = new SortedIds();
  /** Member → idle holders that it knows. */
  readonly #known = new Map<string, Set<string>>();

  constructor(private readonly random: Random, private readonly changes: LinkChanges) {}

  get size(): number {
    return this.#holders.size;
  }

  has(id: string): boolean {
    return this.#holders.has(id);
  }

  /** Idle holders that a member knows, ascending. */
  knownTo(memberId: string): string[] {
    return [...this.#known.get(memberId) ?? []].sort();
  }

  add(id: string, { idc, location, isSeed }: Place & { isSeed: boolean }): void {
    if (this.#holders.has(id)) return;
    this.#holders.set(id, { idc, location, isSeed, children: new Set() });
    (isSeed ? this.#seedIds : this.#otherIds).add(id);
  }

  /** It holds the task no longer, or takes part now. */
  remove(id: string): void {
    for (const memberId of this.#holders.get(id)?.children ?? []) this.unlink(memberId, id);
    this.#holders.delete(id);
    this.#seedIds.delete(id);
    this.#otherIds.delete(id);
  }

  /** A member is none any more. */
  forgetMember(memberId: string): void {
    for (const id of this.#known.get(memberId) ?? []) this.#holders.get(id)?.children.delete(memberId);
    this.#known.delete(memberId);
  }

  /** Gives a member so many idle holders that it knows four, where there are. @returns how many it gained */
  offer(memberId: string, place: Place, isBanned: (holderId: string) => boolean): number {
    const known = this.#known.get(memberId)?.size ?? 0;
    if (known >= GIVEN_MAX || this.#holders.size === 0) return 0;
    const candidates = [...this.#seedIds.sample(SAMPLE, this.random), ...this.#otherIds.sample(SAMPLE, this.random)]
      .map((id) => ({ id, rank: this.#rank(id, place), chance: this.random() }))
      .filter(({ id, rank }) => rank !== null && !isBanned(id) && !this.#known.get(memberId)?.has(id))
      .sort((a, b) => b.rank! - a.rank! || a.chance - b.chance);
    const given = candidates.slice(0, GIVEN_MAX - known);
    for (const { id } of given) this.link(memberId, id);
    return given.length;
  }

  /** A neighbour that left stays one, as long as the member has not too many of them. */
  link(memberId: string, id: string): void {
    const holder = this.#holders.get(id);
    let known = this.#known.get(memberId);
    if (known === undefined) this.#known.set(memberId, known = new Set());
    if (holder === undefined || known.has(id) || known.size >= KEPT_MAX) return;
    known.add(id);
    holder.children.add(memberId);
    this.changes.note(memberId, id, true);
  }

  unlink(memberId: string, id: string): void {
    if (!this.#known.get(memberId)?.delete(id)) return;
    this.#holders.get(id)?.children.delete(memberId);
    this.changes.note(memberId, id, false);
  }

  /** How well a holder suits, higher first; null when it has too many children. */
  #rank(id: string, { idc, location }: Place): number | null {
    const holder = this.#holders.get(id)!;
    if (holder.children.size >= CHILDREN_MAX) return null;
    const isNear = idc !== "" && holder.idc === idc;
    const isInPlace = location !== "" && holder.location === location;
    return (holder.isSeed ? 4 : 0) + (isNear ? 2 : 0) + (isInPlace ? 1 : 0);
  }
}
