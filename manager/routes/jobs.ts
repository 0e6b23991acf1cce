/** `/api/v1/jobs`: create, poll, list, cancel and follow jobs. */
import { createRoute, z } from "@hono/zod-openapi";
import type { Clock } from "../../peer/core/clock.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import { jobEvents } from "../jobs/events.ts";
import { JOB_STATES } from "../jobs/job.ts";
import { JOB_TYPES, jobRequest } from "../jobs/job_request.ts";
import { jobSchema, jobTaskSchema } from "../jobs/job_schemas.ts";
import type { JobService } from "../jobs/service.ts";
import type { JobWatch } from "../jobs/watch.ts";
import { type Api, newApi } from "./env.ts";
import { body, choice, idParam, json, jsonPage, pageOf, pageQuery, problems, setPageHeaders } from "./schemas.ts";

/** Event streams that may be open at once. */
const EVENT_STREAMS_MAX = 256;
const TASK_STATES = [...JOB_STATES, "SKIPPED"] as const;
const tags = ["jobs"];

const createJob = createRoute({
  method: "post",
  path: "/",
  tags,
  summary: "Create a job",
  request: { body: body(jobRequest) },
  responses: { 200: json(jobSchema, "The job, PENDING"), ...problems(400, 413, 415, 422) },
});
const listJobs = createRoute({
  method: "get",
  path: "/",
  tags,
  summary: "List jobs, newest first",
  description: "Each cluster of a `result` holds at most 10 tasks here.",
  request: { query: pageQuery.extend({ state: choice(JOB_STATES), type: choice(JOB_TYPES) }) },
  responses: { 200: jsonPage(jobSchema, "One page"), ...problems(422) },
});
const getJob = createRoute({
  method: "get",
  path: "/{id}",
  tags,
  summary: "Poll a job",
  request: { params: idParam },
  responses: { 200: json(jobSchema, "The job as it is now"), ...problems(404, 422) },
});
const patchJob = createRoute({
  method: "patch",
  path: "/{id}",
  tags,
  summary: "Change a job's bio",
  request: { params: idParam, body: body(z.strictObject({ bio: z.string().max(4096) })) },
  responses: { 200: json(jobSchema, "The job"), ...problems(400, 404, 413, 415, 422) },
});
const deleteJob = createRoute({
  method: "delete",
  path: "/{id}",
  tags,
  summary: "Cancel a pending job, or delete the record of an ended one",
  request: { params: idParam },
  responses: {
    200: json(jobSchema, "The job, now CANCELED"),
    204: { description: "The record of the ended job is deleted" },
    ...problems(404, 422),
  },
});
const listTasks = createRoute({
  method: "get",
  path: "/{id}/tasks",
  tags,
  summary: "All tasks of a job in pages, failures first",
  request: {
    params: idParam,
    query: pageQuery.extend({
      state: choice(TASK_STATES),
      cluster_id: idParam.shape.id.optional(),
    }),
  },
  responses: { 200: jsonPage(jobTaskSchema, "One page"), ...problems(404, 422) },
});
const getEvents = createRoute({
  method: "get",
  path: "/{id}/events",
  tags,
  summary: "Follow a job by server-sent events",
  description:
    "`progress` at most twice a second, then `outcome`, each with the job; each cluster shows at most 10 tasks.",
  request: { params: idParam },
  responses: {
    200: { description: "The events", content: { "text/event-stream": { schema: z.string() } } },
    ...problems(404, 422),
  },
});

/** @param stopping aborts when the manager stops; open event streams end then */
export function jobRoutes(
  { jobs, watch, clock, stopping }: { jobs: JobService; watch: JobWatch; clock: Clock; stopping: AbortSignal },
): Api {
  let streams = 0;
  const api = newApi();
  api.openapi(createJob, async (c) => c.json(await jobs.create(c.req.valid("json")), 200));
  api.openapi(listJobs, async (c) => {
    const { state, type, ...page } = c.req.valid("query");
    const found = await jobs.list({ state, type }, pageOf(page));
    setPageHeaders(c, page, found.total);
    return c.json(found.jobs, 200);
  });
  api.openapi(getJob, async (c) => c.json(await jobs.get(c.req.valid("param").id), 200));
  api.openapi(patchJob, async (c) => c.json(await jobs.setBio(c.req.valid("param").id, c.req.valid("json").bio), 200));
  api.openapi(deleteJob, async (c) => {
    const canceled = await jobs.remove(c.req.valid("param").id);
    return canceled === null ? c.body(null, 204) : c.json(canceled, 200);
  });
  api.openapi(listTasks, async (c) => {
    const { state, cluster_id: clusterId, ...page } = c.req.valid("query");
    const found = await jobs.tasks(c.req.valid("param").id, { state, clusterId }, pageOf(page));
    setPageHeaders(c, page, found.total);
    return c.json(found.tasks, 200);
  });
  api.openapi(getEvents, async (c) => {
    const { id } = c.req.valid("param");
    await jobs.brief(id);
    if (c.req.method === "HEAD") return c.body(null, 200, { "Content-Type": "text/event-stream" });
    if (streams >= EVENT_STREAMS_MAX) {
      throw new LacewingError(
        "unavailable",
        `Cannot open another event stream: ${EVENT_STREAMS_MAX} are open; poll the job`,
      );
    }
    streams += 1;
    const events = jobEvents(id, {
      read: () => jobs.brief(id),
      watch,
      clock,
      signal: stopping,
      onEnd: () => streams -= 1,
    });
    return c.body(events, 200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  });
  return api;
}
