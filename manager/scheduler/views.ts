/** Turns a scheduler's state into what the API and the job worker see. Pure. */
import { redactText } from "../../peer/core/log.ts";
import { FOUND_MAX, type FoundTask } from "../../peer/core/wire/scheduler.ts";
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

/** Who has a task, in the words of the protocol; null where nobody has heard of it. */
export function foundTask(taskId: string, scheduler: Scheduler): FoundTask | null {
  const task = scheduler.tasks.get(taskId);
  if (task === undefined) return null;
  const hostIds = [...new Set([...task.holdings.keys(), ...scheduler.swarms.get(taskId)?.members.keys() ?? []])].sort();
  // While the generation is being found out every one counts.
  const holdingOf = (hostId: string) => task.meta === null ? task.holdings.get(hostId) : task.current(hostId);
  const hosts = hostIds.map((hostId) => ({ host_id: hostId, holding: holdingOf(hostId) }));
  // Who takes part and has nothing yet is no holder.
  const holders = hosts.filter(({ holding }) => (holding?.pieceCount ?? 0) > 0 || holding?.complete === true);
  return {
    task_id: taskId,
    content_length: task.meta?.content_length ?? null,
    piece_length: task.meta?.piece_length ?? null,
    host_count: holders.length,
    hosts: holders.slice(0, FOUND_MAX).map(({ host_id, holding }) => ({
      host_id,
      hostname: scheduler.hosts.get(host_id)?.facts.hostname ?? "",
      complete: holding?.complete ?? false,
      piece_count: holding?.pieceCount ?? 0,
    })),
  };
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
    // Who asked by a signed URL gave it to nobody but its origin.
    const url = redactText(task.spec.url);
    return { ...task.spec, url, cluster_id: clusterId, meta: task.meta, hosts: hosts.map(viewOf) };
  }).sort((a, b) => a.task_id < b.task_id ? -1 : 1);
}
