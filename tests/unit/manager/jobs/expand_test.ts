import { assertEquals, assertMatch } from "@std/assert";
import { clusterTasks, resolveRequest } from "../../../../manager/jobs/expand.ts";
import { type PreheatArgs, runArgsOf } from "../../../../manager/jobs/job_args.ts";
import { jobRequest } from "../../../../manager/jobs/job_request.ts";
import { taskId } from "../../../../peer/core/task_id.ts";
import { host, item } from "../fakes.ts";
import { fileJob, IMAGE_URL, imageJob } from "./bench.ts";

const CLUSTER = { id: 1, name: "default" };
const args = (body: unknown) => runArgsOf(jobRequest.parse(body), { timeoutSeconds: 1 }) as PreheatArgs;
const never = () => Promise.reject(new Error("not asked"));

Deno.test("a file's task has the id that a download with this tag and filter has", async () => {
  const url = "http://h/a?Expires=1&x=2";
  const [task] = await clusterTasks(args(fileJob(url, { tag: "t", filter: "Expires" })), {
    cluster: CLUSTER,
    hosts: [host("a")],
    resolve: never,
  });
  assertEquals([task?.url, task?.taskId], [url, taskId("http://h/a?x=2", { tag: "t" })]);
});

Deno.test("a blob's own digest is checked also when it is preheated as a file", async () => {
  const hex = "b".repeat(64);
  const [task] = await clusterTasks(args(fileJob(`http://h/v2/app/blobs/sha256:${hex}`)), {
    cluster: CLUSTER,
    hosts: [host("a")],
    resolve: never,
  });
  assertEquals(task?.digest, `sha256:${hex}`);
});

Deno.test("without live hosts nothing is asked, and each URL says why", async () => {
  const tasks = await clusterTasks(args(fileJob(["http://h/a", "http://h/b"])), {
    cluster: CLUSTER,
    hosts: [],
    resolve: never,
  });
  assertEquals(tasks.map(({ state, error }) => [state, error?.code]), [["FAILURE", "unavailable"], [
    "FAILURE",
    "unavailable",
  ]]);
  assertMatch(tasks[0]!.error!.message, /cluster 1 "default".*no live host/);
});

Deno.test("platforms that are named must all be there, those of the hosts need not", () => {
  const platforms = ["linux/arm64", "linux/amd64", "linux/arm64"];
  const own = resolveRequest(args(imageJob({ platform: "linux/s390x" })), IMAGE_URL, platforms);
  assertEquals([own.platforms, own.require], [["linux/s390x"], "each"]);
  const found = resolveRequest(args(imageJob()), IMAGE_URL, platforms);
  assertEquals([found.platforms, found.require], [["linux/amd64", "linux/arm64"], "any"]);
});

Deno.test("an image without any content fails at its URL", async () => {
  const tasks = await clusterTasks(args(imageJob()), {
    cluster: CLUSTER,
    hosts: [host("a")],
    resolve: () => Promise.resolve({ items: [], skipped: [] }),
  });
  assertEquals(tasks.map(({ url, state }) => [url, state]), [[IMAGE_URL, "FAILURE"]]);
});

Deno.test("credentials in what the network says do not reach the result", async () => {
  const resolve = () => Promise.reject(new Error("https://u:pw@h/x?token=abc refused Bearer abcdefgh"));
  const [task] = await clusterTasks(args(imageJob()), { cluster: CLUSTER, hosts: [host("a")], resolve });
  assertEquals(/pw@|abc/.test(task!.error!.message), false);
});

Deno.test("items keep digest, length and headers", async () => {
  const layer = item("http://h/v2/app/blobs/x", { digest: "sha256:1", contentLength: 5, headers: { a: "b" } });
  const [task] = await clusterTasks(args(imageJob()), {
    cluster: CLUSTER,
    hosts: [host("a")],
    resolve: () => Promise.resolve({ items: [layer], skipped: [] }),
  });
  assertEquals([task?.digest, task?.contentLength, task?.item], ["sha256:1", 5, layer]);
});
