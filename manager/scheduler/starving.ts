/**
 * Decides how a member is helped that says no neighbour offers it certain
 * pieces: by a holder it does not know yet, by an edge to the host that
 * reported the piece, else by a lease although the piece is in the swarm.
 *
 * In a sparse graph new pieces take a while to spread, and to want one is no
 * fault yet: there a cry for what live members have stands for two seconds.
 *
 * Keeps: two hosts that starve read different pieces; the same ones only when
 * none other are left and the first has had two seconds.
 */
import type { LeaseDesk } from "./lease_desk.ts";
import type { IdleHolders } from "./holders.ts";
import type { Member, SwarmPorts } from "./resource.ts";
import type { NeighbourGraph } from "./scheduling.ts";
import { shuffled } from "./sorted_ids.ts";
import type { Task } from "./task.ts";

/** How long a lease for starving may run before another host reads the same. */
const STALE_MS = 2_000;
/** How long a cry is heard: a host that still starves says so again. */
const HEARD_MS = 5_000;
/** How long a member may starve without anybody who could read before it is told so. */
const HOPE_MS = 2_000;
/** The same while a live host holds what it starves for: 33 hosts on 2 cores needed 3 s to get at their seed. */
const HELD_HOPE_MS = 30_000;
/** Hosts among which what is starved for is shared out. */
const SHARES_MAX = 4;
/** Hosts that a cry makes known at most: each link to the few that have a new piece is one that others need. */
const INTRODUCED_MAX = 2;
/**
 * How long a member of a sparse graph waits for pieces that live hosts have before the origin is asked for them again;
 * longer while many wait (then nothing is wrong with this one) or the origin has pieces to send that nobody has.
 */
const SPREAD_MS = 2_000;
const SPREAD_MS_MAX = 5_000;
/** A host that starves says so every second: whoever has said nothing for so long is served. */
const SILENCE_MS = 1_500;
/** Pause between two looks at a cry that stands, while there are so many that looking at all with each event costs. */
const LOOK_MS = 100;
const CRIES_FEW = 16;
/** Leases for starving at once, as a multiple of the ordinary ones. */
const EXTRA_FACTOR = 4;

export interface StarvingDeps {
  readonly task: Task;
  readonly members: ReadonlyMap<string, Member>;
  readonly graph: NeighbourGraph;
  readonly idle: IdleHolders;
  readonly desk: LeaseDesk;
  readonly ports: SwarmPorts;
}

interface Cry {
  /** Ascending. */
  pieces: number[];
  readonly sinceMs: number;
  heardMs: number;
  isIntroduced: boolean;
  /** Whether hosts of other idcs have been made known too: the last resort, because each brings its piece over again. */
  isFar: boolean;
}

export class Starving {
  readonly #cries = new Map<string, Cry>();
  #lookedAtMs = -Infinity;

  constructor(private readonly deps: StarvingDeps) {}

  get size(): number {
    return this.#cries.size;
  }

  hear(hostId: string, pieces: readonly number[], nowMs: number): void {
    const wanted = [...new Set(pieces)].filter((number) => number < this.deps.task.pieceCount).sort((a, b) => a - b);
    if (wanted.length === 0) return;
    const before = this.#cries.get(hostId);
    // Who no longer starves for one of them has got it: it is served, if slowly.
    const isSame = before?.pieces.every((number) => wanted.includes(number)) ?? false;
    const { sinceMs, isIntroduced, isFar } = before !== undefined && isSame
      ? before
      : { sinceMs: nowMs, isIntroduced: false, isFar: false };
    this.#cries.set(hostId, { pieces: wanted, sinceMs, heardMs: nowMs, isIntroduced, isFar });
  }

  /** The member is served, complete or gone. */
  forget(hostId: string): void {
    this.#cries.delete(hostId);
  }

  /** Helps whom it can; the others are looked at again. */
  pump(nowMs: number): void {
    if (this.#cries.size > CRIES_FEW && nowMs - this.#lookedAtMs < LOOK_MS) return;
    this.#lookedAtMs = nowMs;
    for (const [hostId, cry] of [...this.#cries]) {
      const member = this.deps.members.get(hostId);
      if (member === undefined || !this.#help(member, cry, nowMs)) this.#cries.delete(hostId);
    }
  }

  /** @returns whether the cry still stands */
  #help(member: Member, cry: Cry, nowMs: number): boolean {
    const { task, desk } = this.deps;
    if (nowMs - cry.heardMs >= HEARD_MS || task.isComplete(member.hostId)) return false;
    // What nobody has yet comes by an ordinary lease, except to those who want a part only.
    cry.pieces = cry.pieces.filter((number) => member.partial || task.digests.has(number));
    if (cry.pieces.length === 0) return false;
    if (task.digests.askedHostId !== null) return true;
    if (!cry.isIntroduced && this.#introduce(member, cry)) {
      cry.isIntroduced = true;
      return !this.deps.graph.isMesh;
    }
    if (cry.isIntroduced && nowMs - cry.heardMs >= SILENCE_MS) return false;
    if (this.#isSpreading(member, cry, nowMs)) return nowMs - cry.heardMs < SILENCE_MS;
    while (cry.pieces.length > 0) {
      const reader = desk.readerFor(member, nowMs);
      if (reader === undefined) {
        if (!cry.isFar && desk.hopelessness() !== null) {
          cry.isFar = true;
          this.#introduce(member, cry, { anywhere: true });
        }
        return this.#mayHope(member, cry, nowMs);
      }
      const run = this.#nextRun(member, cry, nowMs);
      if (run === undefined) return true;
      desk.grantExtra(reader, run, nowMs);
      cry.pieces = cry.pieces.filter((number) => number < run.first || number >= run.first + run.count);
    }
    return false;
  }

  #nextRun(member: Member, cry: Cry, nowMs: number) {
    const { desk, members, ports } = this.deps;
    if (desk.book.count({ extra: true }) >= EXTRA_FACTOR * ports.config.sourceConnectionsPerTask) return undefined;
    return desk.book.starvingRun(cry.pieces, {
      share: Math.min(SHARES_MAX, members.size),
      stale: ({ extra, hostId, grantedAtMs }) => extra && hostId !== member.hostId && nowMs - grantedAtMs > STALE_MS,
    });
  }

  /** Makes known a holder, or the hosts that reported the pieces. @returns whether the member has somebody new to ask */
  #introduce(member: Member, cry: Cry, { anywhere = false } = {}): boolean {
    const { graph, idle, ports } = this.deps;
    const facts = ports.host(member.hostId)?.facts;
    const isAnywhere = anywhere || graph.mayCross(member.hostId);
    const isUseless = (hostId: string) =>
      graph.isBanned(hostId, member.hostId) || !(isAnywhere || ports.host(hostId)?.facts.idc === facts?.idc);
    const isOffered = facts !== undefined && idle.offer(member.hostId, facts, isUseless) > 0;
    let introduced = 0;
    for (const reporterId of shuffled(this.#reporters(member, cry), ports.random)) {
      if (introduced === INTRODUCED_MAX) break;
      if (graph.connect(member.hostId, reporterId, { anywhere })) introduced += 1;
    }
    return isOffered || introduced > 0;
  }

  /** In a large swarm a new piece takes a while: the origin would not be faster for all who wait for it. */
  #isSpreading(member: Member, cry: Cry, nowMs: number): boolean {
    const isBusy = this.#cries.size > CRIES_FEW || !this.deps.task.digests.isFull;
    const spreadMs = isBusy ? SPREAD_MS_MAX : SPREAD_MS;
    if (this.deps.graph.isMesh || nowMs - cry.sinceMs >= spreadMs) return false;
    return [...this.#reporters(member, cry)].some((hostId) => !this.deps.graph.isBanned(hostId, member.hostId));
  }

  /** Other members that have reported a piece that the member starves for. */
  #reporters({ hostId }: Member, { pieces }: Cry): Set<string> {
    const reporters = new Set<string>();
    for (const number of pieces) {
      const reporterId = this.deps.task.digests.reporterOf(number);
      if (reporterId !== undefined && reporterId !== hostId && this.deps.members.has(reporterId)) {
        reporters.add(reporterId);
      }
    }
    return reporters;
  }

  /** Nobody reads now: that passes, unless nobody ever can. */
  #mayHope(member: Member, cry: Cry, nowMs: number): boolean {
    const error = this.deps.desk.hopelessness();
    if (error === null) return true;
    const holderId = this.#holderFor(member, cry);
    if (nowMs - cry.sinceMs < (holderId === undefined ? HOPE_MS : HELD_HOPE_MS)) return true;
    const message = `Cannot get ${this.deps.task.spec.url}: host ${holderId} holds it but has sent nothing for ` +
      `${HELD_HOPE_MS / 1000} s, and no host that takes part may read the origin`;
    this.deps.desk.tellFailed(member, holderId === undefined ? error : { code: "no_holder", message });
    return false;
  }

  /** A live host that has something of what the member starves for, and that the member may ask. */
  #holderFor(member: Member, { pieces }: Cry): string | undefined {
    const { task, graph, ports } = this.deps;
    const reporters = new Set(pieces.map((number) => task.digests.reporterOf(number)));
    return [...task.holdings.keys()].find((hostId) =>
      hostId !== member.hostId && (task.isComplete(hostId) || reporters.has(hostId)) &&
      ports.host(hostId) !== undefined && !graph.isBanned(hostId, member.hostId)
    );
  }
}
