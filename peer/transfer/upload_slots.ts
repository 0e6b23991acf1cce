/**
 * Decides who may send next: few slots, so that each upload is fast (how many:
 * `SlotCount`). When all are taken, few requests wait for a moment: what waits
 * here another neighbour might send. A free slot goes to a piece that was not
 * sent before: what is out already the child may get elsewhere, and a host that
 * alone has something new must not spend its uplink on a second copy. Among
 * equals it goes to the child that has the fewest slots, then to the one that
 * misses the most pieces, then to who came first.
 *
 * Keeps: never more than `countMax` slots are given out, never more wait than
 * there are slots and one, none longer than `waitMs`. A slot owns the buffer its
 * bytes go through, so that memory is bounded by slots and not by connections.
 *
 * A child that brings a piece over for all of its idc goes before all others. It
 * takes the place of one that waits where there is none left, as does a piece that
 * was not sent before the place of one that was.
 *
 * Simulated cold waves (means; with the order of counts, and without either): 64 hosts
 * took 1.103, 1.109 and 1.110 x the bound, in two racks 1.127, 1.134 and 1.151,
 * 16 with an origin far away 1.215, 1.249 and 1.229 (tests/sim).
 */
import type { Clock } from "../core/clock.ts";
import { SlotCount } from "./slot_count.ts";
import { Watchdog } from "./watchdog.ts";

/** Whether this host has sent one piece, or begun to; all claims for the piece share it. */
export interface SentMark {
  isSent: boolean;
}

/** Who asks for a slot. */
export interface Claim {
  readonly hostId: string;
  /** Pieces that the child still misses. */
  readonly need: number;
  /** Whether it brings the piece over for all of its idc. */
  readonly crosses?: boolean;
  /** Of the piece; absent: it was never sent. */
  readonly mark?: SentMark;
}

/** Leave to send one piece; give it back by disposing it. */
export interface Slot extends Disposable {
  readonly buffer: Uint8Array<ArrayBuffer>;
  /** Bytes of the piece that were sent, as the sender counts them. */
  sentBytes: number;
}

export interface SlotsConfig {
  readonly countMax: number;
  readonly waitMs: number;
  readonly bufferLength: number;
}

interface Waiter extends Claim {
  readonly settle: (granted: boolean) => void;
}

/** How many may wait where so many slots are: one neighbour's requests for pieces fit in, and no more than a moment's work. */
export function waitingMax(slotCount: number): number {
  return slotCount + 1;
}

export class UploadSlots {
  readonly #buffers: Uint8Array<ArrayBuffer>[] = [];
  readonly #activeByHost = new Map<string, number>();
  readonly #waiting: Waiter[] = [];
  readonly #count: SlotCount;
  #active = 0;

  constructor(private readonly clock: Clock, private readonly config: SlotsConfig) {
    this.#count = new SlotCount(config.countMax);
  }

  /** Slots that are out. */
  get active(): number {
    return this.#active;
  }

  /**
   * @returns null when there is none to have within `waitMs`
   * @throws `signal.reason`
   */
  async acquire(claim: Claim, signal: AbortSignal): Promise<Slot | null> {
    signal.throwIfAborted();
    if (this.#active >= this.#count.count) {
      if (this.#waiting.length >= waitingMax(this.#count.count) && !this.#makeWay(claim)) return null;
      if (!await this.#wait(claim, signal)) return null;
    } else this.#grant(claim);
    let isOut = true;
    const buffer = this.#buffers.pop() ?? new Uint8Array(this.config.bufferLength);
    const slot: Slot = {
      buffer,
      sentBytes: 0,
      [Symbol.dispose]: () => {
        if (!isOut) return;
        isOut = false;
        this.#buffers.push(buffer);
        this.#release(claim, slot.sentBytes);
      },
    };
    return slot;
  }

  /** @returns whether one that waits has been sent away for this one */
  #makeWay(claim: Claim): boolean {
    const at = lastToYield(this.#waiting, claim);
    if (at === -1) return false;
    this.#waiting.splice(at, 1)[0]!.settle(false);
    return true;
  }

  async #wait(claim: Claim, signal: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiter: Waiter = { ...claim, settle: resolve };
    const giveUp = () => {
      const at = this.#waiting.indexOf(waiter);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      resolve(false);
    };
    using watchdog = new Watchdog(this.clock, giveUp);
    watchdog.arm(this.config.waitMs);
    signal.addEventListener("abort", giveUp, { once: true });
    this.#waiting.push(waiter);
    try {
      const granted = await promise;
      if (!granted) signal.throwIfAborted();
      return granted;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  #grant({ hostId, mark }: Claim): void {
    this.#active += 1;
    if (mark !== undefined) mark.isSent = true;
    this.#activeByHost.set(hostId, (this.#activeByHost.get(hostId) ?? 0) + 1);
  }

  #release({ hostId }: Claim, sentBytes: number): void {
    const isBusy = this.#active >= this.#count.count && this.#waiting.length > 0;
    this.#count.ended(sentBytes, { isBusy }, this.clock.nowMs());
    this.#active -= 1;
    const left = (this.#activeByHost.get(hostId) ?? 1) - 1;
    if (left === 0) this.#activeByHost.delete(hostId);
    else this.#activeByHost.set(hostId, left);
    while (this.#active < this.#count.count) {
      const next = nextClaim(this.#waiting, this.#activeByHost);
      if (next === -1) return;
      const [waiter] = this.#waiting.splice(next, 1);
      if (waiter === undefined) return;
      this.#grant(waiter);
      waiter.settle(true);
    }
  }
}

/** Index of the claim to serve next, or -1: not sent before, then fewest slots, then neediest, then first. */
export function nextClaim(claims: readonly Claim[], activeByHost: ReadonlyMap<string, number>): number {
  let best = -1;
  for (const [index, claim] of claims.entries()) {
    const current = claims[best];
    if (current === undefined || isBefore(claim, current, activeByHost)) best = index;
  }
  return best;
}

/**
 * Index of the claim that gives its place in a full line to `claim`, or -1: of those that bring nothing over the last
 * one whose piece was sent before. Where `claim` brings a piece over, the last of the others too.
 */
export function lastToYield(claims: readonly Claim[], claim: Claim): number {
  if (claim.crosses !== true && isSent(claim)) return -1;
  const sent = claims.findLastIndex((other) => other.crosses !== true && isSent(other));
  if (sent >= 0 || claim.crosses !== true) return sent;
  return claims.findLastIndex(({ crosses }) => crosses !== true);
}

function isSent({ mark }: Claim): boolean {
  return mark?.isSent === true;
}

function isBefore(a: Claim, b: Claim, activeByHost: ReadonlyMap<string, number>): boolean {
  if (a.crosses !== b.crosses) return a.crosses === true;
  if (isSent(a) !== isSent(b)) return isSent(b);
  const difference = (activeByHost.get(a.hostId) ?? 0) - (activeByHost.get(b.hostId) ?? 0);
  return difference === 0 ? a.need > b.need : difference < 0;
}
