/**
 * The port between the job worker (and the API) and the swarm: which hosts
 * live in which cluster, and orders to put a task on them.
 */
import type { HostFacts, OrderTask, TaskMeta, TaskSpec } from "../../peer/core/wire/scheduler.ts";

/** Which hosts of a cluster a preheat fills. */
export type PreheatScope = "single_seed_peer" | "all_seed_peers" | "all_peers";

/** A live host as the API shows it. */
export interface HostView extends HostFacts {
  readonly cluster_id: number;
  /** RFC 3339. */
  readonly connected_at: string;
  readonly uploads: number;
  readonly downloads: number;
  readonly free_bytes: number;
}

/** A content that live hosts hold. */
export interface TaskView extends TaskSpec {
  readonly cluster_id: number;
  readonly meta: TaskMeta | null;
  readonly hosts: readonly {
    readonly id: string;
    readonly hostname: string;
    readonly ip: string;
    readonly complete: boolean;
    readonly piece_count: number;
  }[];
}

/** How far a task is on the hosts that the scope asks for. */
export interface PreheatProgress {
  readonly contentLength: number | null;
  /** Sums over the hosts, bytes. */
  readonly done: number;
  readonly fromSource: number;
  readonly fromPeers: number;
  readonly hosts: readonly {
    readonly id: string;
    readonly hostname: string;
    readonly ip: string;
    readonly state: "PENDING" | "SUCCESS" | "FAILURE";
    readonly error: { readonly code: string; readonly message: string } | null;
  }[];
}

/** What the connection layer needs to know of a cluster to place a host in it. */
export interface ClusterPlacement {
  readonly id: number;
  readonly is_default: boolean;
  readonly scopes: {
    readonly idc?: string;
    readonly location?: string;
    readonly cidrs?: readonly string[];
    readonly hostnames?: readonly string[];
  };
}

export interface Schedulers {
  /** Live hosts, of one cluster or of all. */
  hosts(clusterId?: number): HostView[];
  /** Tasks that live hosts hold, of one cluster or of all. */
  tasks(clusterId?: number): TaskView[];
  /**
   * Orders a task onto the hosts of the scope and waits until each has it
   * complete and verified, or has failed. A host that goes away meanwhile
   * counts as failed (`unavailable`); a host that comes back is not waited for.
   *
   * @throws {LacewingError} `unavailable` when the cluster has no live host, and `signal.reason` when cancelled (the hosts are told).
   */
  preheat(
    clusterId: number,
    order: { task: OrderTask; scope: PreheatScope },
    options: { signal: AbortSignal; onProgress: (progress: PreheatProgress) => void },
  ): Promise<PreheatProgress>;
  /** Orders every live host of the cluster that holds the task to drop it. @returns how many were told */
  drop(clusterId: number, taskId: string): number;
}
