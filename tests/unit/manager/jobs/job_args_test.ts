// covers: manager/jobs/job_request.ts
import { assertEquals } from "@std/assert";
import { clusterIdsOf, echoOf, type PreheatArgs, runArgsOf, type TaskArgs } from "../../../../manager/jobs/job_args.ts";
import { jobRequest } from "../../../../manager/jobs/job_request.ts";
import { taskId } from "../../../../peer/core/task_id.ts";
import { fileJob, imageJob } from "./bench.ts";

const CONFIG = { timeoutSeconds: 3600 };
const run = (body: unknown) => runArgsOf(jobRequest.parse(body), CONFIG);

const PLATFORMS: [unknown, unknown][] = [
  [undefined, null],
  ["linux/amd64", ["linux/amd64"]],
  [["linux/amd64", "linux/arm/v7", "linux/amd64"], ["linux/amd64", "linux/arm/v7"]],
  ["all", "all"],
  [["linux/amd64", "all"], "all"],
];
for (const [platform, platforms] of PLATFORMS) {
  Deno.test(`platform ${JSON.stringify(platform)} runs as ${JSON.stringify(platforms)}`, () => {
    assertEquals<unknown>(
      (run(imageJob(platform === undefined ? {} : { platform })) as PreheatArgs).platforms,
      platforms,
    );
  });
}

Deno.test("url and urls of a file job are one list", () => {
  assertEquals((run(fileJob(["http://h/b", "http://h/c"], { url: "http://h/a" })) as PreheatArgs).urls, [
    "http://h/a",
    "http://h/b",
    "http://h/c",
  ]);
});

Deno.test("defaults are filled in", () => {
  assertEquals(run(fileJob("http://h/a")), {
    type: "file",
    urls: ["http://h/a"],
    filter: "",
    tag: "",
    headers: {},
    platforms: null,
    scope: "single_seed_peer",
    timeout: 3600,
  });
});

Deno.test("filtered_query_params is the filter by its newer name", () => {
  const request = jobRequest.parse(fileJob("http://h/a", { filtered_query_params: "a&b" }));
  const args = runArgsOf(request, CONFIG) as PreheatArgs;
  assertEquals([args.filter, echoOf(request, args).filter], ["a&b", "a&b"]);
});

Deno.test("a task is named by its id, or by URL, tag and filter", () => {
  const byUrl = run({ type: "get_task", args: { url: "http://h/a?x=1", tag: "t", filter: "x" } }) as TaskArgs;
  assertEquals(byUrl.task_id, taskId("http://h/a", { tag: "t" }));
  const id = "f".repeat(64);
  assertEquals(run({ type: "delete_task", args: { task_id: id } }), { task_id: id, url: null, timeout: 3600 });
});

Deno.test("cluster ids are read in either place, once each; null and absent mean all", () => {
  const ids = (body: unknown) => clusterIdsOf(jobRequest.parse(body));
  assertEquals(ids(fileJob("http://h/a", { scheduler_cluster_ids: [2, 2, 1] })), [2, 1]);
  assertEquals(ids({ ...fileJob("http://h/a", { scheduler_cluster_ids: [1, 2] }), scheduler_cluster_ids: [2, 1] }), [
    1,
    2,
  ]);
  assertEquals(ids(fileJob("http://h/a", { scheduler_cluster_ids: null })), null);
  assertEquals(ids({ type: "sync_peers" }), null);
});
