/**
 * What the benches need of anything that brings contents to hosts: Lacewing,
 * curl, BitTorrent. Each runs as it does in real life, on the same hosts, with
 * the same origin behind the same links.
 */
import type { BenchNetwork } from "./network.ts";

/** One content at the origin. */
export interface BenchFile {
  readonly name: string;
  readonly size: number;
  /** `sha256:hex` */
  readonly digest: string;
}

/** Everything that every host wants. */
export interface Workload {
  readonly files: readonly BenchFile[];
  /** Folder that holds the files. */
  readonly folder: string;
  /** One more file in the folder, for code to become warm; null: none. */
  readonly warmUp: BenchFile | null;
  /** Sum of the sizes. */
  readonly size: number;
}

/** Sections of a configuration. */
export type Sections = Readonly<Record<string, Record<string, unknown>>>;

/** What a contestant gets to work with. */
export interface Stage {
  readonly network: BenchNetwork;
  readonly workload: Workload;
  /** Names of the hosts that will want the workload. */
  readonly hosts: readonly string[];
  /** Name of the host that has it all before the beginning, as the only source; null: the origin is the source. */
  readonly seed: string | null;
  /** Data centre of each host, where they are told apart. */
  readonly idcOf: (host: string) => string;
  /** Empty, for this contestant alone. */
  readonly folder: string;
  readonly verbose: boolean;
  /** Sections laid over the configuration of our daemons. */
  readonly daemon: Sections;
  /** The same for our manager. */
  readonly manager: Sections;
}

/** Figures of a contestant so far. */
export interface Totals {
  /** Payload bytes that the origin (or the seed) has sent. */
  readonly sourceBytes: number;
  /** Payload bytes that hosts have sent to each other; null where that cannot be known. */
  readonly peerBytes: number | null;
  /** CPU seconds of all its processes on the hosts, of the source, and of what coordinates. */
  readonly cpuSeconds: number;
  /** Of these, of the server that alone sends; null where hosts send too. */
  readonly sourceCpuSeconds: number | null;
  /** Of the process on a host that held most; null where that cannot be known. */
  readonly rssMaxBytes: number | null;
}

export interface FetchOptions {
  /** Bytes of the workload that the host has now. */
  readonly onProgress: (bytes: number) => void;
}

/** A contestant with all its processes up, and nothing fetched yet. */
export interface Running extends AsyncDisposable {
  /** Brings the workload to a host. Resolves when it is all there. */
  fetch(host: string, options: FetchOptions): Promise<void>;
  totals(): Promise<Totals>;
  /** Paths of the files on a host, in the workload's order, after a fetch. */
  paths(host: string): readonly string[];
  /** Ends a host at once, as a crash does. */
  kill(host: string): Promise<void>;
  /** Brings a killed host back, with what it had on disk. */
  restart(host: string): Promise<void>;
}

export interface Contestant {
  readonly name: "lacewing" | "bittorrent" | "curl";
  start(stage: Stage): Promise<Running>;
}

/** The host where what coordinates runs; its link has no limit. */
export const MANAGER = "manager";
export const ORIGIN = "origin";
