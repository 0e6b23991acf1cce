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
import type { Transfer } from "./host_peers.ts";
import { Pipe, SharedLink } from "./links.ts";

/** Dial, upgrade, subscribe, bitmap: so many ways over the network until a neighbour's offer is known. */
const WAYS_TO_SUBSCRIBE = 6;
/** Pause before a neighbour that does not answer is dialled again. */
const REDIAL_MS = 500;

export class Network {
  readonly origin: SharedLink;
  readonly pieceCount: number;
  readonly #cross: Pipe;
  /** Pieces that were of no use, asked twice, lost on the way; announcements heard. */
  readonly count = { wasted: 0, duplicates: 0, lost: 0, transfers: 0, haves: 0, crossed: 0, refused: 0 };

  constructor(readonly config: SimConfig, readonly queue: EventQueue, readonly random: Random) {
    this.origin = new SharedLink(queue, config.originRate);
    this.#cross = new Pipe(config.crossRate);
    this.pieceCount = piecesOf(config);
  }

  lengthOf(number: number): number {
    return pieceRange(number, this.config).length;
  }

  /** From now on `host` hears what `neighbour` has. */
  subscribe(host: SimHost, neighbour: SimHost): void {
    this.queue.after(WAYS_TO_SUBSCRIBE * this.config.latencyMs, () => {
      if (!host.isAlive || !host.isNeighbour(neighbour)) return;
      if (!neighbour.isAlive) return this.queue.after(REDIAL_MS, () => this.subscribe(host, neighbour));
      neighbour.subscribers.add(host);
      const pieces = new Bitmap(this.pieceCount);
      for (let number = 0; number < this.pieceCount; number++) if (neighbour.claims(number)) pieces.add(number);
      host.offered(neighbour.id, pieces);
    });
  }

  /** A host has one more piece: those who listen hear of it together. */
  announce(host: SimHost, number: number): void {
    if (host.subscribers.size === 0) return;
    const pieces = [number];
    this.queue.after(this.config.latencyMs, () => {
      if (!host.isAlive) return;
      this.count.haves += host.subscribers.size;
      for (const child of host.subscribers) child.heardHave(host.id, pieces);
    });
  }

  request(transfer: Transfer): void {
    this.queue.after(this.config.latencyMs, () => this.#serve(transfer));
  }

  /** The child no longer waits for it, or has it. */
  over({ parent, upload, ...transfer }: Transfer, { cancelled }: { cancelled: boolean }): void {
    if (upload === null) return;
    parent.serving.delete(upload);
    if (!cancelled) return;
    this.count.wasted += 1;
    parent.uplink.cancel(transfer.child.id, upload.onSent);
  }

  #serve(transfer: Transfer): void {
    const { parent, child, number } = transfer;
    if (transfer.isOver || !child.isAlive) return;
    if (!parent.isAlive || !parent.claims(number)) return this.#fail(transfer, { busy: false });
    const length = this.lengthOf(number);
    const upload = {
      hostId: child.id,
      need: child.missingCount,
      length,
      onSent: (startedAtMs: number) => this.#sent(transfer, length, startedAtMs),
      onRefused: () => {
        this.count.refused += 1;
        this.#fail(transfer, { busy: true });
      },
    };
    transfer.upload = upload;
    parent.serving.set(upload, transfer);
    parent.uplink.request(upload);
  }

  #sent(transfer: Transfer, length: number, startedAtMs: number): void {
    const { parent, child } = transfer;
    parent.serving.delete(transfer.upload!);
    transfer.upload = null;
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
    for (const transfer of host.serving.values()) this.#fail(transfer, { busy: false });
    host.serving.clear();
    host.uplink.stop();
    const children = [...host.subscribers];
    host.subscribers.clear();
    this.queue.after(this.config.latencyMs, () => {
      for (const child of children) child.linkLost(host);
    });
  }

  #fail(transfer: Transfer, { busy }: { busy: boolean }): void {
    transfer.upload = null;
    this.queue.after(this.config.latencyMs, () => {
      if (!transfer.isOver && transfer.child.isAlive) transfer.child.requestFailed(transfer, { busy });
    });
  }
}
