/** Jobs as the API answers them; the words of INTERFACE section 1.1. */
import { z } from "@hono/zod-openapi";
import { JOB_STATES } from "./job.ts";
import { JOB_TYPES } from "./job_request.ts";

const state = z.enum(JOB_STATES).openapi("JobState");
const taskState = z.enum([...JOB_STATES, "SKIPPED"]).openapi("JobTaskState", {
  description: "`SKIPPED`: not preheated on purpose (foreign layers); the error says why. It does not count.",
});
const error = z.object({ code: z.string(), message: z.string() }).nullable();
const time = z.string().openapi({ format: "date-time" });
const bytes = z.number().int().nonnegative();

const hostPart = z.looseObject({ id: z.string(), hostname: z.string(), ip: z.string(), state: z.string(), error })
  .openapi("JobTaskHost", { description: "`get_task` and `delete_task` add `complete`, `piece_count` and `bytes`." });

const taskEntry = z.object({
  task_id: z.string(),
  url: z.string().nullable(),
  digest: z.string().nullable(),
  content_length: bytes.nullable(),
  state: taskState,
  error,
  hosts: z.array(hostPart),
}).openapi("JobTask");

/** An entry of `/jobs/:id/tasks`. */
export const jobTaskSchema = taskEntry.extend({ cluster_id: z.number().int() }).openapi("JobTaskOfCluster");

const result = z.object({
  bytes: z.object({ total: bytes, done: bytes, from_source: bytes, from_peers: bytes }).openapi({
    description: "Sums over all hosts that the scope asks for.",
  }),
  tasks: z.object({ total: bytes, done: bytes, failed: bytes }),
  clusters: z.array(z.looseObject({ id: z.number().int(), name: z.string(), state, tasks: z.array(taskEntry) })),
}).openapi("JobResult", {
  description:
    "Live while pending; at most 1,000 tasks a cluster, failures first. `sync_peers` adds `hosts` to each cluster.",
});

export const jobSchema = z.object({
  id: z.number().int(),
  task_id: z.string().openapi({ description: "`group_` and a UUID." }),
  type: z.enum(JOB_TYPES),
  status: state,
  state,
  bio: z.string(),
  args: z.record(z.string(), z.unknown()).openapi({ description: "As given; secrets are shown as `***`." }),
  result: result.nullable(),
  scheduler_clusters: z.array(z.object({ id: z.number().int(), name: z.string() })),
  created_at: time,
  updated_at: time,
}).openapi("Job");

export type JobView = z.output<typeof jobSchema>;
export type JobTaskView = z.output<typeof taskEntry>;
