/**
 * What a host's upload server does, in virtual time: as many slots as the real
 * one gives (`SlotCount`), requests that wait for one for a moment, and the same
 * choice among them (`nextClaim`). Transfers in slots share the uplink.
 */
import { SlotCount } from "../../peer/transfer/slot_count.ts";
import { lastToYield, nextClaim, type SentMark, waitingMax } from "../../peer/transfer/upload_slots.ts";
import type { EventQueue } from "./event_queue.ts";
import { type Flow, SharedLink } from "./links.ts";

/** As peer/transfer/upload_server.ts has it. */
const SLOT_WAIT_MS = 2_000;

/** A piece that a host wants to be sent. */
export interface Upload {
  readonly hostId: string;
  readonly need: number;
  /** Whether it brings the piece over for all of its idc. */
  readonly crosses?: boolean;
  /** Whether the host has sent the piece. */
  readonly mark: SentMark;
  readonly length: number;
  /** Since when it waits for a slot; the uplink's own note. */
  waitsSinceMs: number;
  /** The last byte has left; `startedAtMs` is when the first one did. */
  onSent(startedAtMs: number): void;
  /** All slots were taken for too long. */
  onRefused(): void;
}

export class Uplink {
  readonly link: SharedLink;
  readonly #active = new Map<Upload, Flow>();
  readonly #activeByHost = new Map<string, number>();
  readonly #count: SlotCount;
  #waiting: Upload[] = [];
  #isWatched = false;

  constructor(private readonly queue: EventQueue, config: { rate: number; slots: number }) {
    this.link = new SharedLink(queue, config.rate);
    this.#count = new SlotCount(config.slots);
  }

  request(upload: Upload): void {
    if (this.#active.size < this.#count.count) return this.#start(upload);
    if (this.#waiting.length >= waitingMax(this.#count.count)) {
      const at = lastToYield(this.#waiting, upload);
      if (at < 0) return upload.onRefused();
      this.#waiting.splice(at, 1)[0]!.onRefused();
    }
    upload.waitsSinceMs = this.queue.nowMs;
    this.#waiting.push(upload);
    this.#watch();
  }

  /** Nobody waits for it any more. */
  cancel(upload: Upload): void {
    const at = this.#waiting.indexOf(upload);
    if (at >= 0) this.#waiting.splice(at, 1);
    const flow = this.#active.get(upload);
    if (flow === undefined) return;
    this.link.stop(flow);
    this.#release(upload);
  }

  /** The host is gone: nothing more is sent, and nobody is told. */
  stop(): void {
    this.link.stopAll();
    this.#active.clear();
    this.#activeByHost.clear();
    this.#waiting = [];
  }

  #start(upload: Upload): void {
    const flow: Flow = this.link.start(upload.length, () => {
      const isBusy = this.#active.size >= this.#count.count && this.#waiting.length > 0;
      this.#count.ended(upload.length, { isBusy }, this.queue.nowMs);
      this.#release(upload);
      upload.onSent(flow.startedAtMs);
    });
    this.#active.set(upload, flow);
    upload.mark.isSent = true;
    this.#activeByHost.set(upload.hostId, (this.#activeByHost.get(upload.hostId) ?? 0) + 1);
  }

  #release(upload: Upload): void {
    if (!this.#active.delete(upload)) return;
    const left = (this.#activeByHost.get(upload.hostId) ?? 1) - 1;
    if (left === 0) this.#activeByHost.delete(upload.hostId);
    else this.#activeByHost.set(upload.hostId, left);
    while (this.#active.size < this.#count.count) {
      const next = nextClaim(this.#waiting, this.#activeByHost);
      if (next < 0) return;
      this.#start(this.#waiting.splice(next, 1)[0]!);
    }
  }

  /** One timer for the oldest that waits. */
  #watch(): void {
    const oldest = this.#waiting[0];
    if (this.#isWatched || oldest === undefined) return;
    this.#isWatched = true;
    this.queue.at(oldest.waitsSinceMs + SLOT_WAIT_MS, () => {
      this.#isWatched = false;
      const { nowMs } = this.queue;
      const isLate = ({ waitsSinceMs }: Upload) => waitsSinceMs + SLOT_WAIT_MS <= nowMs;
      const refused = this.#waiting.filter(isLate);
      this.#waiting = this.#waiting.filter((upload) => !isLate(upload));
      for (const upload of refused) upload.onRefused();
      this.#watch();
    });
  }
}
