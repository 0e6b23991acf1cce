/**
 * One simulated host: says to the scheduler what a daemon says, asks
 * neighbours and origin through the same picker, and notices when it starves,
 * as peer/task/session.ts and engine.ts do. It has no bytes: of a piece it
 * knows only whether they are the right ones.
 */
import type { Bitmap } from "../../peer/core/bitmap.ts";
import type { HostMessage, SchedulerMessage } from "../../peer/core/wire/scheduler.ts";
import type { PiecePicker } from "../../peer/task/piece_picker.ts";
import { metaOf, type SimConfig } from "./config.ts";
import { HostPeers } from "./host_peers.ts";
import type { HostOptions, HostPorts } from "./host_ports.ts";
import { HostSource } from "./host_source.ts";
import { IdleWatch } from "./idle_watch.ts";
import { Pipe } from "./links.ts";
import type { Network } from "./network.ts";
import { createPicker } from "./policies.ts";
import type { Transfer } from "./transfer.ts";
import type { SentMark } from "../../peer/transfer/upload_slots.ts";
import { Uplink } from "./uplink.ts";
import { digestText, isRightDigest, joinWords, SPEC } from "./words.ts";

/** As peer/task/session.ts has them. */
const STARVING_AGAIN_MS = 1000;
const ALONE_AFTER_MS = 30_000;
const STARVING_PIECES = 64;
/** Bytes of a probe: peer/task/source_reader.ts. */
const PROBE_LENGTH = 1024 * 1024;

const UNKNOWN = 0, RIGHT = 1, WRONG = 2;

export class SimHost {
  readonly id: string;
  readonly index: number;
  readonly rack: number;
  readonly idc: string;
  readonly isLiar: boolean;
  readonly config: SimConfig;
  readonly uplink: Uplink;
  readonly downlink: Pipe;
  /** Which pieces it has sent. */
  readonly #marks = new Map<number, SentMark>();
  /** Hosts that hear what this one has. */
  readonly subscribers = new Set<SimHost>();
  readonly idleness: IdleWatch;
  /** What it sends now or will send. */
  readonly serving = new Set<Transfer>();
  isAlive = false;
  canSource = true;
  completeAtMs: number | null = null;
  /** Messages from and to the scheduler, and cries among them. */
  messages = 0;
  cries = 0;
  originBytes = 0;
  /** Pieces held that are not the right ones. */
  wrongCount = 0;
  failure: string | null = null;

  readonly #net: Network;
  readonly #known = new Map<string, SimHost>();
  #carriers: readonly string[] | null = null;
  #digests: Uint8Array;
  /** Pieces that are here and whose digest is not known yet. */
  readonly #waiting = new Map<number, { isRight: boolean; parentId: string }>();
  #session: { picker: PiecePicker; peers: HostPeers; source: HostSource } | null = null;
  #isManaged = false;
  #starvedAtMs = -Infinity;
  #life = 0;

  constructor(private readonly ports: HostPorts, { id, index, rack, isLiar }: HostOptions) {
    const { net } = ports;
    [this.#net, this.config] = [net, net.config];
    [this.id, this.index, this.rack, this.isLiar] = [id, index, rack, isLiar];
    const { upRate, downRate, slots, racks } = net.config;
    this.idc = racks > 1 ? `rack${rack}` : "";
    this.uplink = new Uplink(net.queue, { rate: upRate(index), slots });
    this.downlink = new Pipe(downRate(index));
    this.idleness = new IdleWatch(this, net.queue, index);
    this.#digests = new Uint8Array(net.pieceCount);
  }

  get heldCount(): number {
    return this.#session?.picker.heldCount ?? 0;
  }

  get missingCount(): number {
    return this.#net.pieceCount - this.heldCount;
  }
  get isComplete(): boolean {
    return this.missingCount === 0;
  }

  /** What it says it has: of a liar everything. */
  claims(number: number): boolean {
    return this.#session !== null && (this.isLiar || this.#session.picker.isHeld(number));
  }

  markOf(number: number): SentMark {
    const mark = this.#marks.get(number) ?? { isSent: false };
    if (!mark.isSent) this.#marks.set(number, mark);
    return mark;
  }

  knows(number: number): boolean {
    return this.#digests[number] !== UNKNOWN;
  }

  isNeighbour(other: SimHost): boolean {
    return this.#session?.peers.has(other.id) ?? false;
  }

  /** What a daemon says first, after hello. */
  joinMessages(): HostMessage[] {
    const meta = this.#session === null ? undefined : metaOf(this.config);
    return joinWords({ meta, heldCount: this.heldCount, isComplete: this.isComplete, canSource: this.canSource });
  }

  /** Starts; what was on its disk is there. */
  start(): void {
    this.isAlive = true;
    this.#life += 1;
  }

  /** SIGKILL: what is on disk stays, all else is gone. */
  kill(): void {
    this.isAlive = false;
    this.#isManaged = false;
    this.#known.clear();
    this.#waiting.clear();
    this.idleness.stop();
    const before = this.#session;
    before?.peers.stop();
    before?.source.stop();
    this.originBytes += before?.source.bytes ?? 0;
    this.#session = null;
    if (before !== null) this.#begin(before.picker);
    this.#net.broken(this);
  }

  /** The scheduler is gone: neighbours, then the origin. */
  lostScheduler(): void {
    this.#setManaged(false);
  }

  receive(message: SchedulerMessage): void {
    switch (message.type) {
      case "task":
        this.#setCarriers(message.carriers ?? null);
        this.#setNeighbours(message.neighbours.map(({ host_id }) => host_id), { isAll: true });
        if (message.meta !== null) this.#begin(null);
        this.#setManaged(true);
        if (this.#session !== null && this.isComplete) this.#sayComplete();
        break;
      case "meta":
        this.#begin(null);
        this.#setManaged(true);
        break;
      case "neighbours":
        if (message.carriers !== undefined) this.#setCarriers(message.carriers);
        this.#setNeighbours(message.add.map(({ host_id }) => host_id), { isAll: false });
        this.#removeNeighbours(message.remove);
        break;
      case "digests":
        return this.#learn(message.pieces);
      case "lease":
        return this.#lease(message);
      case "revoke":
        return this.#session?.source.revoke(message.lease_id);
      case "want_digests":
        return this.#sayDigests();
      case "failed":
        this.failure = message.error.message;
        break;
    }
  }

  offered(hostId: string, pieces: Bitmap): void {
    this.#session?.peers.offered(hostId, pieces);
  }

  heardHave(hostId: string, pieces: readonly number[]): void {
    this.#session?.peers.had(hostId, pieces);
  }

  /** The connection to a neighbour broke; it is dialled again while it is one. */
  linkLost(neighbour: SimHost): void {
    this.#session?.picker.lost(neighbour.id);
    if (this.isNeighbour(neighbour)) this.#net.subscribe(this, neighbour);
  }

  arrived(transfer: Transfer, isRight: boolean): void {
    this.#session?.peers.arrived(transfer, isRight);
  }

  requestFailed(transfer: Transfer, reason: { busy: boolean }): void {
    this.#session?.peers.failed(transfer, reason);
  }

  /** A neighbour has sent a piece. */
  accept(number: number, isRight: boolean, parentId: string): void {
    const digest = this.#digests[number];
    if (digest === UNKNOWN) {
      if (this.#session?.peers.isKnownOnly) return void (this.#net.count.wasted += 1);
      this.#waiting.set(number, { isRight, parentId });
      this.#session?.picker.pending(number, parentId);
    } else if ((digest === RIGHT) === isRight) this.#hold(number, isRight);
    else this.#wrong(number, parentId);
  }

  readFromOrigin(number: number): void {
    if (this.#digests[number] === UNKNOWN) this.#digests[number] = RIGHT;
    this.#waiting.delete(number);
    if (this.#session?.picker.isHeld(number)) this.#net.count.wasted += 1;
    else this.#hold(number, true);
    this.report(number);
  }

  report(number: number): void {
    this.#say({
      type: "pieces",
      task_id: SPEC.task_id,
      generation: "g1",
      pieces: [[number, this.#digestText(number)]],
    });
  }

  leaseEnded(leaseId: number): void {
    this.#say({ type: "lease_end", task_id: SPEC.task_id, lease_id: leaseId });
  }

  /** Pieces that a read kept back are free again. */
  freed(): void {
    this.#session?.peers.freed();
  }

  cancelRequests(numbers: readonly number[]): void {
    this.#session?.peers.cancel(numbers);
  }

  /** Something has ended: something else may begin, or this host is idle now. */
  settled(): void {
    const session = this.#session;
    if (session === null) return;
    session.source.pump();
    session.peers.pump();
    this.idleness.look();
  }

  #say(message: HostMessage): void {
    if (this.#isManaged) this.ports.say(this, message);
  }

  #digestText(number: number): string {
    return digestText(number, this.#digests[number] !== WRONG);
  }

  #begin(before: PiecePicker | null): void {
    if (this.#session !== null) return;
    const { pieceCount, random } = this.#net;
    const picker = createPicker(this.config.policy, pieceCount, random);
    for (let number = 0; number < pieceCount; number++) if (before?.isHeld(number)) picker.held(number);
    const peers = new HostPeers(this, picker, this.#net);
    this.#session = { picker, peers, source: new HostSource(this, picker, this.#net, () => peers.inFlight > 0) };
    if (!this.isLiar) picker.want(0, pieceCount);
    peers.setCarriers(this.#carriers);
    peers.update([...this.#known.values()], []);
    this.idleness.look();
  }

  #setManaged(isManaged: boolean): void {
    this.#isManaged = isManaged;
    const session = this.#session;
    if (session === null) return;
    session.peers.isKnownOnly = !isManaged;
    if (!isManaged) {
      for (const number of this.#waiting.keys()) session.picker.missing(number);
      this.#waiting.clear();
    }
    session.peers.freed();
    session.source.setAlone(!isManaged && this.canSource && this.isAlive && !this.isLiar);
    this.settled();
  }

  #setCarriers(hostIds: readonly string[] | null): void {
    this.#carriers = hostIds;
    this.#session?.peers.setCarriers(hostIds);
  }

  #setNeighbours(ids: readonly string[], { isAll }: { isAll: boolean }): void {
    const fixed = this.ports.fixedNeighbours(this);
    const hosts = fixed ?? ids.flatMap((id) => this.ports.hostOf(id) ?? []);
    if (isAll) this.#removeNeighbours([...this.#known.keys()].filter((id) => !hosts.some((host) => host.id === id)));
    for (const host of hosts) this.#known.set(host.id, host);
    if (!this.isLiar) this.#session?.peers.update(hosts, []);
  }

  #removeNeighbours(ids: readonly string[]): void {
    if (ids.length === 0 || this.ports.fixedNeighbours(this) !== undefined) return;
    for (const id of ids) this.#known.delete(id);
    this.#session?.peers.update([], ids);
  }

  #learn(pieces: readonly (readonly [number, string])[]): void {
    for (const [number, text] of pieces) {
      if (this.#digests[number] === UNKNOWN) this.#digests[number] = isRightDigest(text) ? RIGHT : WRONG;
      const waiting = this.#waiting.get(number);
      if (waiting === undefined) continue;
      this.#waiting.delete(number);
      this.#session?.picker.missing(number);
      this.#session?.peers.freed();
      this.accept(number, waiting.isRight, waiting.parentId);
    }
    this.#session?.peers.pump();
  }

  #lease({ lease_id, generation, first, count }: Extract<SchedulerMessage, { type: "lease" }>): void {
    if (generation !== null) {
      if (this.#session === null) return this.leaseEnded(lease_id);
      return this.#session.source.lease(lease_id, { first, count }, { isOpen: false });
    }
    const life = this.#life;
    this.#net.queue.after(2 * this.config.originLatencyMs, () => {
      if (life !== this.#life || !this.isAlive) return;
      this.#begin(null);
      this.#say({ type: "meta", task_id: SPEC.task_id, meta: metaOf(this.config) });
      const probed = Math.max(1, Math.floor(PROBE_LENGTH / this.config.pieceLength));
      this.#session?.source.lease(lease_id, { first: 0, count: probed }, { isOpen: true });
    });
  }

  #hold(number: number, isRight: boolean): void {
    const session = this.#session!;
    this.idleness.arrived();
    if (!isRight) this.wrongCount += 1;
    this.#waiting.delete(number);
    session.picker.held(number);
    this.#net.hold(this, number);
    this.#net.announce(this, number);
    if (!this.isComplete) return;
    this.completeAtMs = this.#net.queue.nowMs;
    this.#sayComplete();
    this.ports.onComplete(this);
  }

  #sayComplete(): void {
    this.#say({ type: "complete", task_id: SPEC.task_id, generation: "g1" });
  }

  #sayDigests(): void {
    const pieces = Array.from({ length: this.#net.pieceCount }, (_, number) => number)
      .filter((number) => this.#session?.picker.isHeld(number))
      .map((number): [number, string] => [number, this.#digestText(number)]);
    for (let at = 0; at < pieces.length; at += 1000) {
      const batch = pieces.slice(at, at + 1000);
      this.#say({ type: "pieces", task_id: SPEC.task_id, generation: "g1", pieces: batch });
    }
  }

  #wrong(number: number, parentId: string): void {
    this.#net.count.wasted += 1;
    this.#session?.picker.ban(parentId);
    this.#session?.peers.update([], [parentId]);
    this.#say({ type: "bad_peer", task_id: SPEC.task_id, host_id: parentId, piece: number });
  }

  get isIdle(): boolean {
    const session = this.#session;
    return session !== null && this.isAlive && !this.isLiar && !this.isComplete && session.peers.inFlight === 0 &&
      session.source.activeCount === 0;
  }

  /** Asks anybody, then cries for help, then reads the origin by itself. @returns whether it goes on crying */
  starve(idleMs: number): boolean {
    const { peers, picker, source } = this.#session!;
    peers.starves();
    if (!this.#isManaged || !this.isIdle) this.idleness.look();
    else if (idleMs > ALONE_AFTER_MS && this.canSource) source.setAlone(true);
    else {
      const { nowMs } = this.#net.queue;
      if (nowMs - this.#starvedAtMs < STARVING_AGAIN_MS) return true;
      this.#starvedAtMs = nowMs;
      const pieces = picker.idlePieces(STARVING_PIECES);
      this.cries += 1;
      if (pieces.length > 0) this.#say({ type: "starving", task_id: SPEC.task_id, generation: "g1", pieces });
      return true;
    }
    return false;
  }
}
