/**
 * The members of one task, as a state machine: who joins and leaves, who is
 * whose neighbour, what the content is, which pieces are known. Sends its
 * decisions through `SwarmPorts`; awaits nothing and reads no clock.
 *
 * Keeps: pieces of two generations never mix; every member knows the digests
 * that are known; nobody keeps a neighbour that has left or lost the task.
 */
import type { HeldTask, HostFacts, TaskMeta, WireError } from "../../peer/core/wire/scheduler.ts";
import { fitnessOf } from "./border.ts";
import { askForDigests, type ExchangeDeps, sendAllDigests, sendFreshDigests } from "./digest_exchange.ts";
import { IdleHolders } from "./holders.ts";
import { LeaseDesk } from "./lease_desk.ts";
import { LinkChanges } from "./link_changes.ts";
import { createMember, type Host, type Member, type MessageOf, type SwarmPorts, toNeighbour } from "./resource.ts";
import { Roster } from "./roster.ts";
import { NeighbourGraph } from "./scheduling.ts";
import { rendezvous } from "./seed_peers.ts";
import { Starving } from "./starving.ts";
import { piecesOfMeta, type Task } from "./task.ts";

/** How long a seed peer that was ordered to fetch the task keeps the first leases to itself. */
const SEED_WAIT_MS = 500;
/** Generations that the origin may go through before the members are told that it is no use. */
const CHANGES_MAX = 5;
/** Distinct hosts that must have got a wrong piece before a host is put out; one is enough in a pair. */
const STRIKES_MAX = 2;
/** How long a generation counts as what the origin has, after a host found it there. */
const CONFIRMED_MS = 60_000;

export class Swarm {
  readonly #members = new Roster();
  readonly #changes = new LinkChanges();
  readonly #graph: NeighbourGraph;
  readonly #idle: IdleHolders;
  readonly #desk: LeaseDesk;
  readonly #starving: Starving;
  readonly #exchange: ExchangeDeps;
  /** Accused host → hosts that accuse it. */
  readonly #strikes = new Map<string, Set<string>>();
  #isSeedOrdered = false;
  #originChanges = 0;

  constructor(readonly task: Task, private readonly ports: SwarmPorts) {
    const { config, random } = ports;
    this.#graph = new NeighbourGraph(config.neighbours, random, this.#changes);
    this.#idle = new IdleHolders(random, this.#changes);
    const view = {
      task,
      members: this.#members,
      idleHolderCount: () => this.#idle.size,
      entries: () => this.#graph.entries,
    };
    this.#desk = new LeaseDesk(view, ports);
    this.#starving = new Starving({ ...view, graph: this.#graph, idle: this.#idle, desk: this.#desk, ports });
    const isReachable = (hostId: string) => this.#idle.has(hostId) || this.#members.has(hostId);
    this.#exchange = { task, members: this.#members, ports, isReachable };
    for (const hostId of [...task.holdings.keys()].sort()) this.#addIdle(hostId);
    // Without anybody who has all of it, the origin is asked anew: what was once known may be lost or stale.
    if (this.#idle.size === 0) task.setMeta(null);
    this.#desk.setMeta(task.meta);
  }

  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  /** Whether `tick` may change something. */
  get isTimed(): boolean {
    return this.#desk.isTimed || this.#starving.size > 0;
  }

  get members(): Roster {
    return this.#members;
  }

  /** Live leases, for tests and views. */
  get leases() {
    return [...this.#desk.book.live];
  }

  /** Hosts that a member may ask for pieces, ascending. */
  neighboursOf(hostId: string): string[] {
    return [...this.#graph.neighboursOf(hostId), ...this.#idle.knownTo(hostId)].sort();
  }

  join(host: Host, message: MessageOf<"join">, nowMs: number): void {
    const hostId = host.facts.id;
    this.flush();
    this.task.respec(message.task);
    this.#takeGeneration(hostId, message);
    const isNew = !this.#members.has(hostId);
    const member = this.#memberOf(host, nowMs);
    Object.assign(member, {
      canSource: message.can_source,
      anonymous: message.anonymous,
      partial: message.partial,
      joinedAtMs: nowMs,
    });
    this.#desk.forgiveAll();
    const fitness = fitnessOf(host.facts, member);
    isNew ? this.#graph.add(hostId, host.facts, fitness) : this.#graph.setFitness(hostId, fitness);
    this.#offerHolders(hostId, host.facts);
    this.#answerJoin(member, nowMs);
    this.#orderSeed(member, nowMs);
    this.#settle(nowMs);
  }

  /** The host takes no part any more; if it has everything it goes on serving whom it served. */
  leave(hostId: string, nowMs: number): void {
    if (!this.#members.delete(hostId)) return;
    const neighbours = this.#graph.neighboursOf(hostId);
    this.#graph.remove(hostId);
    this.#idle.forgetMember(hostId);
    this.#starving.forget(hostId);
    this.#changes.forget(hostId);
    if (!this.task.isComplete(hostId)) this.task.digests.stopAsking(hostId);
    this.#addIdle(hostId);
    for (const id of neighbours) if (this.#idle.has(hostId)) this.#idle.link(id, hostId);
    this.#desk.memberGone(hostId);
    this.#settle(nowMs);
  }

  /** The host has lost the task from its disk, or is gone altogether. Its holding is removed before. */
  lost(hostId: string, { isGone }: { isGone: boolean }, nowMs: number): void {
    this.task.digests.stopAsking(hostId);
    this.#idle.remove(hostId);
    this.#desk.book.rewind();
    if (isGone) {
      this.#desk.seedFailed(hostId);
      this.#members.has(hostId) ? this.leave(hostId, nowMs) : this.#settle(nowMs);
    } else this.#settle(nowMs);
  }

  /** A host reports that it has the task on disk. */
  held(hostId: string, held: HeldTask, nowMs: number): void {
    const { task } = this;
    task.hold(hostId, { meta: held.meta, pieceCount: held.piece_count, complete: held.complete });
    const isUsable = held.complete && !task.isObsolete(held.meta.generation);
    if (isUsable && task.meta === null) this.#adopt(held.meta, hostId);
    if (!task.isComplete(hostId)) this.#idle.remove(hostId);
    else if (this.#addIdle(hostId)) this.#offerIdle(hostId);
    this.#settle(nowMs);
  }

  /** A lease holder (or a host that reads by itself) learned what the origin has. */
  meta(hostId: string, meta: TaskMeta, nowMs: number): void {
    if (!this.#members.has(hostId)) return;
    const current = this.task.meta;
    const probe = this.#desk.book.of(hostId).find(({ generation }) => generation === null);
    if (current?.generation === meta.generation) {
      this.task.confirmedAtMs = nowMs;
      if (probe !== undefined) this.#desk.confirm(probe, current);
    } else if (current === null || probe !== undefined) {
      this.#adopt(meta, hostId);
      this.task.confirmedAtMs = nowMs;
    } else {
      this.ports.send(hostId, { type: "meta", task_id: this.task.id, meta: current });
    }
    this.#settle(nowMs);
  }

  pieces(hostId: string, { generation, pieces }: MessageOf<"pieces">, nowMs: number): void {
    const { task } = this;
    const member = this.#members.get(hostId);
    if (task.meta?.generation !== generation || (member === undefined && task.current(hostId) === undefined)) return;
    const holding = task.current(hostId) ?? task.hold(hostId, { meta: task.meta, pieceCount: 0, complete: false });
    const isAnswer = task.digests.askedHostId === hostId;
    for (const [number, sha256] of pieces) {
      const isNew = task.digests.add(number, sha256, hostId, nowMs);
      if (isNew && !isAnswer && holding.pieceCount < task.pieceCount) holding.pieceCount += 1;
      if (member !== undefined) this.#desk.delivered(member, number, nowMs);
    }
    task.digests.answered(hostId, pieces.length, nowMs);
    this.#settle(nowMs);
  }

  leaseEnd(hostId: string, { lease_id, error }: MessageOf<"lease_end">, nowMs: number): void {
    const member = this.#members.get(hostId);
    if (member === undefined) return;
    if (this.#desk.leaseEnded(member, lease_id, error, nowMs)) this.#replaced(error!);
    this.#settle(nowMs);
  }

  starving(hostId: string, { generation, pieces }: MessageOf<"starving">, nowMs: number): void {
    if (!this.#members.has(hostId) || this.task.meta?.generation !== generation) return;
    this.#starving.hear(hostId, pieces, nowMs);
    this.#settle(nowMs);
  }

  /** A host asked the origin whether it still has the generation. */
  checked(hostId: string, { generation, changed }: MessageOf<"checked">, nowMs: number): void {
    if (!this.#members.has(hostId) || this.task.meta?.generation !== generation) return;
    if (changed) this.#replaced({ code: "content_changed", message: "The origin has another content now" });
    else this.task.confirmedAtMs = nowMs;
    this.#settle(nowMs);
  }

  complete(hostId: string, { generation }: MessageOf<"complete">, nowMs: number): void {
    const { meta, pieceCount } = this.task;
    if (meta?.generation !== generation) return;
    if (this.#members.has(hostId) || this.task.current(hostId) !== undefined) {
      const asked = this.task.current(hostId)?.asked ?? false;
      this.task.hold(hostId, { meta, pieceCount, complete: true }).asked = asked;
      this.#starving.forget(hostId);
      if (this.#addIdle(hostId)) this.#offerIdle(hostId);
    }
    this.#settle(nowMs);
  }

  badPeer(hostId: string, { host_id: accusedId }: MessageOf<"bad_peer">, nowMs: number): void {
    const isKnown = this.#members.has(accusedId) || this.task.holdings.has(accusedId);
    if (!this.#members.has(hostId) || hostId === accusedId || !isKnown) return;
    this.#graph.ban(hostId, accusedId);
    this.#idle.unlink(hostId, accusedId);
    const accusers = this.#strikes.get(accusedId) ?? new Set();
    this.#strikes.set(accusedId, accusers.add(hostId));
    const size = this.#members.size + (this.#members.has(accusedId) ? 0 : 1);
    if (accusers.size >= (size <= 2 ? 1 : STRIKES_MAX)) this.#expel(accusedId, nowMs);
    this.#settle(nowMs);
  }

  seedFailed(hostId: string, nowMs: number): void {
    this.#desk.seedFailed(hostId);
    this.#settle(nowMs);
  }

  tick(nowMs: number): void {
    this.#settle(nowMs);
  }

  /** Sends the digests learned since the last call. */
  flush(): void {
    sendFreshDigests(this.#exchange);
  }

  #memberOf(host: Host, nowMs: number): Member {
    const hostId = host.facts.id;
    const known = this.#members.get(hostId);
    if (known !== undefined) return known;
    const member = createMember(host.facts, this.ports.nextJoinNumber(), nowMs);
    this.#members.set(hostId, member);
    return member;
  }

  /** What a joiner has on disk: it counts, or it becomes the task's generation, or it is of another one and does not count. */
  #takeGeneration(hostId: string, { meta, piece_count }: MessageOf<"join">): void {
    const { task } = this;
    this.#idle.remove(hostId);
    task.holdings.delete(hostId);
    const others = this.#members.size - (this.#members.has(hostId) ? 1 : 0);
    const isAbandoned = others === 0 && !task.isHeldBesides(hostId);
    if (meta === undefined) {
      if (isAbandoned && task.meta !== null && !this.#members.has(hostId)) this.#forgetMeta();
      return;
    }
    const isOther = task.meta?.generation !== meta.generation;
    if (isOther && (task.meta === null || isAbandoned) && !task.isObsolete(meta.generation)) this.#adopt(meta, hostId);
    if (task.meta?.generation !== meta.generation) return;
    task.hold(hostId, { meta, pieceCount: piece_count, complete: piece_count === piecesOfMeta(meta) });
  }

  #forgetMeta(): void {
    this.task.setMeta(null);
    this.#desk.setMeta(null);
  }

  #answerJoin({ hostId, canSource }: Member, nowMs: number): void {
    const { task } = this;
    const isOld = task.confirmedAtMs === null || nowMs - task.confirmedAtMs > CONFIRMED_MS;
    const confirm = canSource && task.meta !== null && isOld;
    this.#changes.forget(hostId);
    const carriers = this.#graph.carriersOf(hostId);
    this.ports.send(hostId, {
      type: "task",
      task_id: task.id,
      meta: task.meta,
      neighbours: this.neighboursOf(hostId).flatMap((id) => this.#neighbour(id)),
      ...(carriers === null ? {} : { carriers: [...carriers] }),
      ...(confirm ? { confirm } : {}),
    });
    sendAllDigests(hostId, this.#exchange);
  }

  /** Another generation is the current one from now on. */
  #adopt(meta: TaskMeta, fromHostId: string): void {
    const { task } = this;
    task.setMeta(meta);
    this.#desk.setMeta(meta);
    for (const hostId of this.#idleIds()) if (!task.isComplete(hostId)) this.#idle.remove(hostId);
    for (const { hostId } of this.#members.ordered) {
      if (task.current(hostId) === undefined) task.holdings.delete(hostId);
      if (meta.content_length === 0) task.hold(hostId, { meta, pieceCount: 0, complete: true });
      this.#starving.forget(hostId);
      if (hostId !== fromHostId) this.ports.send(hostId, { type: "meta", task_id: task.id, meta });
    }
    for (const hostId of [...task.holdings.keys()].sort()) if (this.#addIdle(hostId)) this.#offerIdle(hostId);
  }

  /** The origin has another content: nothing of the current generation counts any more. */
  #replaced(error: WireError): void {
    this.task.markObsolete();
    this.#desk.setMeta(null);
    for (const hostId of this.#idleIds()) this.#idle.remove(hostId);
    for (const hostId of this.#members.keys()) {
      this.task.holdings.delete(hostId);
      this.#starving.forget(hostId);
    }
    this.#originChanges += 1;
    if (this.#originChanges < CHANGES_MAX) return;
    this.#originChanges = 0;
    for (const member of this.#members.ordered) {
      member.refused = error;
      this.#desk.tellFailed(member, error);
    }
  }

  #expel(hostId: string, nowMs: number): void {
    this.#strikes.delete(hostId);
    this.task.holdings.delete(hostId);
    this.#idle.remove(hostId);
    this.task.digests.stopAsking(hostId);
    this.ports.orderDrop(hostId);
    this.leave(hostId, nowMs);
    this.#graph.pardon(hostId);
  }

  /** For an anonymous download a seed peer fetches too, so that the origin and its route are asked for by few. */
  #orderSeed(member: Member, nowMs: number): void {
    if (this.#isSeedOrdered || !member.anonymous || !member.canSource || member.partial || this.#idle.size > 0) return;
    const isComplete = this.task.meta !== null && this.task.digests.isFull;
    const seedIds = this.ports.seedIds();
    if (isComplete || seedIds.some((id) => this.#members.has(id))) return;
    const seedId = rendezvous(this.task.id, seedIds);
    if (seedId === undefined) return;
    this.#isSeedOrdered = true;
    this.#desk.awaitSeed(seedId, nowMs + SEED_WAIT_MS);
    this.ports.orderSeed(seedId);
  }

  /** Draws the conclusions of an event. */
  #settle(nowMs: number): void {
    if (this.isEmpty) return;
    this.#sendLinks();
    askForDigests(this.#exchange, nowMs);
    this.#desk.pump(nowMs);
    this.#starving.pump(nowMs);
    this.#sendLinks();
  }

  #sendLinks(): void {
    for (const { hostId, add, remove, carriers } of this.#changes.take()) {
      const facts = this.ports.host(hostId)?.facts;
      if (!this.#members.has(hostId) || facts === undefined) continue;
      this.ports.send(hostId, {
        type: "neighbours",
        task_id: this.task.id,
        add: add.flatMap((id) => this.#neighbour(id)),
        remove: [...remove],
        ...(carriers ? { carriers: this.#graph.carriersOf(hostId)?.slice() ?? null } : {}),
      });
      if (carriers) this.#offerHolders(hostId, facts);
    }
  }

  /** @returns whether the host is an idle holder now that was none */
  #addIdle(hostId: string): boolean {
    const facts = this.ports.host(hostId)?.facts;
    const isIdle = facts !== undefined && !this.#members.has(hostId) && this.task.isComplete(hostId);
    if (!isIdle || this.#idle.has(hostId)) return false;
    this.#idle.add(hostId, { idc: facts.idc, location: facts.location, isSeed: facts.type === "seed" });
    return true;
  }

  /** Gives a new idle holder to members that know too few. */
  #offerIdle(hostId: string): void {
    for (const { hostId: memberId } of this.#members.ordered) {
      const facts = this.ports.host(memberId)?.facts;
      if (facts === undefined || this.task.isComplete(memberId) || this.#graph.isBanned(memberId, hostId)) continue;
      this.#offerHolders(memberId, facts);
    }
  }

  /** Gives a member idle holders; those of other idcs only if it brings pieces over. */
  #offerHolders(memberId: string, facts: HostFacts): void {
    const mayCross = this.#graph.mayCross(memberId);
    const isNear = (id: string) => this.ports.host(id)?.facts.idc === facts.idc;
    this.#idle.offer(memberId, facts, (id) => this.#graph.isBanned(id, memberId) || !(mayCross || isNear(id)));
  }

  #idleIds(): string[] {
    return [...this.task.holdings.keys()].filter((hostId) => this.#idle.has(hostId)).sort();
  }

  #neighbour(hostId: string) {
    const host = this.ports.host(hostId);
    return host === undefined ? [] : [toNeighbour(host)];
  }
}
