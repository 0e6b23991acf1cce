/** Neighbours in memory for unit tests of the engine: what they offer, what they send, and a swarm whose words the test says. */
import { Bitmap } from "../../peer/core/bitmap.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import type { TaskSpec } from "../../peer/core/wire/scheduler.ts";
import type {
  Exchange,
  OfferListener,
  PieceClient,
  PieceRequest,
  PieceSink,
} from "../../peer/transfer/piece_transfer.ts";
import type { Membership, Swarm, SwarmListener } from "../../peer/task/swarm.ts";

/** One neighbour: the pieces it has, and what it sends. */
export interface FakeNeighbour {
  readonly pieces: readonly number[];
  /** Bytes of a piece; default: the true content's. */
  readonly send?: (request: PieceRequest) => Uint8Array;
  readonly fail?: LacewingError;
  /** Comes before the first byte; a rejection is the answer. */
  readonly before?: (request: PieceRequest) => Promise<void>;
  /** Sends nothing until the request is aborted. */
  readonly hang?: boolean;
}

/** Exchange and piece client over the same neighbours, named by host id; the address is the host id. */
export class FakeNeighbourhood implements PieceClient, Exchange {
  readonly requests: PieceRequest[] = [];

  constructor(
    readonly content: Uint8Array,
    readonly pieceLength: number,
    readonly neighbours: Map<string, FakeNeighbour> = new Map(),
  ) {}

  async fetch(request: PieceRequest, sink: PieceSink, { signal }: { signal: AbortSignal }): Promise<void> {
    this.requests.push(request);
    await Promise.resolve();
    signal.throwIfAborted();
    const neighbour = this.neighbours.get(request.address);
    if (neighbour === undefined) throw new LacewingError("peer_failed", "gone");
    if (neighbour.fail !== undefined) throw neighbour.fail;
    await neighbour.before?.(request);
    if (neighbour.hang) {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      signal.throwIfAborted();
    }
    const offset = request.number * this.pieceLength;
    const bytes = neighbour.send?.(request) ?? this.content.slice(offset, offset + request.length);
    const half = Math.ceil(bytes.length / 2);
    await sink(bytes.slice(0, half));
    await sink(bytes.slice(half));
  }

  subscribe(
    { hostId }: { hostId: string; address: string },
    { pieceCount }: { taskId: string; generation: string; pieceCount: number },
    listener: OfferListener,
  ): () => void {
    let active = true;
    queueMicrotask(() => {
      if (!active) return;
      const offer = new Bitmap(pieceCount);
      for (const number of this.neighbours.get(hostId)?.pieces ?? []) offer.add(number);
      listener.onBitmap(hostId, offer);
    });
    return () => active = false;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}

/** A swarm that keeps what the engine says, and lets the test speak through `listener`. */
export class FakeSwarm implements Swarm {
  readonly said: [string, ...unknown[]][] = [];
  listener: SwarmListener | null = null;
  readonly #waiters = new Set<() => void>();

  constructor(private readonly onJoin: (listener: SwarmListener) => void = () => {}) {}

  join(_task: TaskSpec, listener: SwarmListener): Membership {
    this.listener = listener;
    const say = (what: string) => (...args: unknown[]) => {
      this.said.push([what, ...args]);
      const waiters = [...this.#waiters];
      this.#waiters.clear();
      for (const wake of waiters) wake();
    };
    say("join")(listener.joinState());
    queueMicrotask(() => this.onJoin(listener));
    return {
      meta: say("meta"),
      pieces: say("pieces"),
      leaseEnd: say("leaseEnd"),
      starving: say("starving"),
      badPeer: say("badPeer"),
      checked: say("checked"),
      complete: say("complete"),
      update: say("update"),
      leave: say("leave"),
    };
  }

  async heard(what: string): Promise<unknown[]> {
    while (true) {
      const found = this.said.find(([name]) => name === what);
      if (found !== undefined) return found.slice(1);
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }
}
