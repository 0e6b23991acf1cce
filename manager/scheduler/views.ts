/** Turns a scheduler's state into what the API and the job worker see. Pure. */
import type { Host } from "./resource.ts";
import type { Scheduler } from "./scheduler.ts";
import type { HostView, TaskView } from "./schedulers.ts";

/** Live hosts of a cluster, by id. */
export function hostViews(clusterId: number, scheduler: Scheduler): HostView[] {
  return [...scheduler.hosts.values()].map(({ facts, connectedAt, uploads, downloads, freeBytes }) => ({
    ...facts,
    cluster_id: clusterId,
    connected_at: connectedAt,
    uploads,
    downloads,
    free_bytes: freeBytes,
  })).sort((a, b) => a.id < b.id ? -1 : 1);
}

/** Tasks that live hosts hold or take part in, by id. */
export function taskViews(clusterId: number, scheduler: Scheduler): TaskView[] {
  return [...scheduler.tasks.values()].map((task) => {
    const hostIds = new Set([...task.holdings.keys(), ...scheduler.swarms.get(task.id)?.members.keys() ?? []]);
    const hosts = [...hostIds].sort().map((hostId) => scheduler.hosts.get(hostId)).filter((host) => host !== undefined);
    const viewOf = ({ facts: { id, hostname, ip } }: Host) => {
      const { complete = false, pieceCount: piece_count = 0 } = task.current(id) ?? {};
      return { id, hostname, ip, complete, piece_count };
    };
    return { ...task.spec, cluster_id: clusterId, meta: task.meta, hosts: hosts.map(viewOf) };
  }).sort((a, b) => a.task_id < b.task_id ? -1 : 1);
}
