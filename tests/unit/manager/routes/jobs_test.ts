// covers: manager/jobs/job_schemas.ts manager/jobs/service.ts manager/jobs/view.ts
import { assert, assertEquals, assertMatch } from "@std/assert";
import { jobSchema } from "../../../../manager/jobs/job_schemas.ts";
import { complete, failing, forever, host, item } from "../fakes.ts";
import { fileJob, IMAGE_URL, imageJob } from "../jobs/bench.ts";
import { openApi } from "./api.ts";

const JOBS = "/api/v1/jobs";
const URL_A = "http://origin.example.com/a?b=1";

Deno.test("POST answers 200 with the seed's fields and their defaults", async () => {
  await using api = await openApi({ running: false });
  const response = await api.request("POST", JOBS, { json: imageJob() });
  assertEquals(response.status, 200);
  const job = await response.json();
  assertEquals([job.id, job.type, job.status, job.state, job.bio, job.result], [
    1,
    "preheat",
    "PENDING",
    "PENDING",
    "",
    null,
  ]);
  assertMatch(job.task_id, /^group_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assertEquals(job.args, {
    type: "image",
    url: IMAGE_URL,
    filter: "",
    headers: null,
    tag: "",
    scope: "single_seed_peer",
    timeout: 600,
  });
  assertEquals(job.scheduler_clusters, [{ id: 1, name: "default" }]);
  assert(!Number.isNaN(Date.parse(job.created_at)) && !Number.isNaN(Date.parse(job.updated_at)));
});

Deno.test("secrets are blotted out of every answer and gone from the store when the job ends", async () => {
  await using api = await openApi();
  api.schedulers.hostList = [host("a")];
  api.resolver.answer = () => ({
    items: [item("http://registry.example.com/l", { headers: { authorization: "Bearer t0ps3cret" } })],
    skipped: [],
  });
  const args = {
    username: "u",
    password: "pa55word!",
    headers: { Authorization: "Basic dG9wc2VjcmV0", Accept: "text/plain" },
  };
  api.schedulers.answer = forever;
  const { id } = await (await api.request("POST", JOBS, { json: imageJob(args) })).json();
  await api.clock.advance(0);
  assertEquals(api.resolver.requests[0]?.password, "pa55word!");
  assertEquals(api.resolver.requests[0]?.headers, args.headers);
  const text = await (await api.request("GET", `${JOBS}/${id}`)).text();
  assert(!/pa55word|dG9wc2VjcmV0|t0ps3cret/.test(text), text);
  const job = JSON.parse(text);
  assertEquals([job.args.password, job.args.username, job.args.headers], ["***", "u", {
    Authorization: "***",
    Accept: "text/plain",
  }]);
  await api.request("DELETE", `${JOBS}/${id}`);
  assertEquals((await api.store.jobs.get(id)).runArgs, null);
  assertEquals((await api.store.jobTasks.list(id, { limit: 10 })).map(({ item }) => item), [null]);
});

Deno.test("an image becomes a task for each content, skipped layers are reported and do not count", async () => {
  await using api = await openApi();
  api.schedulers.hostList = [host("a"), host("b", { platform: "linux/arm64" }), host("c")];
  const digest = `sha256:${"a".repeat(64)}`;
  api.resolver.answer = () => ({
    items: [item("http://registry.example.com/m", { digest, contentLength: 7 })],
    skipped: [{ url: "http://elsewhere.example.com/foreign", reason: "a foreign layer" }],
  });
  const { id } = await (await api.request("POST", JOBS, { json: imageJob() })).json();
  await api.clock.advance(0);
  await api.clock.advance(0);
  const job = await (await api.request("GET", `${JOBS}/${id}`)).json();
  assertEquals(api.resolver.requests.map(({ platforms, require }) => [platforms, require]), [[[
    "linux/amd64",
    "linux/arm64",
  ], "any"]]);
  assertEquals(job.status, "SUCCESS");
  assertEquals(job.result.tasks, { total: 1, done: 1, failed: 0 });
  assertEquals(job.result.clusters[0].tasks.map((task: { state: string }) => task.state), ["SKIPPED", "SUCCESS"]);
  assertEquals(api.schedulers.orders[0]?.task.digest, digest);
  jobSchema.parse(job);
});

Deno.test("an image that cannot be resolved fails with URL and reason", async () => {
  await using api = await openApi();
  const { LacewingError } = await import("../../../../peer/core/errors.ts");
  api.schedulers.hostList = [host("a")];
  api.resolver.answer = () => {
    throw new LacewingError("source_not_found", "Cannot read the manifest: the registry answered 404");
  };
  const { id } = await (await api.request("POST", JOBS, { json: imageJob() })).json();
  await api.clock.advance(0);
  await api.clock.advance(0);
  const job = await (await api.request("GET", `${JOBS}/${id}`)).json();
  assertEquals(job.status, "FAILURE");
  const [task] = job.result.clusters[0].tasks;
  assertEquals([task.url, task.error.code], [IMAGE_URL, "source_not_found"]);
  assertMatch(task.error.message, /manifests\/latest.*404/);
});

const BAD_BODIES: [string, unknown, string][] = [
  ["no type", { args: { type: "file", url: URL_A } }, "type"],
  ["unknown type", { type: "warm", args: {} }, "type"],
  ["no args", { type: "preheat" }, "args"],
  ["unknown args type", { type: "preheat", args: { type: "video", url: URL_A } }, "args.type"],
  ["no url", { type: "preheat", args: { type: "image" } }, "args.url"],
  ["a file without url and urls", { type: "preheat", args: { type: "file" } }, "args.url"],
  ["a URL that is none", fileJob("nonsense"), "args.urls.0"],
  ["a scheme that is not http", fileJob("ftp://h/x"), "args.urls.0"],
  ["a file URL", fileJob("file:///etc/passwd"), "args.urls.0"],
  ["credentials in the URL", fileJob("http://u:p@h/x"), "args.urls.0"],
  ["an image URL that is no manifest", imageJob({ url: URL_A }), "args.url"],
  ["an empty list of urls", fileJob([]), "args.urls"],
  ["too many urls", fileJob(Array.from({ length: 1001 }, (_, at) => `http://h/${at}`)), "args.urls"],
  ["an unknown key", fileJob(URL_A, { filters: "x" }), "args.filters"],
  ["an unknown key beside args", { ...fileJob(URL_A), user: 1 }, "user"],
  ["platform for a file", fileJob(URL_A, { platform: "linux/amd64" }), "args.platform"],
  ["a platform that is none", imageJob({ platform: "Linux" }), "args.platform"],
  ["headers that are no object", fileJob(URL_A, { headers: "a: b" }), "args.headers"],
  ["a header value that is no text", fileJob(URL_A, { headers: { a: 1 } }), "args.headers.a"],
  ["a header value of two lines", fileJob(URL_A, { headers: { a: "x\r\nb: c" } }), "args.headers.a"],
  ["a header name with a space", fileJob(URL_A, { headers: { "a b": "x" } }), "args.headers.a b"],
  ["a header that hosts set", fileJob(URL_A, { headers: { Range: "bytes=0-1" } }), "args.headers.Range"],
  ["an unknown scope", fileJob(URL_A, { scope: "everyone" }), "args.scope"],
  ["timeout 0", fileJob(URL_A, { timeout: 0 }), "args.timeout"],
  ["a timeout of text", fileJob(URL_A, { timeout: "5m" }), "args.timeout"],
  ["cluster ids of text", fileJob(URL_A, { scheduler_cluster_ids: ["1"] }), "args.scheduler_cluster_ids.0"],
  ["no cluster id at all", fileJob(URL_A, { scheduler_cluster_ids: [] }), "args.scheduler_cluster_ids"],
  [
    "cluster ids that disagree",
    { ...fileJob(URL_A, { scheduler_cluster_ids: [1] }), scheduler_cluster_ids: [2] },
    "args.scheduler_cluster_ids",
  ],
  ["filters that disagree", fileJob(URL_A, { filter: "a", filtered_query_params: "b" }), "args.filtered_query_params"],
  ["a task id that is none", { type: "get_task", args: { task_id: "1" } }, "args.task_id"],
  ["neither task id nor url", { type: "delete_task", args: {} }, "args.url"],
  ["null", null, ""],
  ["a list", [], ""],
];
for (const [what, body, path] of BAD_BODIES) {
  Deno.test(`POST refuses ${what} with 422 and names the path`, async () => {
    await using api = await openApi({ running: false });
    const response = await api.request("POST", JOBS, { json: body });
    const problem = await response.json();
    assertEquals([response.status, problem.code], [422, "invalid"], JSON.stringify(problem));
    assert(problem.errors.some((error: { path: string }) => error.path === path), JSON.stringify(problem.errors));
    assertEquals(await api.store.jobs.count(), 0);
  });
}

Deno.test("an unknown cluster id is 422 and named", async () => {
  await using api = await openApi({ running: false });
  const response = await api.request("POST", JOBS, { json: { ...fileJob(URL_A), scheduler_cluster_ids: [1, 77] } });
  assertEquals(response.status, 422);
  assertMatch((await response.json()).detail, /77/);
});

Deno.test("an echoed body can be posted again", async () => {
  await using api = await openApi({ running: false });
  const { args } = await (await api.request("POST", JOBS, { json: imageJob({ platform: ["linux/amd64", "all"] }) }))
    .json();
  assertEquals((await api.request("POST", JOBS, { json: { type: "preheat", args } })).status, 200);
});

Deno.test("cluster ids count in either place", async () => {
  await using api = await openApi({ running: false });
  const { id } = await api.store.clusters.create({ name: "two" });
  for (
    const json of [fileJob(URL_A, { scheduler_cluster_ids: [id] }), { ...fileJob(URL_A), scheduler_cluster_ids: [id] }]
  ) {
    const job = await (await api.request("POST", JOBS, { json })).json();
    assertEquals(job.scheduler_clusters, [{ id, name: "two" }]);
  }
});

Deno.test("GET lists newest first in pages with Link and X-Total-Count", async () => {
  await using api = await openApi({ running: false });
  for (let count = 0; count < 5; count++) await api.request("POST", JOBS, { json: fileJob(URL_A) });
  const response = await api.request("GET", `${JOBS}?page=2&per_page=2&state=PENDING&type=`);
  assertEquals((await response.json()).map(({ id }: { id: number }) => id), [3, 2]);
  assertEquals(response.headers.get("X-Total-Count"), "5");
  const link = response.headers.get("Link") ?? "";
  assertEquals([...link.matchAll(/[?&]page=(\d+)[^>]*>; rel="(\w+)"/g)].map(([, page, rel]) => [rel, page]), [
    ["prev", "1"],
    ["next", "3"],
    ["first", "1"],
    ["last", "3"],
  ]);
  assert(link.includes("state=PENDING"));
  assertEquals(await (await api.request("GET", `${JOBS}?state=SUCCESS`)).json(), []);
});

for (
  const query of [
    "page=0",
    "page=x",
    "per_page=0",
    "per_page=101",
    "per_page=-1",
    "per_page=1.5",
    "state=DONE",
    "type=warm",
  ]
) {
  Deno.test(`GET refuses ?${query} with 422`, async () => {
    await using api = await openApi({ running: false });
    const response = await api.request("GET", `${JOBS}?${query}`);
    assertEquals(response.status, 422);
    assertEquals((await response.json()).errors[0].path, query.split("=")[0]);
  });
}

for (const id of ["abc", "0", "-1", "1.5", "99999999999999999999", "%00"]) {
  Deno.test(`an id of ${id} is refused with 422`, async () => {
    await using api = await openApi({ running: false });
    for (const [method, path] of [["GET", ""], ["DELETE", ""], ["GET", "/tasks"], ["GET", "/events"]] as const) {
      const response = await api.request(method, `${JOBS}/${id}${path}`);
      assertEquals([response.status, (await response.json()).errors[0].path], [422, "id"]);
    }
  });
}

Deno.test("an unknown id is 404 everywhere", async () => {
  await using api = await openApi({ running: false });
  const calls = [["GET", ""], ["DELETE", ""], ["PATCH", ""], ["GET", "/tasks"], ["GET", "/events"]] as const;
  for (const [method, path] of calls) {
    const response = await api.request(method, `${JOBS}/7${path}`, method === "PATCH" ? { json: { bio: "" } } : {});
    assertEquals([response.status, (await response.json()).code], [404, "not_found"]);
  }
});

Deno.test("PATCH changes the bio and nothing else", async () => {
  await using api = await openApi({ running: false });
  await api.request("POST", JOBS, { json: { ...fileJob(URL_A), bio: "before" } });
  const job = await (await api.request("PATCH", `${JOBS}/1`, { json: { bio: "after" } })).json();
  assertEquals(job.bio, "after");
  assertEquals((await api.request("PATCH", `${JOBS}/1`, { json: { status: "SUCCESS" } })).status, 422);
  assertEquals((await api.request("PATCH", `${JOBS}/1`, { json: {} })).status, 422);
});

Deno.test("DELETE cancels a pending job with 200, then deletes its record with 204", async () => {
  await using api = await openApi({ running: false });
  await api.request("POST", JOBS, { json: fileJob(URL_A) });
  const canceled = await api.request("DELETE", `${JOBS}/1`);
  assertEquals([canceled.status, (await canceled.json()).status], [200, "CANCELED"]);
  const deleted = await api.request("DELETE", `${JOBS}/1`);
  assertEquals([deleted.status, await deleted.text()], [204, ""]);
  assertEquals((await api.request("GET", `${JOBS}/1`)).status, 404);
});

Deno.test("all tasks come in pages, failures first, while result is bounded", async () => {
  await using api = await openApi();
  api.schedulers.hostList = [host("a")];
  const urls = Array.from({ length: 15 }, (_, at) => `http://origin.example.com/${at}`);
  api.schedulers.answer = ({ task }) => task.url.endsWith("/9") ? failing("source_not_found", "gone") : complete();
  await api.create(fileJob(urls));
  await api.clock.advance(1000);
  const listed = await (await api.request("GET", JOBS)).json();
  assertEquals(listed[0].result.clusters[0].tasks.length, 10);
  assertEquals((await (await api.request("GET", `${JOBS}/1`)).json()).result.clusters[0].tasks.length, 15);
  const page = await api.request("GET", `${JOBS}/1/tasks?per_page=4`);
  assertEquals(page.headers.get("X-Total-Count"), "15");
  const tasks = await page.json();
  assertEquals([tasks.length, tasks[0].state, tasks[0].cluster_id, tasks[1].state], [4, "FAILURE", 1, "SUCCESS"]);
  const failed = await api.request("GET", `${JOBS}/1/tasks?state=FAILURE&cluster_id=1`);
  assertEquals([failed.headers.get("X-Total-Count"), (await failed.json()).length], ["1", 1]);
});

Deno.test("events follow a job to its outcome and end there", async () => {
  await using api = await openApi();
  api.schedulers.hostList = [host("a")];
  const release = Promise.withResolvers<void>();
  api.schedulers.answer = async () => {
    await release.promise;
    return complete();
  };
  const id = await api.create(fileJob(URL_A));
  const response = await api.request("GET", `${JOBS}/${id}/events`);
  assertEquals(response.headers.get("content-type"), "text/event-stream");
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const first = (await reader.read()).value ?? "";
  assertMatch(first, /^event: progress\ndata: \{.*"status":"PENDING".*\}\n\n$/);
  release.resolve();
  await api.clock.advance(500);
  assertMatch((await reader.read()).value ?? "", /^event: outcome\ndata: .*"status":"SUCCESS"/);
  assertEquals((await reader.read()).done, true);
});

Deno.test("HEAD of the events does not open a stream", async () => {
  await using api = await openApi({ running: false });
  await api.request("POST", JOBS, { json: fileJob(URL_A) });
  const response = await api.request("HEAD", `${JOBS}/1/events`);
  assertEquals([response.status, response.body], [200, null]);
});
