/** What an engine is given: the ports it acts through, and its settings. */
import type { Clock, Random } from "../core/clock.ts";
import type { Logger } from "../core/log.ts";
import type { RateLimiter } from "../core/rate_limit.ts";
import type { Tracer } from "../core/telemetry.ts";
import type { Source } from "../source/source.ts";
import type { PieceStore } from "../storage/piece_store.ts";
import type { Exchange, PieceClient } from "../transfer/piece_transfer.ts";
import type { PieceEvents } from "./piece_events.ts";
import type { RequestGate } from "./request_gate.ts";
import type { Swarm } from "./swarm.ts";

/** Bytes that all engines together have received so far. */
export interface Traffic {
  /** From origins. */
  sourceBytes: number;
  /** From neighbours, of no use: wrong pieces, and the slower of two requests for one piece. */
  wastedBytes: number;
}

/** What is given to all engines together. */
export interface TaskManagerDeps {
  readonly store: PieceStore;
  readonly source: Source;
  readonly client: PieceClient;
  readonly exchange: Exchange;
  readonly swarm: Swarm;
  readonly events: PieceEvents;
  readonly totalLimiter: RateLimiter;
  readonly traffic: Traffic;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Where contents of unknown length are gathered. */
  readonly tempDir: string;
  /** What is on disk of a task has changed. */
  readonly onStored: (taskId: string) => void;
  /** Default: records nothing. */
  readonly tracer?: Tracer | undefined;
}

export interface EngineDeps extends TaskManagerDeps {
  /** What all engines share of the neighbours. */
  readonly gate: RequestGate;
}

export interface EngineConfig {
  /** This host and where it is; default: nowhere. */
  readonly place?: { readonly hostId: string; readonly idc: string };
  /** Pieces asked of neighbours at once by all tasks together; each may ask for one. */
  readonly concurrentPieceCount: number;
  /** Connections to one origin while alone. */
  readonly maxConnections: number;
  /** Bytes per second of one task; 0 is no limit. */
  readonly perTaskRateLimit: number;
  /** Whether the origin may be read when no scheduler answers. */
  readonly autoBackSource: boolean;
  /** How long a complete task stays a member after its last request. */
  readonly lingerMs: number;
}
