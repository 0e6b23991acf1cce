/**
 * Decides which members of a task are neighbours. Up to 32 members everybody
 * knows everybody; above that a random regular graph, kept incrementally: a new
 * member goes between the ends of edges that exist, which keeps every other
 * degree and cannot tear the graph apart (DESIGN section 6).
 *
 * Keeps: edges are symmetric; the graph is connected unless bans forbid it, so
 * no member is cut off from what the others hold; about 2/3 of the edges stay
 * within an idc (else a location), the rest cross.
 */
import type { Random } from "../../peer/core/clock.ts";
import type { LinkChanges } from "./link_changes.ts";
import { shuffled, SortedIds } from "./sorted_ids.ts";

/** Members up to which everybody is everybody's neighbour. */
export const MESH_MAX = 32;
/** Members at which a graph that was sparse becomes a mesh again. */
const MESH_AGAIN = 16;
/** Draws of which the member with the lowest degree is taken. */
const CHOICES = 4;
/** Neighbours beyond the plan that a member may have, as a multiple of the planned ones. */
const CROWD_FACTOR = 2;
/** Tries per edge before a member makes do with what it found. */
const TRIES_PER_EDGE = 8;

/** Where a member is; empty where unknown. */
export interface Place {
  readonly idc: string;
  readonly location: string;
}

interface Node {
  readonly id: string;
  readonly place: Place;
  readonly neighbours: Set<string>;
}

export class NeighbourGraph {
  readonly #nodes = new Map<string, Node>();
  readonly #ids = new SortedIds();
  readonly #byIdc = new Map<string, SortedIds>();
  readonly #byLocation = new Map<string, SortedIds>();
  readonly #banned = new Set<string>();
  #isMesh = true;
  /** Whether bans have kept parts apart that no edge could join. */
  #isTorn = false;

  /** @param degree neighbours that a member of a sparse graph has, at least 2 */
  constructor(
    private readonly degree: number,
    private readonly random: Random,
    private readonly changes: LinkChanges,
  ) {}

  get size(): number {
    return this.#nodes.size;
  }

  get isMesh(): boolean {
    return this.#isMesh;
  }

  has(id: string): boolean {
    return this.#nodes.has(id);
  }

  /** Neighbours of a member, ascending; none for a stranger. */
  neighboursOf(id: string): string[] {
    return [...this.#nodes.get(id)?.neighbours ?? []].sort();
  }

  isLinked(a: string, b: string): boolean {
    return this.#nodes.get(a)?.neighbours.has(b) ?? false;
  }

  add(id: string, place: Place): void {
    if (this.#nodes.has(id)) return;
    const node: Node = { id, place, neighbours: new Set() };
    this.#nodes.set(id, node);
    this.#ids.add(id);
    this.#group(this.#byIdc, place.idc)?.add(id);
    this.#group(this.#byLocation, place.location)?.add(id);
    if (!this.#isMesh) this.#insert(node);
    else if (this.#nodes.size <= MESH_MAX) this.#linkToAll(node);
    else this.#thin();
  }

  remove(id: string): void {
    const node = this.#nodes.get(id);
    if (node === undefined) return;
    const orphans = shuffled([...node.neighbours].sort(), this.random).map((other) => this.#nodes.get(other)!);
    for (const orphan of orphans) this.#unlink(node, orphan);
    this.#nodes.delete(id);
    this.#ids.delete(id);
    this.#byIdc.get(node.place.idc)?.delete(id);
    this.#byLocation.get(node.place.location)?.delete(id);
    if (this.#isMesh) return;
    if (this.#nodes.size <= MESH_AGAIN) return this.#thicken();
    for (let at = 0; at + 1 < orphans.length; at += 2) this.#linkIfFree(orphans[at]!, orphans[at + 1]!);
    for (const orphan of orphans) if (orphan.neighbours.size < this.degree - 2) this.#insert(orphan);
    if (this.#isTorn || !this.#areConnected(orphans)) this.#mend();
  }

  /** Links two members beyond the plan; false when one is unknown or crowded, both are linked, or it is banned. */
  connect(a: string, b: string): boolean {
    const [from, to] = [this.#nodes.get(a), this.#nodes.get(b)];
    if (from === undefined || to === undefined || this.#isCrowded(from) || this.#isCrowded(to)) return false;
    return this.#linkIfFree(from, to);
  }

  /** Whoever has much that others want would become the centre of the graph, and its uplink the end of the queue. */
  #isCrowded({ neighbours }: Node): boolean {
    return !this.#isMesh && neighbours.size >= CROWD_FACTOR * this.degree;
  }

  /** Takes the edge between two members away for good. */
  ban(a: string, b: string): void {
    this.#banned.add(pair(a, b));
    const [from, to] = [this.#nodes.get(a), this.#nodes.get(b)];
    if (from === undefined || to === undefined || !from.neighbours.has(b)) return;
    this.#unlink(from, to);
    if (!this.#isMesh && (this.#isTorn || !this.#areConnected([from, to]))) this.#mend();
  }

  isBanned(a: string, b: string): boolean {
    return this.#banned.has(pair(a, b));
  }

  /** Lifts all bans of a host: what it held is thrown away. */
  pardon(id: string): void {
    for (const banned of [...this.#banned]) if (banned.split("\n").includes(id)) this.#banned.delete(banned);
  }

  #linkToAll(node: Node): void {
    for (const id of this.#ids) this.#linkIfFree(node, this.#nodes.get(id)!);
  }

  /** From the mesh to the regular graph: built anew, so that what stays of the mesh is no centre. */
  #thin(): void {
    this.#isMesh = false;
    const order = shuffled(this.#ids, this.random).map((id) => this.#nodes.get(id)!);
    for (const node of order) {
      for (const other of [...node.neighbours]) this.#unlink(node, this.#nodes.get(other)!);
    }
    for (const [index, node] of order.entries()) {
      if (index <= this.degree) { for (const earlier of order.slice(0, index)) this.#linkIfFree(node, earlier); }
      else this.#insert(node, order.slice(0, index));
    }
    this.#mend();
  }

  #thicken(): void {
    this.#isMesh = true;
    for (const id of this.#ids) this.#linkToAll(this.#nodes.get(id)!);
  }

  /** Gives a member its degree: by edges to members that have too few, else by going between two that are linked. */
  #insert(node: Node, within?: readonly Node[]): void {
    const wanted = Math.min(this.degree, within?.length ?? this.#nodes.size - 1);
    for (let tries = wanted * TRIES_PER_EDGE; tries > 0 && node.neighbours.size < wanted; tries--) {
      const near = tries % 3 !== 0;
      const first = within === undefined ? this.#draw(node, near) : this.#drawOf(node, within, near);
      if (first === undefined) continue;
      if (first.neighbours.size < this.degree) {
        this.#linkIfFree(node, first);
        continue;
      }
      const second = this.#otherEnd(node, first, near);
      if (second === undefined) continue;
      this.#unlink(first, second);
      this.#linkIfFree(node, first);
      this.#linkIfFree(node, second);
    }
    if (node.neighbours.size === 0) this.#linkToAnyone(node);
  }

  #linkToAnyone(node: Node): void {
    for (const id of shuffled(this.#ids, this.random)) if (this.#linkIfFree(node, this.#nodes.get(id)!)) return;
  }

  /** A member to link to: of a few draws the one with the lowest degree. */
  #draw(node: Node, near: boolean): Node | undefined {
    const idc = this.#byIdc.get(node.place.idc);
    const location = this.#byLocation.get(node.place.location);
    const wide = location !== undefined && location.size > 1 ? location : this.#ids;
    const pool = !near ? this.#ids : idc !== undefined && idc.size > 1 ? idc : wide;
    return this.#best(node, Array.from({ length: CHOICES }, () => this.#nodes.get(pool.draw(this.random) ?? "")));
  }

  #drawOf(node: Node, within: readonly Node[], near: boolean): Node | undefined {
    const same = near ? within.filter((other) => isNear(node, other)) : [];
    const pool = same.length > 0 ? same : within;
    return this.#best(node, Array.from({ length: CHOICES }, () => pool[Math.floor(this.random() * pool.length)]));
  }

  #best(node: Node, drawn: readonly (Node | undefined)[]): Node | undefined {
    let best: Node | undefined;
    for (const other of drawn) {
      if (other === undefined || !this.#mayLink(node, other)) continue;
      if (best === undefined || other.neighbours.size < best.neighbours.size) best = other;
    }
    return best;
  }

  /** The end of an edge of `first` that `node` may go into: a near edge for a near one, a crossing one else. */
  #otherEnd(node: Node, first: Node, near: boolean): Node | undefined {
    const ends = [...first.neighbours].sort().map((id) => this.#nodes.get(id)!).filter((end) =>
      this.#mayLink(node, end)
    );
    const fitting = ends.filter((end) => near ? isNear(node, end) : !isNear(first, end));
    const pool = fitting.length > 0 ? fitting : ends;
    return pool[Math.floor(this.random() * pool.length)];
  }

  /** Joins the parts of a graph that fell apart. */
  #mend(): void {
    const seen = new Set<string>();
    let last: Node[] | undefined;
    this.#isTorn = false;
    for (const id of this.#ids) {
      if (seen.has(id)) continue;
      const part = this.#reach(this.#nodes.get(id)!, seen);
      if (last !== undefined && !this.#bridge(last, part)) this.#isTorn = true;
      last = last === undefined ? part : [...last, ...part];
    }
  }

  /**
   * Whether members that were connected still are: each searches the graph, all
   * a step at a time, until they have met. Among 10,000 members they look at
   * some hundred each, where a look at all would cost 120,000 edges.
   */
  #areConnected(nodes: readonly Node[]): boolean {
    const searchOf = new Map(nodes.map((node, index) => [node.id, index]));
    const queues = nodes.map((node) => [node]);
    const joined = nodes.map((_, index) => index);
    const root = (index: number): number => joined[index] === index ? index : root(joined[index]!);
    let left = nodes.length;
    for (let step = 0; left > 1; step++) {
      const going = new Set<number>();
      for (const [index, queue] of queues.entries()) {
        const node = queue[step];
        if (node === undefined) continue;
        for (const id of node.neighbours) {
          const other = searchOf.get(id);
          if (other === undefined) {
            searchOf.set(id, index);
            queue.push(this.#nodes.get(id)!);
          } else if (root(other) !== root(index)) {
            joined[root(other)] = root(index);
            left -= 1;
          }
        }
        going.add(index);
      }
      const roots = new Set([...going].map(root));
      if (queues.some((_, index) => !roots.has(root(index)))) return false;
    }
    return true;
  }

  #reach(start: Node, seen: Set<string>): Node[] {
    const reached = [start];
    seen.add(start.id);
    for (const node of reached) {
      for (const id of node.neighbours) {
        if (seen.has(id)) continue;
        seen.add(id);
        reached.push(this.#nodes.get(id)!);
      }
    }
    return reached;
  }

  #bridge(one: readonly Node[], other: readonly Node[]): boolean {
    const sorted = (part: readonly Node[]) => shuffled([...part].sort((a, b) => a.id < b.id ? -1 : 1), this.random);
    const ends = sorted(other);
    for (const from of sorted(one)) for (const to of ends) if (this.#linkIfFree(from, to)) return true;
    return false;
  }

  #mayLink(a: Node, b: Node): boolean {
    if (a === b || a.neighbours.has(b.id)) return false;
    return this.#banned.size === 0 || !this.#banned.has(pair(a.id, b.id));
  }

  #linkIfFree(a: Node, b: Node): boolean {
    if (!this.#mayLink(a, b)) return false;
    a.neighbours.add(b.id);
    b.neighbours.add(a.id);
    this.changes.note(a.id, b.id, true);
    this.changes.note(b.id, a.id, true);
    return true;
  }

  #unlink(a: Node, b: Node): void {
    a.neighbours.delete(b.id);
    b.neighbours.delete(a.id);
    this.changes.note(a.id, b.id, false);
    this.changes.note(b.id, a.id, false);
  }

  #group(groups: Map<string, SortedIds>, name: string): SortedIds | undefined {
    if (name === "") return undefined;
    let group = groups.get(name);
    if (group === undefined) groups.set(name, group = new SortedIds());
    return group;
  }
}

function isNear(a: Node, b: Node): boolean {
  if (a.place.idc !== "") return a.place.idc === b.place.idc;
  return a.place.location !== "" && a.place.location === b.place.location;
}

function pair(a: string, b: string): string {
  return a < b ? `${a}\n${b}` : `${b}\n${a}`;
}
