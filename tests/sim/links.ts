/**
 * The virtual network. A link that is shared gives each transfer the same part
 * of its rate (fluid, as many TCP streams would have it). A host's downlink and
 * a link between racks are pipes: transfers queue up in them, and a transfer
 * that came slowly through an uplink has passed the pipe meanwhile.
 *
 * A change costs one event and not one per transfer: all transfers of a shared
 * link advance alike, so only the one that ends next needs a time.
 */
import type { EventQueue } from "./event_queue.ts";

export interface Flow {
  /** Bytes that each transfer of the link will have got when this one ends. */
  readonly end: number;
  readonly startedAtMs: number;
  readonly onEnd: () => void;
}

/** Below this many bytes a transfer counts as ended: sums of fractions are never exact. */
const ROUNDING = 1e-3;

export class SharedLink {
  /** By their ends, ascending. */
  readonly #flows: Flow[] = [];
  /** Bytes that each transfer has got since the start, had it been there. */
  #passed = 0;
  #passedAtMs = 0;
  #wakesAtMs = Infinity;
  /** One for all wake-ups: one that another has overtaken comes too late to do anything. */
  readonly #onWake = () => {
    if (this.queue.nowMs >= this.#wakesAtMs) this.#woken();
  };
  /** Bytes sent since the start. */
  sentBytes = 0;

  /** @param rate bytes per millisecond */
  constructor(private readonly queue: EventQueue, readonly rate: number) {}

  get activeCount(): number {
    return this.#flows.length;
  }

  start(length: number, onEnd: () => void): Flow {
    this.#advance();
    const flow: Flow = { end: this.#passed + length, startedAtMs: this.queue.nowMs, onEnd };
    let low = 0;
    let high = this.#flows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#flows[middle]!.end <= flow.end) low = middle + 1;
      else high = middle;
    }
    this.#flows.splice(low, 0, flow);
    this.#plan();
    return flow;
  }

  /** Ends a transfer before its time; nothing happens when it has ended. */
  stop(flow: Flow): void {
    const index = this.#flows.indexOf(flow);
    if (index < 0) return;
    this.#advance();
    this.#flows.splice(index, 1);
    this.#plan();
  }

  stopAll(): void {
    this.#advance();
    this.#flows.length = 0;
  }

  #advance(): void {
    const { nowMs } = this.queue;
    const count = this.#flows.length;
    if (count > 0) {
      const bytes = (nowMs - this.#passedAtMs) * this.rate;
      this.#passed += bytes / count;
      this.sentBytes += bytes;
    }
    this.#passedAtMs = nowMs;
  }

  /** A wake-up that is too early is no harm: it looks and plans anew. */
  #plan(): void {
    const next = this.#flows[0];
    if (next === undefined) return;
    const atMs = this.queue.nowMs + Math.max(0, next.end - this.#passed) * this.#flows.length / this.rate;
    if (atMs >= this.#wakesAtMs) return;
    this.#wakesAtMs = atMs;
    this.queue.at(atMs, this.#onWake);
  }

  #woken(): void {
    this.#wakesAtMs = Infinity;
    this.#advance();
    const ended: Flow[] = [];
    while (this.#flows.length > 0 && this.#flows[0]!.end <= this.#passed + ROUNDING) ended.push(this.#flows.shift()!);
    this.#plan();
    for (const { onEnd } of ended) onEnd();
  }
}

/** A pipe with a rate and no rules: who is through first is through. */
export class Pipe {
  #freeAtMs = 0;

  /** @param rate bytes per millisecond; infinite for a pipe that never limits */
  constructor(readonly rate: number) {}

  /**
   * Puts a transfer through that has begun at `startedAtMs`.
   *
   * @returns when its last byte is through, if nothing before the pipe was slower
   */
  pass(length: number, startedAtMs: number): number {
    this.#freeAtMs = Math.max(this.#freeAtMs, startedAtMs) + length / this.rate;
    return this.#freeAtMs;
  }
}
