/**
 * A simulated host's requests to its neighbours: the driver around the real
 * picker, as peer/task/peer_work.ts is, without bytes. The same limits, pauses
 * and choice of the least busy neighbour.
 */
import type { PiecePicker } from "../../peer/task/piece_picker.ts";
import type { Bitmap } from "../../peer/core/bitmap.ts";
import { CROSSINGS_MAX, Locality } from "../../peer/task/locality.ts";
import { RequestDepth } from "../../peer/task/request_depth.ts";
import type { SimHost } from "./host.ts";
import type { Network } from "./network.ts";
import { Transfer } from "./transfer.ts";

/** As peer/task/peer_work.ts has them. */
const BUSY_PAUSE_MS = 50;
const FAILED_PAUSE_MS = 250;
const FAILED_PAUSE_MS_MAX = 10_000;
/** As peer/task/session.ts has it. */
const CHECK_INTERVAL_MS = 100;

export interface NeighbourState {
  readonly host: SimHost;
  inFlight: number;
  failures: number;
  pausedUntilMs: number;
  /** It had nothing to ask for when so many pieces had become free again; −1: it may have. */
  emptyAt: number;
  /** The round of requests in which it was found to have nothing more. */
  exhaustedIn: number;
}

export class HostPeers {
  readonly #neighbours = new Map<string, NeighbourState>();
  /** The same, oldest first. */
  #states: NeighbourState[] = [];
  readonly #flights = new Map<number, Transfer[]>();
  /** Rises with each piece that is free to be asked for again. */
  #freed = 0;
  inFlight = 0;
  /** Of these, requests that bring a piece over for the idc. */
  #crossing = 0;
  isKnownOnly = false;

  #round = 0;
  readonly #depth: RequestDepth;
  readonly #locality: Locality;
  #isWaiting = false;

  constructor(private readonly host: SimHost, private readonly picker: PiecePicker, private readonly net: Network) {
    this.#depth = new RequestDepth(host.config.concurrent);
    this.#locality = new Locality({ hostId: host.id, idc: host.idc }, picker.pieceCount);
  }

  offered(hostId: string, pieces: Bitmap): void {
    this.picker.offer(hostId, pieces, { isNear: this.#locality.isNear(hostId) });
    this.#heard(hostId);
  }

  had(hostId: string, pieces: readonly number[]): void {
    this.picker.have(hostId, pieces);
    this.#heard(hostId);
  }

  setCarriers(hostIds: readonly string[] | null): void {
    this.#locality.setCarriers(hostIds);
    this.freed();
  }

  /** The host starves: its next request may go anywhere. */
  starves(): void {
    if (!this.#locality.starves()) return;
    this.freed();
    this.pump();
  }

  update(add: readonly SimHost[], remove: readonly string[]): void {
    for (const id of remove) this.#drop(id);
    for (const host of add) {
      if (this.picker.isBanned(host.id) || this.#neighbours.has(host.id)) continue;
      this.#locality.add(host.id, host.idc);
      const state = { host, inFlight: 0, failures: 0, pausedUntilMs: 0, emptyAt: -1, exhaustedIn: 0 };
      this.#neighbours.set(host.id, state);
      this.#states.push(state);
      this.net.subscribe(this.host, host);
    }
    this.pump();
  }

  /** A neighbour has said what it has, or a piece more. */
  #heard(hostId: string): void {
    const state = this.#neighbours.get(hostId);
    if (state === undefined) return;
    state.emptyAt = -1;
    if (this.#isFull || !this.picker.hasWork) return;
    // Of all others nothing more is to be had than when they were last asked.
    if (state.pausedUntilMs <= this.net.queue.nowMs) this.#startRequests([state]);
  }

  /** Pieces that were kept back may be asked for again. */
  freed(): void {
    this.#freed += 1;
  }

  has(hostId: string): boolean {
    return this.#neighbours.has(hostId);
  }

  pump(): void {
    if (this.#isFull || !this.picker.hasWork) return;
    const { nowMs } = this.net.queue;
    const ready: NeighbourState[] = [];
    const isEndGame = this.picker.heldCount + this.#flights.size >= this.picker.pieceCount;
    for (const state of this.#states) {
      // Who had nothing then has nothing now: a look at each for each event would cost most of the run.
      const isEmpty = state.emptyAt === this.#freed && !isEndGame;
      if (state.pausedUntilMs <= nowMs && !isEmpty && !this.#isFullFor(state)) ready.push(state);
    }
    if (ready.length > 0) this.#startRequests(ready);
  }

  /** A lease covers these pieces: neighbours need not send them. */
  cancel(numbers: readonly number[]): void {
    for (const number of numbers) {
      for (const transfer of [...this.#flights.get(number) ?? []]) this.#end(transfer, { cancelled: true });
    }
  }

  /** The host is gone. */
  stop(): void {
    for (const id of [...this.#neighbours.keys()]) this.#drop(id);
    for (const transfers of [...this.#flights.values()]) {
      for (const transfer of [...transfers]) this.#end(transfer, { cancelled: true });
    }
  }

  /** The last byte is here. @param isRight whether they are the piece's bytes */
  arrived(transfer: Transfer, isRight: boolean): void {
    const { number, parent } = transfer;
    transfer.state.failures = 0;
    this.#locality.took(parent.id, this.net.queue.nowMs - transfer.startedAtMs);
    this.#depth.succeeded();
    if (this.picker.isHeld(number)) this.net.count.wasted += 1;
    else {
      for (const other of this.#flights.get(number) ?? []) {
        if (other !== transfer) this.#end(other, { cancelled: true });
      }
      this.host.accept(number, isRight, parent.id);
    }
    this.#end(transfer, { cancelled: false });
    this.pump();
    this.host.settled();
  }

  failed(transfer: Transfer, { busy }: { busy: boolean }): void {
    const { state } = transfer;
    if (busy) this.#depth.refused();
    else state.failures += 1;
    const pauseMs = busy ? BUSY_PAUSE_MS : Math.min(FAILED_PAUSE_MS * 2 ** (state.failures - 1), FAILED_PAUSE_MS_MAX);
    state.pausedUntilMs = this.net.queue.nowMs + pauseMs * (0.5 + this.net.random());
    this.#end(transfer, { cancelled: false });
    this.net.queue.at(state.pausedUntilMs + 1, () => this.host.isAlive && this.pump());
    this.pump();
    this.host.settled();
  }

  #end(transfer: Transfer, { cancelled }: { cancelled: boolean }): void {
    const { number, state, parent } = transfer;
    if (transfer.isOver) return;
    transfer.isOver = true;
    this.inFlight -= 1;
    if (transfer.crosses) this.#crossing -= 1;
    state.inFlight -= 1;
    this.picker.failed(number, parent.id);
    if (!this.picker.isHeld(number)) this.#freed += 1;
    const flights = this.#flights.get(number) ?? [];
    if (flights.length > 1) this.#flights.set(number, flights.filter((other) => other !== transfer));
    else this.#flights.delete(number);
    this.net.over(transfer, { cancelled });
  }

  #drop(id: string): void {
    const state = this.#neighbours.get(id);
    if (state === undefined) return;
    this.#neighbours.delete(id);
    this.#states = this.#states.filter((other) => other !== state);
    this.#locality.remove(id);
    this.picker.lost(id);
    state.host.subscribers.delete(this.host);
  }

  #startRequests(ready: readonly NeighbourState[]): void {
    const concurrent = this.#depth.count;
    const perNeighbour = Math.max(2, Math.min(4, Math.ceil(concurrent / Math.max(1, this.#neighbours.size))));
    this.#round += 1;
    while (!this.#isFull) {
      const state = this.#leastBusy(ready, perNeighbour);
      if (state === null) return;
      const hostId = state.host.id;
      const picked = this.picker.pick(hostId, (piece) => this.#mayAsk(hostId, piece));
      if (picked === null) {
        state.exhaustedIn = this.#round;
        state.emptyAt = this.#freed;
      } else this.#fetch(state, picked.number, picked.duplicate);
    }
  }

  #mayAsk(hostId: string, piece: number): boolean {
    if (this.isKnownOnly && !this.host.knows(piece)) return false;
    const { nowMs } = this.net.queue;
    if (this.#locality.mayAsk(hostId, piece, this.picker.isOfferedNear(piece), nowMs)) return true;
    this.#lookAgain();
    return false;
  }

  /** The daemon looks every 100 ms whether a piece that was left to others is to be asked for now. */
  #lookAgain(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.net.queue.after(CHECK_INTERVAL_MS, () => {
      this.#isWaiting = false;
      if (!this.host.isAlive) return;
      this.freed();
      this.pump();
      this.host.settled();
    });
  }

  get #isFull(): boolean {
    const isFull = this.inFlight - this.#crossing >= this.#depth.count;
    return isFull && (!this.#locality.isBetween || this.#crossing >= CROSSINGS_MAX);
  }

  #isFullFor({ host }: NeighbourState): boolean {
    if (!this.#locality.crosses(host.id)) return this.inFlight - this.#crossing >= this.#depth.count;
    return this.#crossing >= CROSSINGS_MAX;
  }

  #leastBusy(ready: readonly NeighbourState[], max: number): NeighbourState | null {
    let best: NeighbourState | null = null;
    let ties = 0;
    for (const state of ready) {
      if (state.inFlight >= max || state.exhaustedIn === this.#round || this.#isFullFor(state)) continue;
      if (best !== null && state.inFlight > best.inFlight) continue;
      ties = best !== null && state.inFlight === best.inFlight ? ties + 1 : 1;
      if (this.net.random() * ties < 1) best = state;
    }
    return best;
  }

  #fetch(state: NeighbourState, number: number, duplicate: boolean): void {
    this.inFlight += 1;
    state.inFlight += 1;
    this.#locality.asked();
    this.net.count.duplicates += duplicate ? 1 : 0;
    const crosses = this.#locality.crosses(state.host.id);
    if (crosses) this.#crossing += 1;
    const transfer = new Transfer(this.net, this.host, { state, number, crosses });
    const flights = this.#flights.get(number);
    if (flights === undefined) this.#flights.set(number, [transfer]);
    else flights.push(transfer);
    this.net.request(transfer);
  }
}
