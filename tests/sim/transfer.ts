/**
 * One request for one piece, from when it is asked for until it is here or given
 * up; also what the parent's uplink knows of it. One object for all of that: a run
 * of 100,000 hosts makes ten million of them.
 */
import type { SimHost } from "./host.ts";
import type { NeighbourState } from "./host_peers.ts";
import type { Network } from "./network.ts";
import type { SentMark } from "../../peer/transfer/upload_slots.ts";
import type { Upload } from "./uplink.ts";

export class Transfer implements Upload {
  readonly state: NeighbourState;
  readonly number: number;
  /** Whether the piece is brought over for all of the child's idc. */
  readonly crosses: boolean;
  readonly startedAtMs: number;
  isOver = false;
  /** Whether the parent sends it now or will send it. */
  isServed = false;
  need = 0;
  waitsSinceMs = 0;

  constructor(
    private readonly net: Network,
    readonly child: SimHost,
    { state, number, crosses }: Pick<Transfer, "state" | "number" | "crosses">,
  ) {
    [this.state, this.number, this.crosses] = [state, number, crosses];
    this.startedAtMs = net.queue.nowMs;
  }

  get parent(): SimHost {
    return this.state.host;
  }

  get hostId(): string {
    return this.child.id;
  }

  get mark(): SentMark {
    return this.parent.markOf(this.number);
  }

  get length(): number {
    return this.net.lengthOf(this.number);
  }

  onSent(startedAtMs: number): void {
    this.net.sent(this, startedAtMs);
  }

  onRefused(): void {
    this.net.refused(this);
  }
}
