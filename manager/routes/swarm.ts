/** What lives right now: `/api/v1/peers`, `/seed-peers`, `/tasks`, and the schedulers that hosts connect to. */
import { createRoute, z } from "@hono/zod-openapi";
import { hostFacts, taskMeta, taskSpec } from "../../peer/core/wire/scheduler.ts";
import type { HostView, Schedulers } from "../scheduler/schedulers.ts";
import { type Api, newApi } from "./env.ts";
import {
  choice,
  idParam,
  json,
  jsonPage,
  pageOf,
  type PageQuery,
  pageQuery,
  problems,
  setPageHeaders,
} from "./schemas.ts";

const count = z.number().int().nonnegative();
const peerSchema = hostFacts.extend({
  cluster_id: z.number().int(),
  connected_at: z.string().openapi({ format: "date-time" }),
  uploads: count,
  downloads: count,
  free_bytes: count,
}).openapi("Peer");
const taskSchema = taskSpec.extend({
  cluster_id: z.number().int(),
  meta: taskMeta.nullable(),
  hosts: z.array(z.looseObject({
    id: z.string(),
    hostname: z.string(),
    ip: z.string(),
    complete: z.boolean(),
    piece_count: count,
  })),
}).loose().openapi("Task");
const schedulerSchema = z.object({
  id: z.number().int(),
  url: z.string().openapi({ description: "WebSocket address that hosts connect to." }),
}).openapi("Scheduler");

const inCluster = pageQuery.extend({ cluster_id: idParam.shape.id.optional() });
const listPeers = createRoute({
  method: "get",
  path: "/peers",
  tags: ["peers"],
  summary: "Live hosts",
  request: { query: inCluster.extend({ type: choice(["normal", "seed"]) }) },
  responses: { 200: jsonPage(peerSchema, "One page"), ...problems(422) },
});
const listSeedPeers = createRoute({
  method: "get",
  path: "/seed-peers",
  tags: ["peers"],
  summary: "Live seed peers",
  request: { query: inCluster },
  responses: { 200: jsonPage(peerSchema, "One page"), ...problems(422) },
});
const listTasks = createRoute({
  method: "get",
  path: "/tasks",
  tags: ["tasks"],
  summary: "Contents that live hosts hold",
  request: { query: inCluster },
  responses: { 200: jsonPage(taskSchema, "One page"), ...problems(422) },
});
const listSchedulers = createRoute({
  method: "get",
  path: "/schedulers",
  tags: ["schedulers"],
  summary: "Where hosts connect",
  responses: { 200: json(z.array(schedulerSchema), "All schedulers"), ...problems() },
});

/** @param schedulerUrl the WebSocket address as the asking host reaches it, from its own request */
export function swarmRoutes(
  { schedulers, schedulerUrl }: { schedulers: Schedulers; schedulerUrl: (requestUrl: string) => string },
): Api {
  const api = newApi();
  const hosts = (clusterId: number | undefined, type?: HostView["type"]) =>
    schedulers.hosts(clusterId).filter((host) => type === undefined || host.type === type);
  api.openapi(listPeers, (c) => {
    const { cluster_id, type, ...page } = c.req.valid("query");
    const all = hosts(cluster_id, type);
    setPageHeaders(c, page, all.length);
    return c.json(cut(all, page), 200);
  });
  api.openapi(listSeedPeers, (c) => {
    const { cluster_id, ...page } = c.req.valid("query");
    const all = hosts(cluster_id, "seed");
    setPageHeaders(c, page, all.length);
    return c.json(cut(all, page), 200);
  });
  api.openapi(listTasks, (c) => {
    const { cluster_id, ...page } = c.req.valid("query");
    const all = schedulers.tasks(cluster_id);
    setPageHeaders(c, page, all.length);
    return c.json(cut(all, page).map((task) => ({ ...task, hosts: [...task.hosts] })), 200);
  });
  api.openapi(listSchedulers, (c) => c.json([{ id: 1, url: schedulerUrl(c.req.url) }], 200));
  return api;
}

function cut<T>(all: readonly T[], page: PageQuery): T[] {
  const { limit, offset } = pageOf(page);
  return all.slice(offset, offset + limit);
}
