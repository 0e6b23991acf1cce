/**
 * What a simulated run consists of: the machines and their links, what goes
 * wrong and when, and which policies decide. All of it is plain data, so that
 * a run is told apart by its configuration and its seed alone.
 */
import type { SchedulerConfig } from "../../manager/scheduler/resource.ts";
import { pieceCount } from "../../peer/core/piece.ts";
import type { TaskMeta } from "../../peer/core/wire/scheduler.ts";

export const KiB = 1024;
export const MiB = 1024 * KiB;

/** In which order a host asks for pieces; only `rarest` is the product's. */
export type Policy = "rarest" | "random" | "in-order";
/** `graph` is what the scheduler makes; `mesh` lets it link all with all, `tree` ignores its links. */
export type Topology = "graph" | "mesh" | "tree";

export interface Fault {
  readonly atMs: number;
  readonly count: number;
  /** How long the hosts stay away; null for ever. */
  readonly backAfterMs: number | null;
}

export interface SimConfig {
  readonly seed: number;
  readonly hosts: number;
  readonly contentLength: number;
  readonly pieceLength: number;
  /** Rates in bytes per millisecond. */
  readonly originRate: number;
  readonly upRate: (index: number) => number;
  readonly downRate: (index: number) => number;
  /** One way, between hosts, to the scheduler and to the origin. */
  readonly latencyMs: number;
  readonly schedulerLatencyMs: number;
  readonly originLatencyMs: number;
  /** Hosts join evenly over this time. */
  readonly joinMs: number;
  /** Piece requests of one host at once, and pieces that one host sends at once. */
  readonly concurrent: number;
  readonly slots: number;
  readonly policy: Policy;
  readonly topology: Topology;
  readonly scheduler: SchedulerConfig;
  /** Racks of equal size, and the rate of the one link between them all. */
  readonly racks: number;
  readonly crossRate: number;
  /** Share of transfers that break off at their end. */
  readonly loss: number;
  /** Hosts, from the last one down, that claim to have all and send rubbish. */
  readonly liars: number;
  readonly kills: readonly Fault[];
  /** The scheduler forgets everything and is away for so long. */
  readonly restarts: readonly { readonly atMs: number; readonly awayMs: number }[];
  /** Gives up the run. */
  readonly endMs: number;
  /** How often the neighbour graph is looked at for islands; 0: never. */
  readonly watchMs: number;
}

/** Mbit/s as bytes per millisecond. */
export function mbit(rate: number): number {
  return rate * 125;
}

/** A cold wave: all in a moment, origin and hosts at 50 Mbit/s, 64 MiB in pieces of 256 KiB. */
export function coldWave(hosts: number, changes: Partial<SimConfig> = {}): SimConfig {
  return {
    seed: 1,
    hosts,
    contentLength: 64 * MiB,
    pieceLength: 256 * KiB,
    originRate: mbit(50),
    upRate: () => mbit(50),
    downRate: () => mbit(50),
    latencyMs: 0.5,
    schedulerLatencyMs: 1,
    originLatencyMs: 2,
    joinMs: 100,
    concurrent: 8,
    slots: 16,
    policy: "rarest",
    topology: "graph",
    scheduler: { neighbours: 12, sourceConnectionsPerTask: 4, hostTimeoutMs: 10_000 },
    racks: 1,
    crossRate: Infinity,
    loss: 0,
    liars: 0,
    kills: [],
    restarts: [],
    endMs: 600_000,
    watchMs: 0,
    ...changes,
  };
}

export function piecesOf({ contentLength, pieceLength }: SimConfig): number {
  return pieceCount({ contentLength, pieceLength });
}

export function metaOf({ contentLength, pieceLength }: SimConfig): TaskMeta {
  return { generation: "g1", content_length: contentLength, piece_length: pieceLength, ranges: true };
}

/**
 * The fluid bound (Kumar and Ross 2006) for hosts that all want everything:
 * max{F/u_s, F/d_min, N·F/(u_s+U)}; two racks or more add what must cross between them.
 *
 * @returns milliseconds
 */
export function boundMs(config: SimConfig): number {
  const { hosts, liars, originRate, contentLength, racks, crossRate } = config;
  const indexes = Array.from({ length: hosts - liars }, (_, index) => index);
  const up = indexes.reduce((sum, index) => sum + config.upRate(index), 0);
  const downMin = indexes.reduce((least, index) => Math.min(least, config.downRate(index)), Infinity);
  return Math.max(
    contentLength / originRate,
    contentLength / downMin,
    indexes.length * contentLength / (originRate + up),
    (racks - 1) * contentLength / crossRate,
  );
}
