/** What a simulated host is given: its place, and its ways to the scheduler and the others. */
import type { HostMessage } from "../../peer/core/wire/scheduler.ts";
import type { SimHost } from "./host.ts";
import type { Network } from "./network.ts";

/** What a host needs of the rest. */
export interface HostPorts {
  readonly net: Network;
  /** To the scheduler; lost when there is none. */
  say(host: SimHost, message: HostMessage): void;
  hostOf(id: string): SimHost | undefined;
  /** Neighbours that a host has whatever the scheduler says; undefined: what it says. */
  fixedNeighbours(host: SimHost): SimHost[] | undefined;
  onComplete(host: SimHost): void;
}

export interface HostOptions {
  readonly id: string;
  readonly index: number;
  readonly rack: number;
  readonly isLiar: boolean;
}
