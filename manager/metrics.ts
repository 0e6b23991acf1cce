/**
 * The manager's Prometheus metrics in a registry of their own. Counts of jobs,
 * hosts and tasks are taken when somebody asks.
 */
import { Gauge, Histogram, Registry } from "prom-client";
import { JOB_STATES } from "./jobs/job.ts";
import type { Schedulers } from "./scheduler/schedulers.ts";
import type { Store } from "./store/store.ts";

export interface Metrics {
  /** One request was answered. `route` is the pattern, never the path: its values are bounded. */
  request(labels: { method: string; route: string; status: string }, seconds: number): void;
  /** The exposition text and its content type. */
  read(): Promise<{ text: string; contentType: string }>;
}

export function createMetrics(
  { store, schedulers, version }: { store: Pick<Store, "jobs">; schedulers: Schedulers; version: string },
): Metrics {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({ name: "lacewing_manager_info", help: "Always 1", labelNames: ["version"], registers }).set(
    { version },
    1,
  );
  const jobs = new Gauge({ name: "lacewing_jobs", help: "Jobs in the store", labelNames: ["state"], registers });
  const hosts = new Gauge({ name: "lacewing_hosts", help: "Live hosts", labelNames: ["cluster", "type"], registers });
  const tasks = new Gauge({
    name: "lacewing_tasks",
    help: "Contents that live hosts hold",
    labelNames: ["cluster"],
    registers,
  });
  const requests = new Histogram({
    name: "lacewing_http_request_duration_seconds",
    help: "Time until an answer of the API began",
    labelNames: ["method", "route", "status"],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
    registers,
  });
  return {
    request: (labels, seconds) => requests.observe(labels, seconds),
    async read() {
      const byState = await store.jobs.countByState();
      for (const state of JOB_STATES) jobs.set({ state }, byState[state] ?? 0);
      hosts.reset();
      for (const host of schedulers.hosts()) hosts.inc({ cluster: String(host.cluster_id), type: host.type });
      tasks.reset();
      for (const task of schedulers.tasks()) tasks.inc({ cluster: String(task.cluster_id) });
      return { text: await registry.metrics(), contentType: registry.contentType };
    },
  };
}
