/**
 * Decides which members of a task are neighbours. Up to 32 members everybody
 * knows everybody; above that each idc has a graph of its own (`IdcGraph`),
 * and a few carriers of each join them (`Border`).
 *
 * Keeps: edges are symmetric; the graph is connected unless bans forbid it, so
 * no member is cut off from what the others hold.
 */
import type { Random } from "../../peer/core/clock.ts";
import { Border, type Fitness } from "./border.ts";
import { IdcGraph, MESH_AGAIN, MESH_MAX } from "./idc_graph.ts";
import type { LinkChanges } from "./link_changes.ts";
import { Links, neighboursOf, type Node, type Place } from "./links.ts";
import { shuffled, type SortedIds } from "./sorted_ids.ts";

/** Neighbours beyond the plan that a member may have, as a multiple of the planned ones. */
const CROWD_FACTOR = 2;

export class NeighbourGraph {
  readonly #links: Links;
  readonly #idcs = new Map<string, IdcGraph>();
  readonly #border: Border;
  /** Whether bans have kept parts apart that no edge could join. */
  #isTorn = false;

  /** @param degree neighbours that a member of a sparse graph has, at least 2 */
  constructor(private readonly degree: number, private readonly random: Random, changes: LinkChanges) {
    this.#links = new Links(changes);
    this.#border = new Border(this.#links, random, changes);
  }

  get size(): number {
    return this.#links.nodes.size;
  }

  /** Whether everybody knows everybody. */
  get isMesh(): boolean {
    return this.#border.isOpen;
  }

  has(id: string): boolean {
    return this.#links.nodes.has(id);
  }

  /** Neighbours of a member, ascending; none for a stranger. */
  neighboursOf(id: string): string[] {
    const node = this.#links.nodes.get(id);
    return node === undefined ? [] : [...neighboursOf(node)].sort();
  }

  isLinked(a: string, b: string): boolean {
    const [from, to] = [this.#links.nodes.get(a), this.#links.nodes.get(b)];
    return from !== undefined && to !== undefined && this.#links.areLinked(from, to);
  }

  /** Who brings pieces over to the member's idc, ascending; null where everybody may. */
  carriersOf(id: string): readonly string[] | null {
    const node = this.#links.nodes.get(id);
    return node === undefined ? null : this.#border.carriersOf(node.place.idc);
  }

  /** Whether the member may know hosts of other idcs. */
  mayCross(id: string): boolean {
    const node = this.#links.nodes.get(id);
    return node === undefined || this.#border.mayCross(node);
  }

  /** Members whose reads from the origin other idcs see at once; null where that is so of all. */
  get entries(): SortedIds | null {
    return this.#border.entries;
  }

  /** @param fitness how well it suits as a carrier */
  add(id: string, place: Place, fitness: Fitness = 1): void {
    if (this.has(id)) return;
    const node = this.#links.add(id, place);
    let idc = this.#idcs.get(place.idc);
    if (idc === undefined) this.#idcs.set(place.idc, idc = new IdcGraph(this.#links, this.degree, this.random));
    const wasMesh = this.isMesh && idc.isMesh;
    idc.add(node);
    this.#border.add(node, fitness);
    if (this.isMesh && this.size > MESH_MAX) this.#border.close();
    const loosened = this.#border.takeLoosened();
    if (wasMesh !== (this.isMesh && idc.isMesh) || !this.#links.areConnected(loosened)) this.#mend();
  }

  /** The member suits better or worse as a carrier than it did. */
  setFitness(id: string, fitness: Fitness): void {
    const node = this.#links.nodes.get(id);
    if (node === undefined) return;
    this.#border.setFitness(node, fitness);
    if (!this.#links.areConnected(this.#border.takeLoosened())) this.#mend();
  }

  remove(id: string): void {
    const node = this.#links.nodes.get(id);
    if (node === undefined) return;
    const near = shuffled([...node.near].sort(), this.random).map((other) => this.#links.get(other));
    const far = [...node.far].sort().map((other) => this.#links.get(other));
    for (const orphan of [...near, ...far]) this.#links.unlink(node, orphan);
    this.#links.nodes.delete(id);
    const idc = this.#idcs.get(node.place.idc)!;
    idc.remove(node, near);
    if (idc.ids.size === 0) this.#idcs.delete(node.place.idc);
    this.#border.remove(node, far);
    if (this.isMesh) return;
    if (this.size <= MESH_AGAIN) return this.#border.open();
    const loosened = new Set([...(idc.isWhole ? near.slice(0, 1) : near), ...far, ...this.#border.takeLoosened()]);
    if (this.#isTorn || !this.#links.areConnected([...loosened])) this.#mend();
  }

  /**
   * Links two members beyond the plan; false when one is unknown or crowded, both
   * are linked, or it is banned.
   *
   * @param options.anywhere also two that are of different idcs and do not carry
   */
  connect(a: string, b: string, { anywhere = false } = {}): boolean {
    const [from, to] = [this.#links.nodes.get(a), this.#links.nodes.get(b)];
    if (from === undefined || to === undefined) return false;
    const isFar = from.place.idc !== to.place.idc;
    if (this.#isCrowded(isFar ? from.far : from.near) || this.#isCrowded(isFar ? to.far : to.near)) return false;
    if (isFar && !anywhere && !(this.#border.mayCross(from) && this.#border.mayCross(to))) return false;
    return this.#links.link(from, to);
  }

  /** Whoever has much that others want would become the centre of the graph, and its uplink the end of the queue. */
  #isCrowded({ size }: ReadonlySet<string>): boolean {
    return !this.isMesh && size >= CROWD_FACTOR * this.degree;
  }

  /** Takes the edge between two members away for good. */
  ban(a: string, b: string): void {
    this.#links.ban(a, b);
    const [from, to] = [this.#links.nodes.get(a), this.#links.nodes.get(b)];
    if (from === undefined || to === undefined || !this.#links.areLinked(from, to)) return;
    this.#links.unlink(from, to);
    this.#idcs.get(from.place.idc)?.parted(from, to);
    if (!this.isMesh && (this.#isTorn || !this.#links.areConnected([from, to]))) this.#mend();
  }

  isBanned(a: string, b: string): boolean {
    return this.#links.isBanned(a, b);
  }

  /** Lifts all bans of a host: what it held is thrown away. */
  pardon(id: string): void {
    this.#links.pardon(id);
  }

  /** Joins the parts of a graph that fell apart. */
  #mend(): void {
    const seen = new Set<string>();
    let last: Node[] | undefined;
    this.#isTorn = false;
    for (const id of [...this.#links.nodes.keys()].sort()) {
      if (seen.has(id)) continue;
      const part = this.#links.reach(this.#links.get(id), seen);
      if (last !== undefined && !this.#bridge(last, part)) this.#isTorn = true;
      last = last === undefined ? part : [...last, ...part];
    }
  }

  /** Within an idc where that is possible. */
  #bridge(one: readonly Node[], other: readonly Node[]): boolean {
    const sorted = (part: readonly Node[]) => shuffled([...part].sort((a, b) => a.id < b.id ? -1 : 1), this.random);
    const ends = sorted(other);
    for (const isNear of [true, false]) {
      for (const from of sorted(one)) {
        for (const to of ends) {
          if ((from.place.idc === to.place.idc) === isNear && this.#links.link(from, to)) return true;
        }
      }
    }
    return false;
  }
}
