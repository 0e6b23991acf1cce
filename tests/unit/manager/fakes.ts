/**
 * A swarm and a registry for the manager's tests: hosts are data, and what an
 * order does is a function of the test.
 */
import type { OrderTask } from "../../../peer/core/wire/scheduler.ts";
import type { ResolvedItem, Resolver, ResolveRequest } from "../../../manager/registry/resolver.ts";
import type {
  HostView,
  PreheatProgress,
  PreheatScope,
  Schedulers,
  TaskView,
} from "../../../manager/scheduler/schedulers.ts";

export interface Order {
  readonly clusterId: number;
  readonly task: OrderTask;
  readonly scope: PreheatScope;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PreheatProgress) => void;
}

export class FakeSchedulers implements Schedulers {
  hostList: HostView[] = [];
  taskList: TaskView[] = [];
  readonly orders: Order[] = [];
  readonly drops: [number, string][] = [];
  /** What comes of an order; by default one host has it at once. */
  answer: (order: Order) => Promise<PreheatProgress> | PreheatProgress = () => complete();

  hosts(clusterId?: number): HostView[] {
    return this.hostList.filter((host) => clusterId === undefined || host.cluster_id === clusterId);
  }

  tasks(clusterId?: number): TaskView[] {
    return this.taskList.filter((task) => clusterId === undefined || task.cluster_id === clusterId);
  }

  async preheat(
    clusterId: number,
    { task, scope }: { task: OrderTask; scope: PreheatScope },
    options: { signal: AbortSignal; onProgress: (progress: PreheatProgress) => void },
  ): Promise<PreheatProgress> {
    const order = { clusterId, task, scope, ...options };
    this.orders.push(order);
    return await this.answer(order);
  }

  drop(clusterId: number, taskId: string): number {
    this.drops.push([clusterId, taskId]);
    return this.tasks(clusterId).find((task) => task.task_id === taskId)?.hosts.length ?? 0;
  }
}

/** Waits until the order is called off. */
export function forever({ signal }: Pick<Order, "signal">): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

export function host(id: string, facts: Partial<HostView> = {}): HostView {
  return {
    id,
    hostname: `host-${id}`,
    ip: "10.0.0.1",
    upload_port: 65002,
    type: "normal",
    idc: "",
    location: "",
    platform: "linux/amd64",
    version: "0.1.0",
    cluster_id: 1,
    connected_at: "2030-01-01T00:00:00.000Z",
    uploads: 0,
    downloads: 0,
    free_bytes: 1,
    ...facts,
  };
}

/** Progress of an order that went well on one host. */
export function complete(contentLength = 100, hostId = "a"): PreheatProgress {
  return {
    contentLength,
    done: contentLength,
    fromSource: contentLength,
    fromPeers: 0,
    hosts: [{ id: hostId, hostname: `host-${hostId}`, ip: "10.0.0.1", state: "SUCCESS", error: null }],
  };
}

/** Progress of an order that failed on one host. */
export function failing(code: string, message: string, hostId = "a"): PreheatProgress {
  return {
    contentLength: null,
    done: 0,
    fromSource: 0,
    fromPeers: 0,
    hosts: [{ id: hostId, hostname: `host-${hostId}`, ip: "10.0.0.1", state: "FAILURE", error: { code, message } }],
  };
}

export function item(url: string, facts: Partial<ResolvedItem> = {}): ResolvedItem {
  return { url, digest: null, contentLength: null, headers: {}, kind: "layer", platform: null, ...facts };
}

export class FakeResolver implements Resolver {
  readonly requests: ResolveRequest[] = [];
  refreshes = 0;
  answer: (request: ResolveRequest) => Awaited<ReturnType<Resolver["resolve"]>> = () => ({ items: [], skipped: [] });
  fresh: () => Record<string, string> = () => ({});

  async resolve(request: ResolveRequest) {
    this.requests.push(request);
    return await Promise.resolve().then(() => this.answer(request));
  }

  refreshHeaders(): Promise<Record<string, string>> {
    this.refreshes += 1;
    return Promise.resolve(this.fresh());
  }
}
