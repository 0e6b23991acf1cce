/**
 * A simulated host's reads of the origin: leases, and, while no scheduler
 * answers, what it wants by itself; as peer/task/source_work.ts has it,
 * without bytes. Pieces of one read come one after the other over a
 * connection that shares the origin's uplink with all others.
 */
import { OwnReads } from "../../peer/task/own_reads.ts";
import type { PiecePicker } from "../../peer/task/piece_picker.ts";
import type { SimHost } from "./host.ts";
import type { Flow } from "./links.ts";
import type { Network } from "./network.ts";

/** As the daemon's settings and peer/task/session.ts have them. */
const OWN_CONNECTIONS = 4;
const CHECK_INTERVAL_MS = 100;

interface Read {
  /** Null for a read of one's own. */
  readonly leaseId: number | null;
  readonly first: number;
  readonly end: number;
  claimed: ReadonlySet<number>;
  flow: Flow | null;
  isOver: boolean;
  /** What waits for this read. */
  readonly then: (() => void)[];
}

export class HostSource {
  readonly #reads = new Set<Read>();
  readonly #own: OwnReads;
  #isLooking = false;
  bytes = 0;

  /** @param isServed whether neighbours send pieces now */
  constructor(
    private readonly host: SimHost,
    private readonly picker: PiecePicker,
    private readonly net: Network,
    private readonly isServed: () => boolean,
  ) {
    const { random, config: { pieceLength } } = net;
    this.#own = new OwnReads(picker, { pieceLength, ranges: true, connections: OWN_CONNECTIONS, random });
  }

  get activeCount(): number {
    return this.#reads.size;
  }

  /** @param isOpen whether the answer of a probe goes on, so that no request is needed */
  lease(leaseId: number, run: { first: number; count: number }, { isOpen }: { isOpen: boolean }): void {
    this.#start(leaseId, run, isOpen);
  }

  revoke(leaseId: number): void {
    for (const read of [...this.#reads]) if (read.leaseId === leaseId) this.#end(read, { isSaid: false });
  }

  setAlone(isAlone: boolean): void {
    this.#own.setAlone(isAlone, this.net.queue.nowMs);
    if (isAlone) return this.#look();
    for (const read of [...this.#reads]) if (read.leaseId === null) this.#end(read, { isSaid: false });
  }

  /** The daemon looks every 100 ms. */
  #look(): void {
    this.host.settled();
    if (this.#isLooking || !this.#own.isAlone || this.picker.isComplete) return;
    this.#isLooking = true;
    this.net.queue.after(CHECK_INTERVAL_MS, () => {
      this.#isLooking = false;
      if (this.host.isAlive) this.#look();
    });
  }

  pump(): void {
    if (!this.#own.isAlone) return;
    const { queue } = this.net;
    for (;;) {
      const active = [...this.#reads].filter(({ leaseId }) => leaseId === null).length;
      const state = { active, isServed: this.isServed(), readBytes: this.bytes };
      const run = this.#own.next(state, queue.nowMs);
      if (run === null) return;
      this.#start(null, run, false);
    }
  }

  /** The host is gone. */
  stop(): void {
    this.#own.setAlone(false, this.net.queue.nowMs);
    for (const read of [...this.#reads]) this.#end(read, { isSaid: false });
  }

  #start(leaseId: number | null, { first, count }: { first: number; count: number }, isOpen: boolean): void {
    const end = Math.min(first + count, this.net.pieceCount);
    const read: Read = { leaseId, first, end, claimed: new Set(), flow: null, isOver: false, then: [] };
    for (let number = first; number < end; number++) if (this.picker.isHeld(number)) this.host.report(number);
    const others = [...this.#reads].filter((other) => overlaps(other, read));
    this.#reads.add(read);
    let left = others.length;
    if (left === 0) return this.#claim(read, isOpen);
    for (const other of others) other.then.push(() => (left -= 1) === 0 && !read.isOver && this.#claim(read, isOpen));
  }

  #claim(read: Read, isOpen: boolean): void {
    const numbers = Array.from({ length: read.end - read.first }, (_, index) => read.first + index);
    read.claimed = new Set(numbers.filter((number) => !this.picker.isHeld(number)));
    for (const number of read.claimed) this.picker.reading(number);
    this.host.cancelRequests(numbers);
    this.#next(read, read.first, isOpen);
  }

  /** A piece that is held ends a request; the next one that is not begins another. */
  #next(read: Read, from: number, isOpen: boolean): void {
    if (read.isOver) return;
    let number = from;
    while (number < read.end && this.picker.isHeld(number)) number += 1;
    if (number >= read.end) return this.#end(read, { isSaid: true });
    if (isOpen && number === from) return this.#readPiece(read, number);
    this.net.queue.after(2 * this.net.config.originLatencyMs, () => !read.isOver && this.#readPiece(read, number));
  }

  #readPiece(read: Read, number: number): void {
    const length = this.net.lengthOf(number);
    const flow: Flow = this.net.origin.start(length, () => {
      const atMs = this.host.downlink.pass(length, flow.startedAtMs);
      this.net.queue.at(atMs, () => {
        if (read.isOver) return;
        this.bytes += length;
        this.host.readFromOrigin(number);
        this.#next(read, number + 1, true);
      });
    });
    read.flow = flow;
  }

  #end(read: Read, { isSaid }: { isSaid: boolean }): void {
    if (!this.#reads.delete(read)) return;
    read.isOver = true;
    if (read.flow !== null) this.net.origin.stop(read.flow);
    for (const number of read.claimed) if (this.picker.isReading(number)) this.picker.missing(number);
    if (!this.host.isAlive) return;
    this.host.freed();
    if (isSaid && read.leaseId !== null) this.host.leaseEnded(read.leaseId);
    for (const then of read.then) then();
    this.host.settled();
  }
}

function overlaps(a: Read, b: Read): boolean {
  return a.first < b.end && b.first < a.end;
}
