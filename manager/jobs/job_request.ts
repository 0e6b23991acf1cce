/**
 * The body of `POST /api/v1/jobs`: one schema that validates, describes
 * itself in the OpenAPI document, and refuses unknown keys. Fields that have
 * two names (`filter`, the cluster ids) must agree when both are given.
 */
import { z } from "@hono/zod-openapi";

/** Contents that one file job may name. */
const URLS_MAX = 1000;
/** A week; what runs longer is stuck. */
const TIMEOUT_SECONDS_MAX = 604_800;
const HEADERS_MAX = 100;
const URL_LENGTH_MAX = 8192;
/** Headers that belong to the connection or to the piece that is read, not to the content. */
const RESERVED_HEADERS = new Set([
  "connection",
  "content-length",
  "host",
  "if-match",
  "if-range",
  "keep-alive",
  "proxy-connection",
  "range",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const contentUrl = z.string().min(1).max(URL_LENGTH_MAX).superRefine((text, context) => {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    context.addIssue("want an absolute http or https URL");
  } else if (url.username !== "" || url.password !== "") {
    context.addIssue("want a URL without user and password; give credentials as headers, or username and password");
  }
}).openapi({ format: "uri" });

const manifestUrl = contentUrl.refine(
  (text) => /\/v2\/.+\/manifests\/[^/]+$/.test(URL.parse(text)?.pathname ?? ""),
  "want a manifest URL such as https://registry.example.com/v2/library/app/manifests/latest",
);

const headers = z.record(
  z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/, "want a header name"),
  // deno-lint-ignore no-control-regex
  z.string().max(8192).regex(/^[^\u0000-\u0008\u000a-\u001f\u007f]*$/, "want a header value on one line"),
).superRefine((value, context) => {
  const names = Object.keys(value);
  if (names.length > HEADERS_MAX) context.addIssue(`want at most ${HEADERS_MAX} headers`);
  for (const name of names.filter((name) => RESERVED_HEADERS.has(name.toLowerCase()))) {
    context.addIssue({ code: "custom", path: [name], message: "this header is set by the hosts themselves" });
  }
}).nullable();

const platformName = z.string().max(64).regex(
  /^([a-z0-9]+\/[a-z0-9_]+(\/[a-z0-9.]+)?|all)$/,
  "want a platform such as linux/amd64 or linux/arm/v7, or all",
);

const clusterIds = z.array(z.number().int().positive()).min(1, "want at least one id, or leave it out for all clusters")
  .max(1000);

const common = {
  scheduler_cluster_ids: clusterIds.nullish().openapi({ description: "Where; absent means in every cluster." }),
  timeout: z.number().int().min(1).max(TIMEOUT_SECONDS_MAX).optional().openapi({
    description: "Seconds the whole job may take, from when a worker takes it; `job.timeout` of the manager if absent.",
  }),
};
const identity = {
  filter: z.string().max(1024).optional().openapi({
    description: "Names of query parameters that are not part of the content's identity, `key&sign`.",
  }),
  filtered_query_params: z.string().max(1024).optional().openapi({ description: "The same as `filter`." }),
  tag: z.string().max(256).optional().openapi({ description: "A different tag makes a different task." }),
};
const preheat = {
  ...common,
  ...identity,
  headers: headers.optional().openapi({ description: "Sent to the origin of the URL, and to no other." }),
  scope: z.enum(["single_seed_peer", "all_seed_peers", "all_peers"]).default("single_seed_peer"),
};

const imageArgs = z.strictObject({
  type: z.literal("image"),
  url: manifestUrl,
  ...preheat,
  platform: z.union([platformName, z.array(platformName).min(1).max(64)], "want a platform, a list of them, or all")
    .optional().openapi({ description: "`linux/amd64`, a list, or `all`; absent: those of the cluster's live hosts." }),
  username: z.string().max(256).optional(),
  password: z.string().max(8192).optional(),
}).openapi("PreheatImageArgs");

const fileArgs = z.strictObject({
  type: z.literal("file"),
  url: contentUrl.optional(),
  urls: z.array(contentUrl).min(1).max(URLS_MAX).optional(),
  ...preheat,
}).openapi("PreheatFileArgs");

const taskArgs = z.strictObject({
  ...common,
  ...identity,
  task_id: z.string().regex(/^[0-9a-f]{64}$/, "want 64 hex digits").optional(),
  url: contentUrl.optional(),
}).openapi("TaskArgs");

const outer = {
  bio: z.string().max(4096).optional(),
  scheduler_cluster_ids: clusterIds.nullish().openapi({ description: "The same as in `args`; both must agree." }),
};

const jobRequestUnion = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("preheat"),
    args: z.discriminatedUnion("type", [imageArgs, fileArgs], {
      error: ({ input }) => isObject(input) ? 'want type "image" or "file"' : "want an object",
    }),
    ...outer,
  }).openapi("PreheatJobRequest"),
  z.strictObject({ type: z.literal("get_task"), args: taskArgs, ...outer }).openapi("GetTaskJobRequest"),
  z.strictObject({ type: z.literal("delete_task"), args: taskArgs, ...outer }).openapi("DeleteTaskJobRequest"),
  z.strictObject({ type: z.literal("sync_peers"), args: z.strictObject(common).default({}), ...outer })
    .openapi("SyncPeersJobRequest"),
], {
  error: ({ input }) => isObject(input) ? "want preheat, get_task, delete_task or sync_peers" : "want an object",
});

export const jobRequest = jobRequestUnion.superRefine((body, context) => {
  for (const [key, message] of contradictions(body)) {
    context.addIssue({ code: "custom", path: ["args", key], message });
  }
}).openapi("JobRequest");

export type JobRequest = z.output<typeof jobRequest>;
export type JobType = JobRequest["type"];
export const JOB_TYPES = ["preheat", "get_task", "delete_task", "sync_peers"] as const satisfies readonly JobType[];

/** What no single field shows: the argument's key and what is wrong with it. */
function* contradictions(body: z.output<typeof jobRequestUnion>): Iterable<[string, string]> {
  if (!agree(body.scheduler_cluster_ids, body.args.scheduler_cluster_ids)) {
    yield ["scheduler_cluster_ids", "given beside args too, with other ids; want the same, or one of the two"];
  }
  if (body.type === "sync_peers") return;
  if (!agree(body.args.filter, body.args.filtered_query_params)) {
    yield ["filtered_query_params", "given as filter too, with another value; want the same, or one of the two"];
  }
  if (body.type === "preheat") {
    const { args } = body;
    if (args.type === "file" && args.url === undefined && args.urls === undefined) {
      yield ["url", "missing; want a url, or urls"];
    }
  } else if ((body.args.task_id === undefined) === (body.args.url === undefined)) {
    yield ["url", "want either task_id or url"];
  }
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function agree(a: unknown, b: unknown): boolean {
  if (a === undefined || a === null || b === undefined || b === null) return true;
  const normal = (value: unknown) => JSON.stringify(Array.isArray(value) ? [...value].sort((x, y) => x - y) : value);
  return normal(a) === normal(b);
}
