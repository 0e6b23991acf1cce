/**
 * Decides who knows members of other idcs. While a task has few members all
 * do. Above that each idc has a few carriers: they alone have neighbours
 * elsewhere, carriers too, and agree by rendezvous hashing who brings which piece over
 * (peer/task/locality.ts); all others have pieces from within. So each piece
 * crosses once, and what a host must know does not grow with its idc.
 *
 * Keeps: an idc with members has a carrier; carriers of all idcs know each
 * other while there are few, else each knows some of them at random.
 *
 * Two racks of 32 hosts, a third of whose edges crossed: 4.2 copies went over
 * their link, and 1.0 with carriers (tests/sim).
 */
import type { Random } from "../../peer/core/clock.ts";
import type { HostFacts } from "../../peer/core/wire/scheduler.ts";
import type { LinkChanges } from "./link_changes.ts";
import type { Links, Node } from "./links.ts";
import { shuffled, SortedIds } from "./sorted_ids.ts";

/** Carriers of one idc: more than one, because hosts die; so few that each can be told of all. */
const CARRIERS_MIN = 2;
const CARRIERS_MAX = 8;
/** Carriers of all idcs that are all linked with each other. */
const CLIQUE_MAX = 32;
/** Neighbours elsewhere that a carrier has where there are more, and below which it gets others. */
const FAR_WANTED = 12;
const FAR_MIN = 8;
/** Draws of which the carrier with the fewest neighbours elsewhere is taken. */
const CHOICES = 4;

/** How well a member suits: hosts that want a part only bring only that; what a seed peer reads is to cross soon. */
export type Fitness = 0 | 1 | 2;

export function fitnessOf({ type }: HostFacts, { partial }: { partial: boolean }): Fitness {
  if (partial) return 0;
  return type === "seed" ? 2 : 1;
}

interface Side {
  /** Members that do not carry, by fitness. */
  readonly others: readonly [SortedIds, SortedIds, SortedIds];
  readonly carriers: SortedIds;
  /** Who carries, as its members have heard. */
  told: readonly string[] | null;
}

export class Border {
  readonly #sides = new Map<string, Side>();
  readonly #fitness = new Map<string, Fitness>();
  readonly #carriers = new SortedIds();
  readonly #loosened = new Set<string>();
  #isOpen = true;

  constructor(
    private readonly links: Links,
    private readonly random: Random,
    private readonly changes: LinkChanges,
  ) {}

  /** Whether all members know all of other idcs. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Carriers of an idc, ascending; null where every member may know others elsewhere. */
  carriersOf(idc: string): readonly string[] | null {
    return this.#isGuarded(idc) ? [...this.#sides.get(idc)?.carriers ?? []] : null;
  }

  /** Whether the member may know others elsewhere. */
  mayCross({ id, place }: Node): boolean {
    return !this.#isGuarded(place.idc) || this.#carriers.has(id);
  }

  /** Members whose reads from the origin other idcs see at once; null where that is so of all. */
  get entries(): SortedIds | null {
    return this.#isOpen || this.#sides.size === 1 ? null : this.#carriers;
  }

  add(node: Node, fitness: Fitness): void {
    const { idc } = node.place;
    const known = this.#sides.get(idc);
    const side = known ??
      { others: [new SortedIds(), new SortedIds(), new SortedIds()], carriers: new SortedIds(), told: null };
    this.#sides.set(idc, side);
    this.#fitness.set(node.id, fitness);
    side.others[fitness].add(node.id);
    if (this.#isOpen) this.#linkToAll(node);
    else if (known === undefined) this.#settleAll();
    else this.#settle(idc, side);
  }

  /** The member suits better or worse than it did. */
  setFitness(node: Node, fitness: Fitness): void {
    const side = this.#sides.get(node.place.idc);
    const before = this.#fitness.get(node.id);
    if (side === undefined || before === undefined || before === fitness) return;
    this.#fitness.set(node.id, fitness);
    if (!this.#carriers.has(node.id)) {
      side.others[before].delete(node.id);
      side.others[fitness].add(node.id);
    }
    if (!this.#isOpen) this.#settle(node.place.idc, side);
  }

  /** @param orphans the neighbours elsewhere that it had; they are unlinked from it */
  remove({ id, place }: Node, orphans: readonly Node[]): void {
    const side = this.#sides.get(place.idc);
    if (side === undefined) return;
    side.others[this.#fitness.get(id)!].delete(id);
    this.#fitness.delete(id);
    side.carriers.delete(id);
    this.#carriers.delete(id);
    if (sizeOf(side) === 0) this.#sides.delete(place.idc);
    if (this.#isOpen) return;
    if (sizeOf(side) === 0) this.#settleAll();
    else this.#settle(place.idc, side);
    this.#refill(orphans);
  }

  /** From now on carriers alone have neighbours elsewhere. */
  close(): void {
    this.#isOpen = false;
    for (const node of this.links.nodes.values()) this.#unlinkFar(node);
    this.#settleAll();
  }

  /** From now on all know all again. */
  open(): void {
    this.#isOpen = true;
    for (const id of [...this.#carriers]) this.#demote(this.links.get(id));
    for (const side of this.#sides.values()) side.told = null;
    for (const node of this.links.nodes.values()) {
      this.#linkToAll(node);
      this.changes.noteCarriers(node.id);
    }
  }

  /** Members that lost neighbours elsewhere since the last call, other than by `remove`. */
  takeLoosened(): Node[] {
    const loosened = [...this.#loosened].sort().flatMap((id) => this.links.nodes.get(id) ?? []);
    this.#loosened.clear();
    return loosened;
  }

  /** Hosts that name no idc may be anywhere: they are kept apart only where others do. */
  #isGuarded(idc: string): boolean {
    return !this.#isOpen && (idc !== "" || this.#sides.size > 1);
  }

  /** The number of idcs has changed, and with it how many carriers each may have. */
  #settleAll(): void {
    for (const idc of [...this.#sides.keys()].sort()) this.#settle(idc, this.#sides.get(idc)!);
    if (this.#carriers.size > CLIQUE_MAX) return;
    for (const id of this.#carriers) this.#linkToCarriers(this.links.get(id));
  }

  /** Gives an idc its carriers: those that it has, as long as none suits better. */
  #settle(idc: string, side: Side): void {
    const isGuarded = this.#isGuarded(idc);
    const max = isGuarded
      ? Math.max(CARRIERS_MIN, Math.min(CARRIERS_MAX, Math.floor(CLIQUE_MAX / this.#sides.size)))
      : 0;
    while (side.carriers.size > max) this.#demote(this.#weakest(side)!);
    for (;;) {
      const next = this.#fittest(side);
      if (max === 0 || next === undefined) break;
      if (side.carriers.size === max) {
        const weakest = this.#weakest(side)!;
        if (this.#fitness.get(weakest.id)! >= this.#fitness.get(next.id)!) break;
        this.#demote(weakest);
      }
      this.#promote(next);
    }
    this.#tell(side, isGuarded ? [...side.carriers] : null);
  }

  /** Who carries must hear of those who do with it; who does not, only that it does not. */
  #tell(side: Side, carriers: readonly string[] | null): void {
    const { told } = side;
    side.told = carriers;
    if (told === null || carriers === null) {
      if (told !== carriers) this.#tellAll(side);
    } else if (told.join() !== carriers.join()) {
      for (const id of new Set([...told, ...carriers])) if (this.links.nodes.has(id)) this.changes.noteCarriers(id);
    }
  }

  #tellAll({ others, carriers }: Side): void {
    for (const ids of [...others, carriers]) for (const id of ids) this.changes.noteCarriers(id);
  }

  #fittest({ others }: Side): Node | undefined {
    const id = others.findLast(({ size }) => size > 0)?.draw(this.random);
    return id === undefined ? undefined : this.links.get(id);
  }

  #weakest({ carriers }: Side): Node | undefined {
    const least = Math.min(...[...carriers].map((id) => this.#fitness.get(id)!));
    const [id] = shuffled([...carriers].filter((one) => this.#fitness.get(one) === least), this.random);
    return id === undefined ? undefined : this.links.get(id);
  }

  #promote(node: Node): void {
    const side = this.#sides.get(node.place.idc)!;
    side.others[this.#fitness.get(node.id)!].delete(node.id);
    for (const id of side.carriers) this.links.link(node, this.links.get(id));
    side.carriers.add(node.id);
    this.#carriers.add(node.id);
    node.carries = true;
    if (this.#carriers.size <= CLIQUE_MAX) this.#linkToCarriers(node);
    else this.#insert(node, FAR_WANTED);
  }

  #demote(node: Node): void {
    const side = this.#sides.get(node.place.idc)!;
    side.carriers.delete(node.id);
    this.#carriers.delete(node.id);
    node.carries = false;
    side.others[this.#fitness.get(node.id)!].add(node.id);
    const orphans = [...node.far].map((id) => this.links.get(id));
    this.#unlinkFar(node);
    for (const { id } of [node, ...orphans]) this.#loosened.add(id);
    if (!this.#isOpen) this.#refill(orphans);
  }

  #unlinkFar(node: Node): void {
    for (const id of [...node.far]) this.links.unlink(node, this.links.get(id));
  }

  #linkToAll(node: Node): void {
    for (const other of this.links.nodes.values()) if (isElsewhere(node, other)) this.links.link(node, other);
  }

  #linkToCarriers(node: Node): void {
    for (const id of this.#carriers) {
      const other = this.links.get(id);
      if (isElsewhere(node, other)) this.links.link(node, other);
    }
  }

  /** Who has lost many neighbours elsewhere gets others. */
  #refill(nodes: readonly Node[]): void {
    if (this.#carriers.size <= CLIQUE_MAX) return;
    for (const node of nodes) {
      if (this.#carriers.has(node.id) && node.far.size < FAR_MIN) this.#insert(node, FAR_WANTED);
    }
  }

  #insert(node: Node, wanted: number): void {
    for (let tries = wanted * CHOICES; tries > 0 && node.far.size < wanted; tries--) {
      let best: Node | undefined;
      for (const id of this.#carriers.sample(CHOICES, this.random)) {
        const other = this.links.get(id);
        if (!isElsewhere(node, other) || !this.links.mayLink(node, other)) continue;
        if (best === undefined || other.far.size < best.far.size) best = other;
      }
      if (best !== undefined) this.links.link(node, best);
    }
  }
}

function isElsewhere({ place: a }: Node, { place: b }: Node): boolean {
  return a.idc !== b.idc;
}

function sizeOf({ others, carriers }: Side): number {
  return others.reduce((sum, { size }) => sum + size, carriers.size);
}
