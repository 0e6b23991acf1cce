/**
 * Decides which member of a task reads what from the origin, and when nobody
 * can. Seeds that take part come first, then whoever has read least, so that
 * pieces enter the swarm at many hosts. A host whose lease fails waits; one
 * that the origin refuses is not asked again until somebody new joins.
 *
 * Keeps: a piece that a member holds is leased only to one that starves for it.
 */
import type { ErrorCode } from "../../peer/core/errors.ts";
import type { TaskMeta, WireError } from "../../peer/core/wire/scheduler.ts";
import { type Lease, LeaseBook, type Run } from "./leases.ts";
import type { Member, SwarmPorts } from "./resource.ts";
import type { OrderedMembers, Roster } from "./roster.ts";
import type { SortedIds } from "./sorted_ids.ts";
import type { Task } from "./task.ts";

/** Leases of one host at once: the next begins while the last ends. */
const LEASES_PER_HOST = 2;
/** Pause after a failed lease, doubled by each further one. */
const BACKOFF_MS = 2_000;
const BACKOFF_MS_MAX = 30_000;
/** Failures in a row after which a host counts as refused. */
const FAILURES_MAX = 3;
/** A probe may take longer than a piece: a content of unknown length is read to its end. */
const PROBE_TIMEOUT_FACTOR = 6;
/** How long hosts that hold a content may take to come back before a member that cannot read the origin is given up. */
const HOLDER_GRACE_MS = 2_000;

/** Errors after which the same host need not ask the origin again. */
const REFUSALS: ReadonlySet<string> = new Set<ErrorCode>([
  "source_refused",
  "source_not_found",
  "policy",
  "usage",
  "tls",
]);
/** Errors that say that the origin has another content now. */
const CHANGES: ReadonlySet<string> = new Set<ErrorCode>(["content_changed", "range_not_satisfiable"]);

const EMPTY_LEASE: WireError = { code: "source_failed", message: "A host gave its lease back without a piece read" };

/** What the desk sees of its swarm. */
export interface SwarmView {
  readonly task: Task;
  readonly members: Roster;
  /** Hosts that hold the whole task and take no part. */
  readonly idleHolderCount: () => number;
  /** Members whose reads other idcs see at once; null where that is so of all. */
  readonly entries: () => SortedIds | null;
}

export class LeaseDesk {
  readonly book = new LeaseBook();
  #seed: { hostId: string; untilMs: number } | null = null;
  #revocations = 0;
  /** Whether somebody may be refused, or was told that nothing can be done. */
  #isAnyoneBlamed = false;

  constructor(private readonly swarm: SwarmView, private readonly ports: SwarmPorts) {}

  /** A seed peer was ordered to fetch the task: it gets the first leases if it comes in time. */
  awaitSeed(hostId: string, untilMs: number): void {
    this.#seed = { hostId, untilMs };
  }

  seedFailed(hostId: string): void {
    if (this.#seed?.hostId === hostId) this.#seed = null;
  }

  /** Another generation is current: what was leased of the old one ends. */
  setMeta(meta: TaskMeta | null): void {
    const layout = meta === null ? null : { contentLength: meta.content_length, pieceLength: meta.piece_length };
    for (const lease of this.book.setLayout(layout, { ranges: meta?.ranges ?? true })) {
      this.#closed(lease);
      this.#revoke(lease);
    }
    for (const lease of this.book.live) this.#charge(lease);
  }

  /** A prober found the generation that is known already. */
  confirm(lease: Lease, meta: TaskMeta): void {
    if (lease.count > 0) return;
    this.book.widen(lease, meta);
    this.#charge(lease);
  }

  delivered(member: Member, number: number, nowMs: number): void {
    member.failures = 0;
    member.lapses = 0;
    for (const lease of this.book.delivered(member.hostId, number, nowMs)) this.#closed(lease);
  }

  /** A host takes no part any more: its leases are free. */
  memberGone(hostId: string): void {
    for (const lease of this.book.of(hostId)) this.#end(lease);
    this.seedFailed(hostId);
    this.book.rewind();
  }

  /** @returns whether the content changed at the origin, so that the generation is obsolete */
  leaseEnded(member: Member, leaseId: number, error: WireError | undefined, nowMs: number): boolean {
    const lease = this.book.get(leaseId);
    if (lease === undefined || lease.hostId !== member.hostId) return false;
    this.#end(lease);
    if (error !== undefined && CHANGES.has(error.code) && lease.generation !== null) return true;
    const isEmpty = this.swarm.task.meta === null || (lease.count > 0 && lease.left.size === lease.count);
    // A lease that ends with nothing read, and no reason, would be given again at once and for ever.
    if (error !== undefined || isEmpty) this.#failed(member, error ?? EMPTY_LEASE, nowMs);
    return false;
  }

  #failed(member: Member, error: WireError, nowMs: number): void {
    member.failures += 1;
    member.notBeforeMs = nowMs + backoffMs(member.failures);
    if (REFUSALS.has(error.code) || member.failures >= FAILURES_MAX) {
      member.refused = error;
      this.#isAnyoneBlamed = true;
    }
  }

  /** Forgets who was refused: somebody new has come, and with it perhaps another way. */
  forgiveAll(): void {
    if (!this.#isAnyoneBlamed) return;
    this.#isAnyoneBlamed = false;
    for (const member of this.swarm.members.values()) {
      if (member.refused !== null) member.failures = 0;
      member.refused = null;
      member.toldFailed = false;
    }
  }

  /** Gives out and takes back leases as things stand. */
  pump(nowMs: number): void {
    this.#expire(nowMs);
    const { meta } = this.swarm.task;
    if (meta === null) this.#probe(nowMs);
    else if (this.swarm.task.digests.askedHostId === null && this.#isAnythingFree()) {
      if (meta.ranges) this.#grantRuns(meta, nowMs);
      else this.#grantStream(nowMs);
    }
    this.#failIfHopeless(nowMs);
  }

  /** Whether time alone may change something. */
  get isTimed(): boolean {
    const { task, members } = this.swarm;
    if (members.size === 0) return false;
    return task.meta === null || this.book.size > 0 || task.digests.askedHostId !== null || this.#missingCount() > 0;
  }

  /** Leases pieces to a host that starves for them, or to another that can read for it. */
  grantExtra(member: Member, run: Run, nowMs: number): void {
    const { meta } = this.swarm.task;
    if (meta === null) return;
    const lease = this.book.grant(
      { id: this.ports.nextLeaseId(), hostId: member.hostId, generation: meta.generation, extra: true },
      run,
      nowMs,
    );
    this.#granted(lease);
  }

  /** Who may read for a host that starves: itself, else anybody who can. */
  readerFor(member: Member, nowMs: number): Member | undefined {
    if (isAble(member, nowMs)) return member.leaseCount < LEASES_PER_HOST ? member : undefined;
    const others = this.#members().filter((other) => isAble(other, nowMs) && other.leaseCount < LEASES_PER_HOST);
    return this.#leastCharged(others.filter(({ hostId }) => hostId !== member.hostId));
  }

  /** Why nobody can read the origin now or later; null when somebody may. */
  hopelessness(): WireError | null {
    const members = this.#members();
    if (members.some(({ canSource, refused }) => canSource && refused === null)) return null;
    const refusals = members.filter(({ canSource, refused }) => canSource && refused !== null);
    refusals.sort((a, b) => a.joinNumber - b.joinNumber);
    return refusals[0]?.refused ?? {
      code: "no_holder",
      message: `Cannot get ${this.swarm.task.spec.url}: no host that takes part may read the origin, and none holds it`,
    };
  }

  tellFailed(member: Member, error: WireError): void {
    this.#isAnyoneBlamed = true;
    if (member.toldFailed) return;
    member.toldFailed = true;
    this.ports.send(member.hostId, { type: "failed", task_id: this.swarm.task.id, error });
  }

  /** Whether a piece need not be read: somebody has reported it who may still have it. */
  isDone(number: number): boolean {
    const { digests } = this.swarm.task;
    const lone = this.#lone();
    return lone === null ? digests.has(number) : digests.reporterOf(number) === lone.hostId;
  }

  #expire(nowMs: number): void {
    const patience = 2 ** Math.min(3, this.#revocations);
    for (const lease of [...this.book.live]) {
      const isProbe = lease.count === 0;
      const timeoutMs = isProbe
        ? this.ports.config.hostTimeoutMs * PROBE_TIMEOUT_FACTOR
        : this.book.timeoutMs(this.ports.config.hostTimeoutMs);
      if (nowMs - lease.activeAtMs < timeoutMs * patience) continue;
      const others = this.#usable(nowMs, { partial: lease.extra || isProbe }).filter(({ hostId, leaseCount }) =>
        hostId !== lease.hostId && leaseCount < LEASES_PER_HOST
      );
      if (others.length === 0) continue;
      this.#revocations += 1;
      this.#end(lease);
      this.#revoke(lease);
      const member = this.swarm.members.get(lease.hostId);
      if (member === undefined) continue;
      member.lapses += 1;
      member.notBeforeMs = nowMs + backoffMs(this.#revocations);
    }
  }

  #probe(nowMs: number): void {
    if (this.book.size > 0) return;
    const candidates = this.#usable(nowMs, { partial: true });
    candidates.sort((a, b) => a.joinNumber - b.joinNumber);
    const first = candidates[0];
    if (first !== undefined) this.#granted(this.book.probe(this.ports.nextLeaseId(), first.hostId, nowMs));
  }

  /** An origin without ranges is read by one host from the start, as a probe that goes on to the end. */
  #grantStream(nowMs: number): void {
    if (this.book.count({ extra: false }) > 0) return;
    const member = this.#leastCharged(this.#usable(nowMs, { partial: false }));
    if (member !== undefined) this.#granted(this.book.probe(this.ports.nextLeaseId(), member.hostId, nowMs));
  }

  #grantRuns(meta: TaskMeta, nowMs: number): void {
    const leasesMax = this.ports.config.sourceConnectionsPerTask;
    while (this.book.count({ extra: false }) < leasesMax && this.#isAnythingFree()) {
      const usable = this.#usable(nowMs, { partial: false });
      const member = this.#leastCharged(usable.filter(({ leaseCount }) => leaseCount < LEASES_PER_HOST));
      if (member === undefined) return;
      const run = this.book.nextRun((number) => this.isDone(number), {
        remaining: Math.max(1, this.#missingCount() - this.book.pendingCount),
        readers: Math.min(leasesMax, usable.length * LEASES_PER_HOST),
        isLone: this.#isOneReading(),
      });
      if (run === undefined) return;
      const facts = { id: this.ports.nextLeaseId(), hostId: member.hostId, generation: meta.generation, extra: false };
      this.#granted(this.book.grant(facts, run, nowMs));
    }
  }

  /** Tells everybody who waits in vain why: nobody is left who could read what nobody has. */
  #failIfHopeless(nowMs: number): void {
    const { task } = this.swarm;
    if (this.book.size > 0 || task.digests.askedHostId !== null || this.#awaitsSeed(nowMs)) return;
    if (task.meta !== null && this.#missingCount() === 0) return;
    const waiting = this.#members().filter((member) =>
      !member.toldFailed && !task.isComplete(member.hostId) && (task.meta === null || !member.partial)
    );
    const error = waiting.length === 0 ? null : this.hopelessness();
    if (error === null) return;
    const isFresh = waiting.some(({ joinedAtMs }) => nowMs - joinedAtMs < HOLDER_GRACE_MS);
    if (error.code === "no_holder" && isFresh) return;
    for (const member of waiting) this.tellFailed(member, error);
  }

  /** Members that may be given a lease: seeds when there are any, nobody while a seed is on its way. */
  #usable(nowMs: number, { partial }: { partial: boolean }): Member[] {
    const able = this.#members().filter((member) =>
      isAble(member, nowMs) && (partial || !member.partial) && !this.swarm.task.isComplete(member.hostId)
    );
    const seeds = able.filter(({ type }) => type === "seed");
    if (seeds.length > 0) return seeds;
    if (this.#awaitsSeed(nowMs)) return [];
    const entries = this.swarm.entries();
    const seenByAll = entries === null ? able : able.filter(({ hostId }) => entries.has(hostId));
    return seenByAll.length > 0 ? seenByAll : able;
  }

  #awaitsSeed(nowMs: number): boolean {
    if (this.#seed !== null && (nowMs >= this.#seed.untilMs || this.swarm.members.has(this.#seed.hostId))) {
      this.#seed = null;
    }
    return this.#seed !== null;
  }

  /** Whoever has read least, but not who let leases lapse: silent hosts have read least of all. @param members ascending */
  #leastCharged(members: readonly Member[]): Member | undefined {
    let [lapses, leasedBytes] = [Infinity, Infinity];
    for (const member of members) {
      if (member.lapses > lapses || (member.lapses === lapses && member.leasedBytes >= leasedBytes)) continue;
      [lapses, leasedBytes] = [member.lapses, member.leasedBytes];
    }
    const equals = members.filter((member) => member.lapses === lapses && member.leasedBytes === leasedBytes);
    return equals[Math.floor(this.ports.random() * equals.length)];
  }

  #isAnythingFree(): boolean {
    if (!this.book.hasFree((number) => this.isDone(number))) return false;
    for (const { partial, hostId } of this.swarm.members.values()) {
      if (!partial && !this.swarm.task.isComplete(hostId)) return true;
    }
    return false;
  }

  /** Pieces that nobody is known to have. */
  #missingCount(): number {
    const { digests } = this.swarm.task;
    const lone = this.#lone();
    return digests.size - (lone === null ? digests.count : digests.countBy(lone.hostId));
  }

  /** The one member of a task that nobody holds: what others have reported before is lost. */
  #lone(): Member | null {
    const { members, task } = this.swarm;
    if (members.size !== 1 || this.swarm.idleHolderCount() > 0) return null;
    const [lone] = members.values();
    return lone === undefined || task.isComplete(lone.hostId) ? null : lone;
  }

  /** Whether exactly one member wants all of the content. */
  #isOneReading(): boolean {
    let count = 0;
    this.#members().some(({ partial }) => !partial && (count += 1) > 1);
    return count === 1;
  }

  #members(): OrderedMembers {
    return this.swarm.members.ordered;
  }

  #granted(lease: Lease): void {
    const member = this.swarm.members.get(lease.hostId);
    if (member !== undefined) member.leaseCount += 1;
    this.#charge(lease);
    this.ports.send(lease.hostId, {
      type: "lease",
      task_id: this.swarm.task.id,
      lease_id: lease.id,
      generation: lease.generation,
      first: lease.first,
      count: lease.count,
    });
  }

  #charge(lease: Lease): void {
    const member = this.swarm.members.get(lease.hostId);
    if (member !== undefined) member.leasedBytes += lease.count * (this.swarm.task.meta?.piece_length ?? 0);
  }

  #end(lease: Lease): void {
    if (this.book.end(lease.id) !== undefined) this.#closed(lease);
  }

  #closed(lease: Lease): void {
    const member = this.swarm.members.get(lease.hostId);
    if (member !== undefined) member.leaseCount -= 1;
  }

  #revoke(lease: Lease): void {
    this.ports.send(lease.hostId, { type: "revoke", task_id: this.swarm.task.id, lease_id: lease.id });
  }
}

function isAble({ canSource, refused, notBeforeMs }: Member, nowMs: number): boolean {
  return canSource && refused === null && notBeforeMs <= nowMs;
}

function backoffMs(failures: number): number {
  return Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** (failures - 1));
}
