/**
 * Carries what hosts say and send to each other: requests, pieces with their
 * time on the uplink, the link between racks and the downlink, and who has
 * what. Knows hosts and links; decides nothing.
 */
import { Bitmap } from "../../peer/core/bitmap.ts";
import type { Random } from "../../peer/core/clock.ts";
import { pieceRange } from "../../peer/core/piece.ts";
import { piecesOf, type SimConfig } from "./config.ts";
import type { EventQueue } from "./event_queue.ts";
import type { SimHost } from "./host.ts";
import { Pipe, SharedLink } from "./links.ts";
import type { Transfer } from "./transfer.ts";

/** Dial, upgrade, subscribe, bitmap: so many ways over the network until a neighbour's offer is known. */
const WAYS_TO_SUBSCRIBE = 6;
/** Pause before a neighbour that does not answer is dialled again. */
const REDIAL_MS = 500;

export class Network {
  readonly origin: SharedLink;
  readonly pieceCount: number;
  readonly #cross: Pipe;
  /** Host × piece: in one place, because a million looks at it a second go to hosts at random. */
  readonly #held: Uint8Array;
  readonly #afterLatency: (work: () => void) => void;
  readonly #afterSubscription: (work: () => void) => void;
  /** Pieces that were of no use, asked twice, lost on the way; announcements heard. */
  readonly count = { wasted: 0, duplicates: 0, lost: 0, transfers: 0, haves: 0, crossed: 0, refused: 0 };

  constructor(readonly config: SimConfig, readonly queue: EventQueue, readonly random: Random) {
    this.origin = new SharedLink(queue, config.originRate);
    this.#cross = new Pipe(config.crossRate);
    this.pieceCount = piecesOf(config);
    this.#held = new Uint8Array(config.hosts * this.pieceCount);
    this.#afterLatency = queue.lane(config.latencyMs);
    this.#afterSubscription = queue.lane(WAYS_TO_SUBSCRIBE * config.latencyMs);
  }

  /** Notes that the piece is on a host's disk, where it stays. */
  hold(host: SimHost, number: number): void {
    this.#held[host.index * this.pieceCount + number] = 1;
  }

  isHeld(host: SimHost, number: number): boolean {
    return this.#held[host.index * this.pieceCount + number] === 1;
  }

  lengthOf(number: number): number {
    return pieceRange(number, this.config).length;
  }

  /** From now on `host` hears what `neighbour` has. */
  subscribe(host: SimHost, neighbour: SimHost): void {
    this.#afterSubscription(() => {
      if (!host.isAlive || !host.isNeighbour(neighbour)) return;
      if (!neighbour.isAlive) return this.queue.after(REDIAL_MS, () => this.subscribe(host, neighbour));
      neighbour.subscribers.add(host);
      host.offered(neighbour.id, this.#offerOf(neighbour));
    });
  }

  #offerOf(neighbour: SimHost): Bitmap {
    const pieces = new Bitmap(this.pieceCount);
    if (neighbour.heldCount === 0 && !neighbour.isLiar) return pieces;
    for (let number = 0; number < this.pieceCount; number++) if (neighbour.claims(number)) pieces.add(number);
    return pieces;
  }

  /** A host has one more piece: those who listen hear of it together. */
  announce(host: SimHost, number: number): void {
    if (host.subscribers.size === 0) return;
    const pieces = [number];
    this.#afterLatency(() => {
      if (!host.isAlive) return;
      this.count.haves += host.subscribers.size;
      for (const child of host.subscribers) {
        // What is held is asked of nobody. Half of all announcements end here, before they cost anything.
        if (!this.isHeld(child, number)) child.heardHave(host.id, pieces);
      }
    });
  }

  request(transfer: Transfer): void {
    this.#afterLatency(() => this.#serve(transfer));
  }

  /** The child no longer waits for it, or has it. */
  over(transfer: Transfer, { cancelled }: { cancelled: boolean }): void {
    if (!transfer.isServed) return;
    transfer.parent.serving.delete(transfer);
    if (!cancelled) return;
    this.count.wasted += 1;
    transfer.parent.uplink.cancel(transfer);
  }

  #serve(transfer: Transfer): void {
    const { parent, child, number } = transfer;
    if (transfer.isOver || !child.isAlive) return;
    if (!parent.isAlive || !parent.claims(number)) return this.#fail(transfer, { busy: false });
    transfer.need = child.missingCount;
    transfer.isServed = true;
    parent.serving.add(transfer);
    parent.uplink.request(transfer);
  }

  /** The uplink had no room for it. */
  refused(transfer: Transfer): void {
    this.count.refused += 1;
    transfer.parent.serving.delete(transfer);
    this.#fail(transfer, { busy: true });
  }

  /** Its last byte has left the parent; the first one did at `startedAtMs`. */
  sent(transfer: Transfer, startedAtMs: number): void {
    const { parent, child, length } = transfer;
    parent.serving.delete(transfer);
    transfer.isServed = false;
    this.count.transfers += 1;
    let atMs = Math.max(this.queue.nowMs, child.downlink.pass(length, startedAtMs));
    if (parent.rack !== child.rack) {
      this.count.crossed += length;
      atMs = Math.max(atMs, this.#cross.pass(length, startedAtMs));
    }
    const isLost = this.config.loss > 0 && this.random() < this.config.loss;
    this.queue.at(atMs + this.config.latencyMs, () => {
      if (transfer.isOver || !child.isAlive) return;
      if (!isLost) return child.arrived(transfer, !parent.isLiar);
      this.count.lost += 1;
      child.requestFailed(transfer, { busy: false });
    });
  }

  /** The host is gone: its children's connections break. */
  broken(host: SimHost): void {
    for (const transfer of host.serving) this.#fail(transfer, { busy: false });
    host.serving.clear();
    host.uplink.stop();
    const children = [...host.subscribers];
    host.subscribers.clear();
    this.#afterLatency(() => {
      for (const child of children) child.linkLost(host);
    });
  }

  #fail(transfer: Transfer, { busy }: { busy: boolean }): void {
    transfer.isServed = false;
    this.#afterLatency(() => {
      if (!transfer.isOver && transfer.child.isAlive) transfer.child.requestFailed(transfer, { busy });
    });
  }
}
