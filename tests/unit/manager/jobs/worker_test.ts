import { assert, assertEquals, assertMatch } from "@std/assert";
import { hasEnded } from "../../../../manager/jobs/job.ts";
import { complete, failing, forever, host, item } from "../fakes.ts";
import { fileJob, imageJob, openBench } from "./bench.ts";

const URL_A = "http://origin.example.com/a";
const URL_B = "http://origin.example.com/b";

Deno.test("a file job ends SUCCESS when each task is complete", async () => {
  await using bench = await openBench();
  bench.schedulers.hostList = [host("a")];
  const id = await bench.create(fileJob([URL_A, URL_B], { tag: "t", headers: { "X-Key": "1" } }));
  const job = await bench.service.get(id);
  assertEquals([job.status, job.state], ["SUCCESS", "SUCCESS"]);
  assertEquals(job.result?.tasks, { total: 2, done: 2, failed: 0 });
  assertEquals(job.result?.bytes, { total: 200, done: 200, from_source: 200, from_peers: 0 });
  assertEquals(job.result?.clusters.map(({ id, name, state }) => [id, name, state]), [[1, "default", "SUCCESS"]]);
  const [first] = bench.schedulers.orders;
  assertEquals([first?.task.url, first?.task.tag, first?.task.headers], [URL_A, "t", { "X-Key": "1" }]);
  assertEquals(first?.scope, "single_seed_peer");
});

Deno.test("one failed task fails the job, names URL and reason, and the others still run", async () => {
  await using bench = await openBench({ retries: 0 });
  bench.schedulers.hostList = [host("a")];
  bench.schedulers.answer = ({ task }) =>
    task.url === URL_A ? failing("source_not_found", "the origin answered 404") : complete();
  const job = await bench.service.get(await bench.create(fileJob([URL_A, URL_B])));
  assertEquals(job.status, "FAILURE");
  const [failed, done] = job.result!.clusters[0]!.tasks;
  assertEquals([failed?.url, failed?.state, failed?.error?.code], [URL_A, "FAILURE", "source_not_found"]);
  assertMatch(failed!.error!.message, /origin\.example\.com\/a: host host-a .*404/);
  assertEquals([done?.url, done?.state, done?.error], [URL_B, "SUCCESS", null]);
});

Deno.test("a cluster without live hosts fails with exactly that reason", async () => {
  await using bench = await openBench();
  const job = await bench.service.get(await bench.create(fileJob(URL_A)));
  assertEquals(job.status, "FAILURE");
  const { code, message } = job.result!.clusters[0]!.tasks[0]!.error!;
  assertEquals(code, "unavailable");
  assertMatch(message, /no live host/);
  assertEquals(bench.schedulers.orders.length, 0);
});

Deno.test("what may pass is tried again with pauses, what cannot is not", async () => {
  await using bench = await openBench({ retries: 2 });
  bench.schedulers.hostList = [host("a")];
  bench.schedulers.answer = () => failing("network", "connection refused");
  const id = await bench.create(fileJob(URL_A));
  assertEquals((await bench.service.get(id)).status, "PENDING");
  await bench.clock.advance(1000);
  assertEquals(bench.schedulers.orders.length, 2);
  await bench.clock.advance(1999);
  assertEquals(bench.schedulers.orders.length, 2);
  bench.schedulers.answer = () => complete();
  await bench.clock.advance(1);
  assertEquals((await bench.service.get(id)).status, "SUCCESS");

  bench.schedulers.answer = () => failing("digest_mismatch", "wrong bytes");
  const other = await bench.create(fileJob(URL_B));
  assertEquals((await bench.service.get(other)).status, "FAILURE");
});

Deno.test("a refused token is refreshed once and the task goes on", async () => {
  await using bench = await openBench();
  bench.schedulers.hostList = [host("a")];
  bench.resolver.answer = () => ({
    items: [item("http://registry.example.com/l1", { headers: { authorization: "old" } })],
    skipped: [],
  });
  bench.resolver.fresh = () => ({ authorization: "new" });
  bench.schedulers.answer = ({ task }) =>
    task.headers.authorization === "new" ? complete() : failing("source_refused", "401");
  const job = await bench.service.get(await bench.create(imageJob()));
  assertEquals([job.status, bench.resolver.refreshes], ["SUCCESS", 1]);
});

Deno.test("credentials that stay refused fail the task", async () => {
  await using bench = await openBench();
  bench.schedulers.hostList = [host("a")];
  bench.resolver.answer = () => ({
    items: [item("http://registry.example.com/l1", { headers: { authorization: "old" } })],
    skipped: [],
  });
  bench.resolver.fresh = () => ({ authorization: "old" });
  bench.schedulers.answer = () => failing("source_refused", "401");
  const job = await bench.service.get(await bench.create(imageJob()));
  assertEquals([job.status, bench.resolver.refreshes, bench.schedulers.orders.length], ["FAILURE", 1, 1]);
});

Deno.test("result fills while the job runs", async () => {
  await using bench = await openBench();
  bench.schedulers.hostList = [host("a")];
  const release = Promise.withResolvers<void>();
  bench.schedulers.answer = async ({ onProgress }) => {
    onProgress({ ...complete(100), done: 40, fromSource: 10, fromPeers: 30 });
    await release.promise;
    return complete(100);
  };
  const id = await bench.create(fileJob(URL_A));
  const job = await bench.service.get(id);
  assertEquals(job.status, "PENDING");
  assertEquals(job.result?.bytes, { total: 100, done: 40, from_source: 10, from_peers: 30 });
  assertEquals(job.result?.clusters[0]?.tasks[0]?.hosts.length, 1);
  release.resolve();
  await bench.clock.advance(0);
  assertEquals((await bench.service.get(id)).status, "SUCCESS");
});

Deno.test("the total counts what the registry told before the first host has asked", async () => {
  await using bench = await openBench();
  bench.schedulers.hostList = [host("a")];
  bench.resolver.answer = () => ({
    items: [item("http://registry.example.com/l", { contentLength: 70 })],
    skipped: [],
  });
  bench.schedulers.answer = (order) => {
    order.onProgress({ ...complete(), contentLength: null, done: 0, fromSource: 0 });
    return forever(order);
  };
  const job = await bench.service.get(await bench.create(imageJob()));
  assertEquals(job.result?.bytes, { total: 70, done: 0, from_source: 0, from_peers: 0 });
});

Deno.test("a cancelled job calls its orders off and stays CANCELED", async () => {
  await using bench = await openBench();
  bench.schedulers.hostList = [host("a")];
  bench.schedulers.answer = forever;
  const id = await bench.create(fileJob([URL_A, URL_B]));
  assertEquals((await bench.service.remove(id))?.status, "CANCELED");
  await bench.clock.advance(0);
  assert(bench.schedulers.orders.every(({ signal }) => signal.aborted));
  const job = await bench.service.get(id);
  assertEquals(job.status, "CANCELED");
  assertEquals(job.result?.clusters[0]?.tasks.map(({ state }) => state), ["CANCELED", "CANCELED"]);
  assertEquals(await bench.service.remove(id), null);
});

Deno.test("a job that runs out of time fails what is undone and keeps what is done", async () => {
  await using bench = await openBench();
  bench.schedulers.hostList = [host("a")];
  bench.schedulers.answer = (order) => order.task.url === URL_A ? complete() : forever(order);
  const id = await bench.create(fileJob([URL_A, URL_B], { timeout: 30 }));
  await bench.clock.advance(29_999);
  assertEquals((await bench.service.get(id)).status, "PENDING");
  await bench.clock.advance(1);
  const job = await bench.service.get(id);
  assertEquals(job.status, "FAILURE");
  assertEquals(job.result?.tasks, { total: 2, done: 1, failed: 1 });
  assertMatch(job.result!.clusters[0]!.tasks[0]!.error!.message, /timeout of 30 s/);
});

Deno.test("a job that runs out of time while the registry is asked says so at its URL", async () => {
  await using bench = await openBench({ hostsBackAtMs: 60_000 });
  const id = await bench.create(imageJob({ timeout: 5 }));
  await bench.clock.advance(5000);
  const job = await bench.service.get(id);
  assertEquals(job.status, "FAILURE");
  assertEquals(job.result?.clusters[0]?.tasks.map(({ url, error }) => [url, error?.code]), [[
    imageJob().args.url,
    "timeout",
  ]]);
});

Deno.test("a job goes on after its worker died, and runs only what was undone", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/manager.db`;
    const first = await openBench({ path });
    first.schedulers.hostList = [host("a"), host("b")];
    first.schedulers.answer = (order) => order.task.url === URL_A ? complete() : forever(order);
    const id = await first.create(fileJob([URL_A, URL_B], { headers: { Authorization: "Bearer abcdefgh" } }));
    // The first worker is not stopped: it never gives its lease back, as after a SIGKILL.
    await using second = await openBench({ path, startMs: 1_900_000_001_000, hostsBackAtMs: 60_000 });
    second.schedulers.hostList = [host("a")];
    await second.clock.advance(10_000);
    assertEquals(second.schedulers.orders.length, 0, "the lease of the dead worker still holds");
    await second.clock.advance(6000);
    assertEquals(second.schedulers.orders.length, 0, "host b is waited for");
    second.schedulers.hostList = [host("a"), host("b")];
    await second.clock.advance(200);
    assertEquals(second.schedulers.orders.map(({ task }) => task.url), [URL_B]);
    assertEquals(second.schedulers.orders[0]?.task.headers, { Authorization: "Bearer abcdefgh" });
    const job = await second.service.get(id);
    assertEquals(job.status, "SUCCESS");
    assertEquals(job.result?.tasks, { total: 2, done: 2, failed: 0 });
    await first[Symbol.asyncDispose]();
    assertEquals((await second.service.get(id)).status, "SUCCESS");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a job that goes on does not ask the registry again: a tag that moved meanwhile does not mix two images", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/manager.db`;
    const first = await openBench({ path });
    first.schedulers.hostList = [host("a")];
    const layer = item("http://registry.example.com/l1", { headers: { authorization: "Bearer kept" } });
    first.resolver.answer = () => ({ items: [layer], skipped: [] });
    first.schedulers.answer = forever;
    const id = await first.create(imageJob());
    await first[Symbol.asyncDispose]();
    await using second = await openBench({ path });
    second.schedulers.hostList = [host("a")];
    await second.clock.advance(1000);
    assertEquals((await second.service.get(id)).status, "SUCCESS");
    assertEquals(second.resolver.requests.length, 0);
    assertEquals(second.schedulers.orders[0]?.task.headers, layer.headers);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a clean stop leaves the job pending and free at once", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/manager.db`;
    const first = await openBench({ path });
    first.schedulers.hostList = [host("a")];
    first.schedulers.answer = forever;
    const id = await first.create(fileJob(URL_A));
    await first[Symbol.asyncDispose]();
    await using second = await openBench({ path });
    second.schedulers.hostList = [host("a")];
    await second.clock.advance(1000);
    assertEquals((await second.service.get(id)).status, "SUCCESS");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a worker that lost its lease lets go of the job", async () => {
  await using bench = await openBench();
  bench.schedulers.hostList = [host("a")];
  bench.schedulers.answer = forever;
  await bench.create(fileJob(URL_A));
  await bench.store.jobs.releaseAll();
  await bench.store.jobs.claim("another worker", { leaseMs: 60_000, limit: 1 });
  await bench.clock.advance(5000);
  assertEquals(bench.schedulers.orders.map(({ signal }) => signal.aborted), [true]);
});

Deno.test("two clusters run side by side, and a job with one id touches only that one", async () => {
  await using bench = await openBench();
  const { id: other } = await bench.store.clusters.create({ name: "other" });
  bench.schedulers.hostList = [host("a"), host("b", { cluster_id: other })];
  await bench.create({ ...fileJob(URL_A), scheduler_cluster_ids: [other] });
  assertEquals(bench.schedulers.orders.map(({ clusterId }) => clusterId), [other]);
  const both = await bench.service.get(await bench.create(fileJob(URL_B)));
  assertEquals(both.scheduler_clusters.map(({ id }) => id), [1, other]);
  assertEquals(both.result?.clusters.map(({ state }) => state), ["SUCCESS", "SUCCESS"]);
  assertEquals(bench.schedulers.orders.slice(1).map(({ clusterId }) => clusterId), [1, other]);
});

Deno.test("at most concurrentTasks of a job run at once", async () => {
  await using bench = await openBench({ concurrentTasks: 2 });
  bench.schedulers.hostList = [host("a")];
  let [running, most] = [0, 0];
  bench.schedulers.answer = async () => {
    running += 1;
    most = Math.max(most, running);
    await bench.clock.sleep(10);
    running -= 1;
    return complete();
  };
  const id = await bench.create(fileJob(Array.from({ length: 7 }, (_, index) => `${URL_A}/${index}`)));
  await bench.clock.advance(100);
  assertEquals([(await bench.service.get(id)).status, most], ["SUCCESS", 2]);
});

Deno.test("an unexpected failure of the swarm ends in a task that says so, not in a job that never ends", async () => {
  await using bench = await openBench({ retries: 0 });
  bench.schedulers.hostList = [host("a")];
  bench.schedulers.answer = () => {
    throw new TypeError("undefined is not a function");
  };
  const job = await bench.service.get(await bench.create(fileJob(URL_A)));
  assert(hasEnded(job.status));
  assertEquals(job.result?.clusters[0]?.tasks[0]?.error?.code, "unknown");
});

Deno.test("records of ended jobs are removed after their time", async () => {
  await using bench = await openBench();
  bench.schedulers.hostList = [host("a")];
  await bench.create(fileJob(URL_A));
  await bench.clock.advance(3_600_000 + 600_000 + 2000);
  assertEquals(await bench.store.jobs.count(), 0);
});
