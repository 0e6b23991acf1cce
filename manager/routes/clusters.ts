/** `/api/v1/scheduler-clusters`: the sets of hosts that jobs name. */
import { createRoute, z } from "@hono/zod-openapi";
import type { Cluster, ClusterChange, ClusterStore } from "../store/clusters.ts";
import { type Api, newApi } from "./env.ts";
import { body, idParam, json, jsonPage, pageOf, pageQuery, problems, setPageHeaders } from "./schemas.ts";

const tags = ["scheduler-clusters"];
const name = z.string().regex(/^[^\s\p{Cc}](?:[^\p{Cc}]{0,126}[^\s\p{Cc}])?$/u, "want 1 to 128 characters on one line");
const scopes = z.strictObject({
  idc: z.string().max(1024).optional().openapi({ description: "Names separated by `|`." }),
  location: z.string().max(1024).optional().openapi({ description: "Such as `country|province|city`." }),
  cidrs: z.array(z.string().refine(isCidr, "want an address range such as 10.0.0.0/8")).max(1000).optional(),
  hostnames: z.array(z.string().min(1).max(256).refine(isRegExp, "want a regular expression")).max(1000).optional(),
}).openapi("ClusterScopes", { description: "Which hosts belong here; others go to the default cluster." });
const config = z.strictObject({}).openapi({ description: "No keys in this version." });

const change = z.strictObject({
  name: name.optional(),
  bio: z.string().max(4096).optional(),
  is_default: z.boolean().optional().openapi({ description: "True takes the mark from the present default." }),
  scopes: scopes.optional(),
  config: config.optional(),
}).openapi("SchedulerClusterChange");
const creation = change.extend({ name }).openapi("SchedulerClusterRequest");
const clusterSchema = z.object({
  id: z.number().int(),
  name: z.string(),
  bio: z.string(),
  is_default: z.boolean(),
  scopes,
  config,
  created_at: z.string().openapi({ format: "date-time" }),
  updated_at: z.string().openapi({ format: "date-time" }),
}).openapi("SchedulerCluster");

const list = createRoute({
  method: "get",
  path: "/",
  tags,
  summary: "List clusters",
  request: { query: pageQuery },
  responses: { 200: jsonPage(clusterSchema, "One page"), ...problems(422) },
});
const create = createRoute({
  method: "post",
  path: "/",
  tags,
  summary: "Create a cluster",
  request: { body: body(creation) },
  responses: { 200: json(clusterSchema, "The cluster"), ...problems(400, 409, 413, 415, 422) },
});
const get = createRoute({
  method: "get",
  path: "/{id}",
  tags,
  summary: "Get a cluster",
  request: { params: idParam },
  responses: { 200: json(clusterSchema, "The cluster"), ...problems(404, 422) },
});
const patch = createRoute({
  method: "patch",
  path: "/{id}",
  tags,
  summary: "Change a cluster",
  request: { params: idParam, body: body(change) },
  responses: { 200: json(clusterSchema, "The cluster"), ...problems(400, 404, 409, 413, 415, 422) },
});
const remove = createRoute({
  method: "delete",
  path: "/{id}",
  tags,
  summary: "Delete a cluster that is not the default",
  request: { params: idParam },
  responses: { 204: { description: "It is deleted" }, ...problems(404, 409, 422) },
});

export function clusterRoutes({ clusters }: { clusters: ClusterStore }): Api {
  const api = newApi();
  api.openapi(list, async (c) => {
    const page = c.req.valid("query");
    setPageHeaders(c, page, await clusters.count());
    return c.json((await clusters.list(pageOf(page))).map(view), 200);
  });
  api.openapi(create, async (c) => {
    const request = c.req.valid("json");
    const cluster = await clusters.create({ ...changeOf(request), name: request.name });
    return c.json(view(cluster), 200);
  });
  api.openapi(get, async (c) => c.json(view(await clusters.get(c.req.valid("param").id)), 200));
  api.openapi(patch, async (c) => {
    const cluster = await clusters.update(c.req.valid("param").id, changeOf(c.req.valid("json")));
    return c.json(view(cluster), 200);
  });
  api.openapi(remove, async (c) => {
    await clusters.remove(c.req.valid("param").id);
    return c.body(null, 204);
  });
  return api;
}

function changeOf(request: z.output<typeof change>): ClusterChange {
  return { name: request.name, bio: request.bio, isDefault: request.is_default, scopes: request.scopes };
}

function view(cluster: Cluster) {
  return {
    id: cluster.id,
    name: cluster.name,
    bio: cluster.bio,
    is_default: cluster.isDefault,
    scopes: cluster.scopes,
    config: {},
    created_at: new Date(cluster.createdAtMs).toISOString(),
    updated_at: new Date(cluster.updatedAtMs).toISOString(),
  };
}

function isCidr(text: string): boolean {
  const match = /^(.+)\/(\d{1,3})$/.exec(text);
  const [address, bits] = [match?.[1] ?? "", Number(match?.[2])];
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(address)) {
    return bits <= 32 && address.split(".").every((part) => Number(part) <= 255);
  }
  return address.includes(":") && bits <= 128 && URL.parse(`http://[${address}]/`) !== null;
}

function isRegExp(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}
