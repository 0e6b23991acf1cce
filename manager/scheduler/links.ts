/**
 * The members of one task and the edges between them, as plain state: who is
 * linked with whom, near (the same idc) or far, and who never may be. Decides
 * nothing; tells `LinkChanges` of each edge.
 *
 * Keeps: edges are symmetric, never to oneself, never against a ban.
 */
import type { LinkChanges } from "./link_changes.ts";

/** Where a member is; empty where unknown. */
export interface Place {
  readonly idc: string;
  readonly location: string;
}

export interface Node {
  readonly id: string;
  readonly place: Place;
  /** Neighbours of the same idc (or of none, as this one), and all others. */
  readonly near: Set<string>;
  readonly far: Set<string>;
  /** Whether it brings pieces over for its idc: edges between two that do are not for others to go into. */
  carries: boolean;
  /** Who stands before and after it in the ring of its idc; null in a mesh. */
  before: Node | null;
  after: Node | null;
}

export class Links {
  readonly nodes = new Map<string, Node>();
  readonly #banned = new Set<string>();

  constructor(private readonly changes: LinkChanges) {}

  add(id: string, place: Place): Node {
    const node: Node = { id, place, near: new Set(), far: new Set(), carries: false, before: null, after: null };
    this.nodes.set(id, node);
    return node;
  }

  /** @throws {TypeError} if it is no member */
  get(id: string): Node {
    const node = this.nodes.get(id);
    if (node === undefined) throw new TypeError(`Cannot find member ${id}`);
    return node;
  }

  areLinked(a: Node, b: Node): boolean {
    return a.near.has(b.id) || a.far.has(b.id);
  }

  mayLink(a: Node, b: Node): boolean {
    if (a === b || this.areLinked(a, b)) return false;
    return this.#banned.size === 0 || !this.#banned.has(pair(a.id, b.id));
  }

  /** @returns whether there is an edge that was none */
  link(a: Node, b: Node): boolean {
    if (!this.mayLink(a, b)) return false;
    setOf(a, b).add(b.id);
    setOf(b, a).add(a.id);
    this.changes.note(a.id, b.id, true);
    this.changes.note(b.id, a.id, true);
    return true;
  }

  unlink(a: Node, b: Node): void {
    if (!setOf(a, b).delete(b.id)) return;
    setOf(b, a).delete(a.id);
    this.changes.note(a.id, b.id, false);
    this.changes.note(b.id, a.id, false);
  }

  ban(a: string, b: string): void {
    this.#banned.add(pair(a, b));
  }

  isBanned(a: string, b: string): boolean {
    return this.#banned.has(pair(a, b));
  }

  /** Lifts all bans of a host. */
  pardon(id: string): void {
    for (const banned of [...this.#banned]) if (banned.split("\n").includes(id)) this.#banned.delete(banned);
  }

  /**
   * Whether members that were connected still are: each searches the graph, all
   * a step at a time, until they have met. Among 10,000 members they look at
   * some hundred each, where a look at all would cost 120,000 edges.
   */
  areConnected(members: readonly Node[]): boolean {
    const searchOf = new Map(members.map((node, index) => [node.id, index]));
    const queues = members.map((node) => [node]);
    const joined = members.map((_, index) => index);
    const root = (index: number): number => joined[index] === index ? index : root(joined[index]!);
    let left = members.length;
    for (let step = 0; left > 1; step++) {
      const going = new Set<number>();
      for (const [index, queue] of queues.entries()) {
        const node = queue[step];
        if (node === undefined) continue;
        for (const id of neighboursOf(node)) {
          const other = searchOf.get(id);
          if (other === undefined) {
            searchOf.set(id, index);
            queue.push(this.get(id));
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

  /** Whom `start` reaches and nobody has reached before, itself first; `seen` grows by them. */
  reach(start: Node, seen: Set<string>): Node[] {
    const reached = [start];
    seen.add(start.id);
    for (const node of reached) {
      for (const id of neighboursOf(node)) {
        if (seen.has(id)) continue;
        seen.add(id);
        reached.push(this.get(id));
      }
    }
    return reached;
  }
}

/** All neighbours, near ones first. */
export function* neighboursOf({ near, far }: Node): Generator<string> {
  yield* near;
  yield* far;
}

function setOf(node: Node, other: Node): Set<string> {
  return node.place.idc === other.place.idc ? node.near : node.far;
}

function pair(a: string, b: string): string {
  return a < b ? `${a}\n${b}` : `${b}\n${a}`;
}
