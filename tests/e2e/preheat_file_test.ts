/** Preheat jobs for files: polled, limited to clusters, failed with reasons, and carried over a crash. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { assertDownloaded, jobEnded, joined, startCluster } from "../testutil/cluster.ts";
import { startOrigin } from "../testutil/origin.ts";
import type { ManagerProcess } from "../testutil/process.ts";

const MIB = 1024 * 1024;

async function preheat(
  manager: ManagerProcess,
  args: Record<string, unknown>,
  beside: Record<string, unknown> = {},
  // deno-lint-ignore no-explicit-any
): Promise<any> {
  const answer = await manager.api("POST", "/api/v1/jobs", { type: "preheat", args, ...beside });
  assertEquals(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}

Deno.test("a preheated file downloads on every daemon with its origin gone", async () => {
  const origin = startOrigin();
  const url = origin.put("/f", { size: 6 * MIB + 3 });
  const digest = origin.digest("/f");
  await using cluster = await startCluster({ daemons: 2, seeds: 1 });
  const created = await preheat(cluster.manager, { type: "file", url });
  assertEquals(
    Object.keys(created).filter((key) => ["id", "task_id", "type", "status", "args"].includes(key)).length,
    5,
  );
  assert(Number.isInteger(created.id));
  assertMatch(created.task_id, /^group_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  assertEquals([created.type, created.status, created.state, created.result], ["preheat", "PENDING", "PENDING", null]);
  assertEquals([created.args.type, created.args.url, created.args.filter, created.args.headers, created.args.tag], [
    "file",
    url,
    "",
    null,
    "",
  ]);
  assertEquals(created.scheduler_clusters, [{ id: 1, name: "default" }]);
  const ended = await jobEnded(cluster.manager, created.id);
  assertEquals(ended.status, "SUCCESS", JSON.stringify(ended.result));
  assertEquals(ended.result.bytes.total, 6 * MIB + 3);
  assertEquals(ended.result.bytes.done, 6 * MIB + 3);
  assertEquals(ended.result.tasks, { total: 1, done: 1, failed: 0 });
  const [task] = ended.result.clusters[0].tasks;
  assertEquals([task.url, task.state, task.hosts.length, task.hosts[0].hostname], [url, "SUCCESS", 1, "seed-0"]);
  await origin[Symbol.asyncDispose]();
  for (const daemon of cluster.daemons) {
    await assertDownloaded(await daemon.client(url, "-O", daemon.out()), daemon.out(), digest);
  }
});

Deno.test("the scope all_peers puts the file on every host, and the origin sends it once", async () => {
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 4 * MIB });
  await using cluster = await startCluster({ daemons: 3, seeds: 1 });
  const ended = await jobEnded(
    cluster.manager,
    (await preheat(cluster.manager, { type: "file", url, scope: "all_peers" })).id,
  );
  assertEquals(ended.status, "SUCCESS", JSON.stringify(ended.result));
  assertEquals(ended.result.clusters[0].tasks[0].hosts.length, 4);
  assert(origin.bytesSent("/f") <= 4 * MIB * 1.05);
  origin.put("/f", { status: 500 });
  const results = await Promise.all(
    cluster.daemons.map((daemon) => daemon.client(url, "-O", daemon.out(), "--disable-back-source")),
  );
  for (const result of results) assertEquals(result.code, 0, result.stderr);
});

Deno.test("a job with one cluster's id touches only that cluster, without ids both, and an unknown id is refused by name", async () => {
  await using origin = startOrigin();
  const one = origin.put("/one", { size: MIB });
  const both = origin.put("/both", { size: MIB });
  await using cluster = await startCluster({ daemons: 1, daemon: { config: { host: { idc: "a" } } } });
  const { manager } = cluster;
  const made = await manager.api("POST", "/api/v1/scheduler-clusters", { name: "second", scopes: { idc: "b" } });
  assertEquals(made.status, 200, JSON.stringify(made.body));
  await using other = await joined(manager, { hostname: "other", config: { host: { idc: "b" } } });
  const onlySecond = await jobEnded(
    manager,
    (await preheat(manager, { type: "file", url: one, scheduler_cluster_ids: [made.body.id] })).id,
  );
  assertEquals(onlySecond.status, "SUCCESS", JSON.stringify(onlySecond.result));
  assertEquals(onlySecond.result.clusters.map(({ id }: { id: number }) => id), [made.body.id]);
  assertEquals(onlySecond.result.clusters[0].tasks[0].hosts[0].hostname, "other");
  origin.put("/one", { status: 500 });
  const [daemon] = cluster.daemons;
  assertEquals((await daemon!.client(one, "-O", daemon!.out(), "--disable-back-source")).code, 5);
  assertEquals((await other.client(one, "-O", other.out(), "--disable-back-source")).code, 0);
  const all = await jobEnded(manager, (await preheat(manager, { type: "file", url: both }, {})).id);
  assertEquals(all.status, "SUCCESS", JSON.stringify(all.result));
  assertEquals(all.result.clusters.map(({ name }: { name: string }) => name).sort(), ["default", "second"]);
  const unknown = await manager.api("POST", "/api/v1/jobs", {
    type: "preheat",
    args: { type: "file", url: both, scheduler_cluster_ids: [77] },
  });
  assertEquals(unknown.status, 422);
  assertStringIncludes(unknown.body.detail, "77");
});

Deno.test("a file that fails names its URL and the reason, and the others are preheated", async () => {
  await using origin = startOrigin();
  const good = origin.put("/good", { size: MIB });
  const missing = origin.put("/missing", { status: 404 });
  await using cluster = await startCluster({ daemons: 1 });
  const ended = await jobEnded(
    cluster.manager,
    (await preheat(cluster.manager, { type: "file", url: good, urls: [missing] })).id,
  );
  assertEquals(ended.status, "FAILURE");
  assertEquals(ended.result.tasks, { total: 2, done: 1, failed: 1 });
  const [first] = ended.result.clusters[0].tasks;
  assertEquals([first.url, first.state], [missing, "FAILURE"]);
  assertStringIncludes(JSON.stringify(first.error), "404");
});

Deno.test("a cluster without any live host fails with that reason", async () => {
  await using cluster = await startCluster({ daemons: 0 });
  const ended = await jobEnded(
    cluster.manager,
    (await preheat(cluster.manager, { type: "file", url: "http://127.0.0.1:9/f" })).id,
  );
  assertEquals(ended.status, "FAILURE");
  assertStringIncludes(JSON.stringify(ended.result), "no live host");
});

Deno.test("a job goes on to SUCCESS after the manager was killed in the middle of it", async () => {
  await using origin = startOrigin({ bytesPerSecond: 8 * MIB });
  const urls = Array.from({ length: 4 }, (_, index) => origin.put(`/f${index}`, { size: 8 * MIB, seed: index + 1 }));
  await using cluster = await startCluster({ daemons: 1, seeds: 1 });
  const created = await preheat(cluster.manager, { type: "file", url: urls[0], urls: urls.slice(1) });
  const download = cluster.daemons[0]!.client(urls[3]!, "-O", cluster.daemons[0]!.out());
  await origin.sent(10 * MIB);
  const before = await cluster.manager.api("GET", `/api/v1/jobs/${created.id}`);
  assertEquals(before.body.status, "PENDING");
  assert(before.body.result.bytes.done > 0, "the result does not fill while the job runs");
  await cluster.manager.kill("SIGKILL");
  await cluster.manager.start();
  const ended = await jobEnded(cluster.manager, created.id);
  assertEquals(ended.status, "SUCCESS", JSON.stringify(ended.result));
  await assertDownloaded(await download, cluster.daemons[0]!.out(), origin.digest("/f3"));
  assert(origin.bytesSent() <= 32 * MIB * 1.3, `the origin sent ${(origin.bytesSent() / 32 / MIB).toFixed(2)} copies`);
});

Deno.test("a pending job is cancelled by DELETE, and its hosts stop", async () => {
  await using origin = startOrigin({ bytesPerSecond: 256 * 1024 });
  const url = origin.put("/f", { size: 64 * MIB });
  await using cluster = await startCluster({ daemons: 1 });
  const created = await preheat(cluster.manager, { type: "file", url });
  await origin.sent(1, "/f");
  const canceled = await cluster.manager.api("DELETE", `/api/v1/jobs/${created.id}`);
  assert(canceled.status === 200 || canceled.status === 204, String(canceled.status));
  assertEquals((await jobEnded(cluster.manager, created.id)).status, "CANCELED");
});
