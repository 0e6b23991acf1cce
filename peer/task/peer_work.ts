/**
 * Fetches pieces of one generation from neighbours: keeps enough requests
 * under way, spreads them over the neighbours that have something, checks each
 * piece against its digest and drops a neighbour that sends a wrong one.
 *
 * Keeps: only one request writes a piece to disk as it comes; a second one
 * (end game) gathers it in memory and writes what was checked, after the first
 * has ended.
 */
import { startDigest } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { pieceRange } from "../core/piece.ts";
import type { Clock, Random } from "../core/clock.ts";
import type { Limiter } from "../core/rate_limit.ts";
import type { Neighbour } from "../core/wire/scheduler.ts";
import type { Exchange, PieceClient } from "../transfer/piece_transfer.ts";
import type { Ledger } from "./ledger.ts";
import { CROSSINGS_MAX, Locality } from "./locality.ts";
import type { PiecePicker } from "./piece_picker.ts";
import type { NeighbourLoad, RequestGate } from "./request_gate.ts";
import { RequestTimes } from "./request_times.ts";
import { piecesAtOnce } from "./task_rate.ts";

/** Pause after a neighbour had no free slot, and the first one after it failed; doubled up to the maximum. */
const BUSY_PAUSE_MS = 50;
const FAILED_PAUSE_MS = 250;
const FAILED_PAUSE_MS_MAX = 10_000;

export interface PeerWorkDeps {
  readonly client: PieceClient;
  readonly exchange: Exchange;
  /** What all tasks of this host share of the neighbours. */
  readonly gate: RequestGate;
  readonly limiters: readonly Limiter[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface PeerWorkOptions {
  readonly taskId: string;
  /** This host and where it is. */
  readonly place: { readonly hostId: string; readonly idc: string };
  readonly ledger: Ledger;
  readonly picker: PiecePicker;
  readonly onWrong: (number: number, hostId: string) => void;
  /** Bytes came from a neighbour that are of no use: the end game's loser, a wrong piece. */
  readonly onWasted: (bytes: number) => void;
  /** A request has ended, one way or the other: its piece may be free for others. */
  readonly onSettled: () => void;
  /** This host itself cannot go on: its disk is full or broken. */
  readonly onFatal: (error: LacewingError) => void;
}

interface NeighbourState {
  readonly address: string;
  readonly unsubscribe: () => void;
  readonly load: NeighbourLoad;
}

interface Flight {
  readonly startedAtMs: number;
  /** Whether its bytes go to disk as they come, and not into memory. */
  readonly writes: boolean;
  readonly controller: AbortController;
  readonly done: Promise<void>;
}

export class PeerWork {
  readonly #neighbours = new Map<string, NeighbourState>();
  readonly #flights = new Map<number, Map<string, Flight>>();
  #inFlight = 0;
  /** Of these, requests that bring a piece over for the idc. */
  #crossing = 0;
  /** Neighbours to look at in this turn of the event loop: all, or those with news; null when none is due. */
  #due: "all" | Set<string> | null = null;
  #wakeTimer: ReturnType<typeof setTimeout> | undefined;
  #wakeAtMs = Infinity;
  readonly #look = () => this.pump();
  #stopped = false;
  #knownOnly = false;
  readonly #times = new RequestTimes();
  readonly #locality: Locality;

  constructor(private readonly deps: PeerWorkDeps, private readonly options: PeerWorkOptions) {
    this.#locality = new Locality(options.place, options.picker.pieceCount);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether only pieces whose digest is known are of use: no scheduler will tell the others. */
  setKnownOnly(knownOnly: boolean): void {
    this.#knownOnly = knownOnly;
    this.pump();
  }

  /** @param hostIds who of this idc brings pieces over; null where all do */
  setCarriers(hostIds: readonly string[] | null): void {
    this.#locality.setCarriers(hostIds);
    this.pump();
  }

  /** Nothing has been under way for a while: the next request may go to any neighbour. @returns whether that is new */
  starves(): boolean {
    const isNew = this.#locality.starves();
    if (isNew) this.pump();
    return isNew;
  }

  /** Changes the neighbours; one that is known keeps its link unless its address changed. */
  update(add: readonly Neighbour[], remove: readonly string[]): void {
    for (const hostId of remove) this.#drop(hostId);
    for (const { host_id: hostId, address, idc } of add) {
      if (this.options.picker.isBanned(hostId)) continue;
      const known = this.#neighbours.get(hostId);
      if (known?.address === address) continue;
      this.#drop(hostId);
      this.#locality.add(hostId, idc);
      const { ledger, picker, taskId } = this.options;
      const unsubscribe = this.deps.exchange.subscribe({ hostId, address }, {
        taskId,
        generation: ledger.meta.generation,
        pieceCount: picker.pieceCount,
      }, {
        onBitmap: (id, pieces) => {
          picker.offer(id, pieces, { isNear: this.#locality.isNear(id) });
          this.#heard(id);
        },
        onHave: (id, pieces) => {
          picker.have(id, pieces);
          this.#heard(id);
        },
        onLost: (id) => picker.lost(id),
      });
      this.#neighbours.set(hostId, { address, unsubscribe, load: this.deps.gate.neighbour(hostId) });
    }
    this.pump();
  }

  /** Starts what may be started, once per event-loop turn. */
  pump(): void {
    this.#queue();
    this.#due = "all";
  }

  /** Of all others nothing more is to be had than when they were last looked at. */
  #heard(hostId: string): void {
    this.#queue();
    if (this.#due !== "all") this.#due = (this.#due ?? new Set()).add(hostId);
  }

  #queue(): void {
    if (this.#due !== null) return;
    queueMicrotask(() => {
      const due = this.#due;
      this.#due = null;
      if (!this.#stopped && due !== null) this.#startRequests(due);
    });
  }

  /** Time has passed: asks other neighbours too for pieces whose request drips or hangs, and for what was left to others. */
  look(): void {
    if (this.#locality.isActive) this.pump();
    if (this.#stopped || this.#inFlight === 0) return;
    const nowMs = this.deps.clock.nowMs();
    const { lateAfterMs } = this.#times;
    for (const [number, flights] of this.#flights) {
      const [flight, ...others] = flights.values();
      if (flight === undefined || others.length > 0 || nowMs - flight.startedAtMs < lateAfterMs) continue;
      const free = [...this.#neighbours].filter(([, { load }]) => load.pausedUntilMs <= nowMs)
        .sort(([, a], [, b]) => a.load.inFlight - b.load.inFlight);
      const near = free.filter(([hostId]) => !this.#locality.isActive || this.#locality.isNear(hostId));
      const next = [...near, ...free].find(([hostId]) => this.options.picker.hedge(number, hostId));
      if (next !== undefined) this.#fetch(...next, { number, duplicate: true });
    }
  }

  /** Ends the requests for these pieces and waits until nothing of them is written any more. */
  async cancel(numbers: readonly number[]): Promise<void> {
    const flights = numbers.flatMap((number) => [...this.#flights.get(number)?.values() ?? []]);
    for (const flight of flights) flight.controller.abort(new DOMException("Not needed any more", "AbortError"));
    await Promise.all(flights.map((flight) => flight.done));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#wakeTimer);
    this.deps.gate.forget(this.#look);
    const flights = [...this.#flights.keys()];
    for (const hostId of [...this.#neighbours.keys()]) this.#drop(hostId);
    await this.cancel(flights);
  }

  #drop(hostId: string): void {
    const state = this.#neighbours.get(hostId);
    if (state !== undefined) this.deps.gate.release(hostId);
    state?.unsubscribe();
    this.#neighbours.delete(hostId);
    this.#locality.remove(hostId);
    this.options.picker.lost(hostId);
  }

  #startRequests(due: "all" | ReadonlySet<string>): void {
    const { ledger, picker } = this.options;
    const { gate, limiters } = this.deps;
    const concurrent = Math.min(gate.depth.count, piecesAtOnce(limiters, ledger.meta.piece_length));
    const own = () => this.#inFlight - this.#crossing;
    const isFull = () => own() >= concurrent || !gate.isOpenTo(own());
    if (!picker.hasWork) return;
    if (isFull() && !this.#locality.isBetween) return gate.wait(this.#look);
    const nowMs = this.deps.clock.nowMs();
    const open = [...this.#neighbours].filter(([, { load }]) => load.pausedUntilMs <= nowMs);
    const ready = due === "all" ? open : open.filter(([hostId]) => due.has(hostId));
    const perNeighbour = Math.max(2, Math.min(4, Math.ceil(concurrent / Math.max(1, open.length))));
    const exhausted = new Set<string>();
    const isFullFor = (hostId: string) =>
      this.#locality.crosses(hostId) ? this.#crossing >= Math.min(CROSSINGS_MAX, concurrent) : isFull();
    while (!isFull() || this.#locality.isBetween) {
      const free = this.#locality.isBetween ? ready.filter(([hostId]) => !isFullFor(hostId)) : ready;
      const next = this.#leastBusy(free, perNeighbour, exhausted);
      if (next === null) break;
      const [hostId, state] = next;
      const picked = picker.pick(
        hostId,
        (piece) =>
          (!this.#knownOnly || ledger.digestOf(piece) !== undefined) &&
          this.#locality.mayAsk(hostId, piece, picker.isOfferedNear(piece), nowMs),
      );
      if (picked === null) exhausted.add(hostId);
      else this.#fetch(hostId, state, picked);
    }
    if (!picker.hasWork) return;
    gate.wait(this.#look);
    this.#wakeLater(nowMs);
  }

  #leastBusy(ready: [string, NeighbourState][], max: number, exhausted: Set<string>): [string, NeighbourState] | null {
    let best: [string, NeighbourState] | null = null;
    let least = max;
    let ties = 0;
    for (const entry of ready) {
      const [hostId, { load: { inFlight } }] = entry;
      if (inFlight >= max || inFlight > least || exhausted.has(hostId)) continue;
      ties = inFlight === least ? ties + 1 : 1;
      least = inFlight;
      if (this.deps.random() * ties < 1) best = entry;
    }
    return best;
  }

  #wakeLater(nowMs: number): void {
    let atMs = Infinity;
    for (const { load } of this.#neighbours.values()) {
      if (load.pausedUntilMs > nowMs) atMs = Math.min(atMs, load.pausedUntilMs);
    }
    if (atMs === this.#wakeAtMs) return;
    clearTimeout(this.#wakeTimer);
    this.#wakeAtMs = atMs;
    if (atMs === Infinity) return;
    this.#wakeTimer = setTimeout(() => {
      this.#wakeAtMs = Infinity;
      this.pump();
    }, atMs - nowMs + 1);
  }

  #fetch(hostId: string, state: NeighbourState, picked: { number: number; duplicate: boolean }): void {
    const controller = new AbortController();
    const startedAtMs = this.deps.clock.nowMs();
    const crossing = this.#locality.crosses(hostId) ? 1 : 0;
    this.#crossing += crossing;
    this.#inFlight += 1;
    state.load.inFlight += 1;
    if (crossing === 0) this.deps.gate.started();
    this.#locality.asked();
    const done = this.#transfer(hostId, state, { ...picked, crosses: crossing > 0 }, controller).then(
      () => this.#succeeded(hostId, state.load, startedAtMs),
      (error) => this.#failed(hostId, state.load, picked.number, error),
    ).finally(() => {
      this.#inFlight -= 1;
      this.#crossing -= crossing;
      state.load.inFlight -= 1;
      this.options.picker.failed(picked.number, hostId);
      const flights = this.#flights.get(picked.number);
      flights?.delete(hostId);
      if (flights?.size === 0) this.#flights.delete(picked.number);
      // Who waits comes before this task's own next request.
      if (crossing === 0) this.deps.gate.ended();
      else this.deps.gate.wake();
      this.pump();
      this.options.onSettled();
    });
    const flights = this.#flights.get(picked.number) ?? new Map<string, Flight>();
    flights.set(hostId, { startedAtMs, writes: !picked.duplicate, controller, done });
    this.#flights.set(picked.number, flights);
  }

  async #transfer(
    hostId: string,
    state: NeighbourState,
    { number, duplicate, crosses }: { number: number; duplicate: boolean; crosses: boolean },
    controller: AbortController,
  ) {
    const { ledger, picker, taskId } = this.options;
    const { meta, store } = ledger;
    const { offset, length } = pieceRange(number, {
      contentLength: meta.content_length,
      pieceLength: meta.piece_length,
    });
    const digest = startDigest("sha256");
    const memory = duplicate ? new Uint8Array(length) : null;
    let received = 0;
    const { signal } = controller;
    try {
      await this.deps.client.fetch(
        {
          address: state.address,
          taskId,
          generation: meta.generation,
          number,
          length,
          missing: picker.pieceCount - picker.heldCount,
          crosses,
        },
        async (bytes) => {
          for (const limiter of this.deps.limiters) await limiter.take(bytes.length, signal);
          signal.throwIfAborted();
          digest.update(bytes);
          if (memory !== null) memory.set(bytes, received);
          else await store.write(bytes, offset + received);
          received += bytes.length;
        },
        { signal },
      );
    } catch (error) {
      this.options.onWasted(received);
      throw error;
    }
    await this.#accept(hostId, number, { sha256: digest.digest("hex"), memory, offset, length });
  }

  /** Ends the other request for the piece (after its last write, if this one comes from memory) and counts the piece. */
  async #accept(
    hostId: string,
    number: number,
    { sha256, memory, offset, length }: { sha256: string; memory: Uint8Array | null; offset: number; length: number },
  ) {
    const { ledger, picker } = this.options;
    const known = ledger.digestOf(number);
    if (picker.isHeld(number) || (memory !== null && known !== sha256)) {
      this.options.onWasted(length);
      if (known !== undefined && known !== sha256) this.options.onWrong(number, hostId);
      return;
    }
    const others = [...this.#flights.get(number) ?? []].filter(([id]) => id !== hostId).map(([, flight]) => flight);
    for (const other of others) other.controller.abort(new DOMException("Another neighbour was faster", "AbortError"));
    if (memory !== null) {
      // Not for one in memory: when the first has failed, two of these would wait for each other for ever.
      await Promise.all(others.filter(({ writes }) => writes).map(({ done }) => done));
      if (picker.isHeld(number)) return this.options.onWasted(length);
      await ledger.store.write(memory, offset);
    }
    const verdict = ledger.accept(number, sha256, { kind: "peer", hostId });
    if (verdict === "wrong" || verdict === "useless") this.options.onWasted(length);
    if (verdict === "wrong") this.options.onWrong(number, hostId);
  }

  #succeeded(hostId: string, load: NeighbourLoad, startedAtMs: number): void {
    const ms = this.deps.clock.nowMs() - startedAtMs;
    this.#locality.took(hostId, ms);
    load.failures = 0;
    this.deps.gate.depth.succeeded();
    this.#times.took(ms);
  }

  #failed(hostId: string, load: NeighbourLoad, number: number, error: unknown): void {
    if (error instanceof DOMException && error.name === "AbortError") return;
    if (error instanceof LacewingError && (error.code === "disk_full" || error.code === "file")) {
      return this.options.onFatal(error);
    }
    const busy = error instanceof LacewingError && error.code === "unavailable";
    if (busy) this.deps.gate.depth.refused();
    else load.failures += 1;
    const pauseMs = busy ? BUSY_PAUSE_MS : Math.min(FAILED_PAUSE_MS * 2 ** (load.failures - 1), FAILED_PAUSE_MS_MAX);
    load.pausedUntilMs = this.deps.clock.nowMs() + pauseMs * (0.5 + this.deps.random());
    this.deps.log.debug("piece request failed", { host_id: hostId, piece: number, error });
  }
}
