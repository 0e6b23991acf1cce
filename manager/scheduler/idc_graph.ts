/**
 * Decides which members of one idc are neighbours. Up to 32 everybody knows
 * everybody; above that a random regular graph, kept incrementally: a new
 * member goes between the ends of edges that exist, which keeps every other
 * degree and cannot tear the graph apart (DESIGN section 6).
 *
 * Two edges of each member are those of a ring through all of them (Law and
 * Siu, INFOCOM 2003, have several): as long as no ban makes a gap in it the graph
 * is in one part, whoever leaves, and nobody need search it. Searches were nearly
 * half of what it took 100,000 members to leave (tests/sim/scale.ts).
 *
 * Keeps: about 2/3 of the edges of a sparse graph stay within a location.
 */
import type { Random } from "../../peer/core/clock.ts";
import type { Links, Node } from "./links.ts";
import { shuffled, SortedIds } from "./sorted_ids.ts";

/** Members up to which everybody is everybody's neighbour. */
export const MESH_MAX = 32;
/** Members at which a graph that was sparse becomes a mesh again. */
export const MESH_AGAIN = 16;
/** Draws of which the member with the lowest degree is taken. */
const CHOICES = 4;
/** Tries per edge before a member makes do with what it found. */
const TRIES_PER_EDGE = 8;

export class IdcGraph {
  readonly #ids = new SortedIds();
  readonly #byLocation = new Map<string, SortedIds>();
  /** Members of the ring who do not know the next one, because of a ban. */
  readonly #gaps = new Set<string>();
  #isMesh = true;

  /** @param degree neighbours that a member of a sparse graph has, at least 2 */
  constructor(private readonly links: Links, private readonly degree: number, private readonly random: Random) {}

  get ids(): SortedIds {
    return this.#ids;
  }

  get isMesh(): boolean {
    return this.#isMesh;
  }

  /** Whether its ring joins all members, so that no part can be cut off from another. */
  get isWhole(): boolean {
    return !this.#isMesh && this.#gaps.size === 0;
  }

  add(node: Node): void {
    this.#ids.add(node.id);
    const { location } = node.place;
    if (location !== "") {
      let group = this.#byLocation.get(location);
      if (group === undefined) this.#byLocation.set(location, group = new SortedIds());
      group.add(node.id);
    }
    if (!this.#isMesh) {
      this.#enterRing(node);
      this.#insert(node);
    } else if (this.#ids.size <= MESH_MAX) this.#linkToAll(node);
    else this.#thin();
  }

  /** @param orphans the neighbours that it had, in random order; they are unlinked from it */
  remove(node: Node, orphans: readonly Node[]): void {
    this.#ids.delete(node.id);
    this.#byLocation.get(node.place.location)?.delete(node.id);
    if (this.#isMesh) return;
    if (this.#ids.size <= MESH_AGAIN) return this.#thicken();
    const [before, after] = this.#leaveRing(node);
    const others = orphans.filter((orphan) => orphan !== before && orphan !== after);
    for (let at = 0; at + 1 < others.length; at += 2) this.links.link(others[at]!, others[at + 1]!);
    for (const orphan of orphans) if (orphan.near.size < this.degree - 2) this.#insert(orphan);
  }

  /** A ban has taken the edge between two members away. */
  parted(a: Node, b: Node): void {
    for (const [node, other] of [[a, b], [b, a]] as const) if (node.after === other) this.#gaps.add(node.id);
  }

  #linkToAll(node: Node): void {
    for (const id of this.#ids) this.links.link(node, this.links.get(id));
  }

  /** From the mesh to the regular graph: built anew, so that what stays of the mesh is no centre. */
  #thin(): void {
    this.#isMesh = false;
    const order = shuffled(this.#ids, this.random).map((id) => this.links.get(id));
    for (const node of order) {
      for (const id of [...node.near]) {
        const other = this.links.get(id);
        if (!(node.carries && other.carries)) this.links.unlink(node, other);
      }
    }
    for (const [index, node] of order.entries()) this.#follow(node, order[(index + 1) % order.length]!);
    for (const [index, node] of order.entries()) {
      if (index <= this.degree) { for (const earlier of order.slice(0, index)) this.links.link(node, earlier); }
      else this.#insert(node, order.slice(0, index));
    }
  }

  #thicken(): void {
    this.#isMesh = true;
    this.#gaps.clear();
    for (const id of this.#ids) {
      const node = this.links.get(id);
      node.before = node.after = null;
      this.#linkToAll(node);
    }
  }

  /** Goes between a member of its location, if there is one, and the next in the ring. */
  #enterRing(node: Node): void {
    const before = this.#draw(node, true) ?? this.#other(node);
    const after = before.after!;
    this.#follow(before, node);
    this.#follow(node, after);
    const isBetween = this.links.areLinked(before, node) && this.links.areLinked(node, after);
    if (isBetween && !(before.carries && after.carries)) this.links.unlink(before, after);
  }

  #leaveRing(node: Node): [before: Node, after: Node] {
    const [before, after] = [node.before!, node.after!];
    this.#gaps.delete(node.id);
    this.#follow(before, after);
    return [before, after];
  }

  /** From now on `after` is the next one in the ring. */
  #follow(before: Node, after: Node): void {
    before.after = after;
    after.before = before;
    this.links.link(before, after);
    if (this.links.areLinked(before, after)) this.#gaps.delete(before.id);
    else this.#gaps.add(before.id);
  }

  /** Any member of the idc but this one. */
  #other(node: Node): Node {
    for (const id of this.#ids) if (id !== node.id) return this.links.get(id);
    throw new TypeError(`Cannot find another member than ${node.id}`);
  }

  /** Gives a member its degree: by edges to members that have too few, else by going between two that are linked. */
  #insert(node: Node, within?: readonly Node[]): void {
    const wanted = Math.min(this.degree, within?.length ?? this.#ids.size - 1);
    for (let tries = wanted * TRIES_PER_EDGE; tries > 0 && node.near.size < wanted; tries--) {
      const isLocal = tries % 3 !== 0;
      const first = within === undefined ? this.#draw(node, isLocal) : this.#drawOf(node, within, isLocal);
      if (first === undefined) continue;
      if (first.near.size < this.degree) {
        this.links.link(node, first);
        continue;
      }
      const second = this.#otherEnd(node, first, isLocal);
      if (second === undefined) continue;
      this.links.unlink(first, second);
      this.links.link(node, first);
      this.links.link(node, second);
    }
    if (node.near.size === 0) this.#linkToAnyone(node);
  }

  #linkToAnyone(node: Node): void {
    for (const id of shuffled(this.#ids, this.random)) if (this.links.link(node, this.links.get(id))) return;
  }

  /** A member to link to: of a few draws the one with the lowest degree. */
  #draw(node: Node, isLocal: boolean): Node | undefined {
    const local = this.#byLocation.get(node.place.location);
    const pool = isLocal && local !== undefined && local.size > 1 ? local : this.#ids;
    return this.#best(node, Array.from({ length: CHOICES }, () => this.links.nodes.get(pool.draw(this.random) ?? "")));
  }

  #drawOf(node: Node, within: readonly Node[], isLocal: boolean): Node | undefined {
    const same = isLocal ? within.filter((other) => isNear(node, other)) : [];
    const pool = same.length > 0 ? same : within;
    return this.#best(node, Array.from({ length: CHOICES }, () => pool[Math.floor(this.random() * pool.length)]));
  }

  #best(node: Node, drawn: readonly (Node | undefined)[]): Node | undefined {
    let best: Node | undefined;
    for (const other of drawn) {
      if (other === undefined || !this.links.mayLink(node, other)) continue;
      if (best === undefined || other.near.size < best.near.size) best = other;
    }
    return best;
  }

  /**
   * The end of an edge of `first` that `node` may go into, which is none of the ring's: a local edge for a local one,
   * one that goes farther else.
   */
  #otherEnd(node: Node, first: Node, isLocal: boolean): Node | undefined {
    const ends = [...first.near].sort().map((id) => this.links.get(id)).filter((end) =>
      this.links.mayLink(node, end) && !(first.carries && end.carries) && first.after !== end && first.before !== end
    );
    const fitting = ends.filter((end) => isLocal ? isNear(node, end) : !isNear(first, end));
    const pool = fitting.length > 0 ? fitting : ends;
    return pool[Math.floor(this.random() * pool.length)];
  }
}

function isNear({ place: a }: Node, { place: b }: Node): boolean {
  return a.location !== "" && a.location === b.location;
}
