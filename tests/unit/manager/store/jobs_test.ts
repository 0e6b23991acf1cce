// covers: manager/store/job_tasks.ts
import { assertEquals, assertRejects } from "@std/assert";
import { openStore, type Store } from "../../../../manager/store/store.ts";
import type { NewJobTask } from "../../../../manager/store/job_tasks.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

function add(store: Store, timeout = 60) {
  return store.jobs.create({
    taskId: `group_${crypto.randomUUID()}`,
    type: "preheat",
    bio: "",
    args: {},
    runArgs: { timeout, password: "secret" },
    clusters: [{ id: 1, name: "default" }],
  });
}

function task(name: string, facts: Partial<NewJobTask> = {}): NewJobTask {
  return {
    taskId: name,
    url: `http://h/${name}`,
    digest: null,
    contentLength: 10,
    state: "PENDING",
    error: null,
    item: { url: name },
    ...facts,
  };
}

const ENDED = {
  state: "SUCCESS" as const,
  error: null,
  contentLength: 12,
  hosts: [],
  total: 12,
  done: 12,
  fromSource: 5,
  fromPeers: 7,
};

Deno.test("a job is claimed by one worker, until its lease runs out", async () => {
  let nowMs = 1000;
  await using store = await openStore(":memory:", () => nowMs);
  const { id } = await add(store);
  const lease = { leaseMs: 100, limit: 10 };
  assertEquals((await store.jobs.claim("a", lease)).map((job) => [job.id, job.deadlineAtMs]), [[id, 61_000]]);
  assertEquals(await store.jobs.claim("b", lease), []);
  assertEquals([await store.jobs.renew(id, "b", 100), await store.jobs.renew(id, "a", 100)], [false, true]);
  nowMs = 1101;
  assertEquals((await store.jobs.claim("b", lease)).map((job) => job.deadlineAtMs), [61_000], "the deadline stays");
  assertEquals(await store.jobs.renew(id, "a", 100), false);
  assertEquals(await store.jobs.end(id, { owner: "a", state: "SUCCESS" }), false, "the lease is lost");
  await store.jobs.release(id, "a");
  assertEquals(await store.jobs.claim("c", lease), [], "only the owner gives it back");
  await store.jobs.release(id, "b");
  assertEquals((await store.jobs.claim("c", lease)).length, 1);
});

Deno.test("claims are oldest first, and bounded", async () => {
  await using store = await openStore(":memory:");
  for (let count = 0; count < 3; count++) await add(store);
  const claim = () => store.jobs.claim("a", { leaseMs: 100, limit: 2 });
  assertEquals((await claim()).map(({ id }) => id), [1, 2]);
  assertEquals((await claim()).map(({ id }) => id), [3]);
});

Deno.test("a job ends once: an outcome and a cancel never both win", async () => {
  await using store = await openStore(":memory:");
  const { id } = await add(store);
  await store.jobs.claim("a", { leaseMs: 100, limit: 1 });
  const won = await Promise.all([
    store.jobs.cancel(id),
    store.jobs.end(id, { owner: "a", state: "SUCCESS" }),
    store.jobs.cancel(id),
  ]);
  assertEquals(won, [true, false, false]);
  const job = await store.jobs.get(id);
  assertEquals([job.state, job.runArgs], ["CANCELED", null]);
});

Deno.test("only ended jobs are removed, with all their tasks", async () => {
  let nowMs = 1000;
  await using store = await openStore(":memory:", () => nowMs);
  const { id } = await add(store);
  await add(store);
  await store.jobTasks.addCluster(id, { clusterId: 1, hostIds: [], tasks: [task("a")] });
  assertEquals(await store.jobs.remove(id), false);
  await store.jobs.cancel(id);
  nowMs = 2000;
  assertEquals(await store.jobs.removeEndedBefore(1000), 0);
  assertEquals(await store.jobs.removeEndedBefore(1001), 1);
  assertEquals(await store.jobTasks.count(id, {}), 0);
  assertEquals(await store.jobs.count(), 1);
  await assertRejects(() => store.jobs.get(id), LacewingError, "none with this id");
});

Deno.test("tasks of a cluster appear once and all at once", async () => {
  await using store = await openStore(":memory:");
  const { id } = await add(store);
  const many = Array.from({ length: 1200 }, (_, at) => task(`t${at}`));
  await store.jobTasks.addCluster(id, { clusterId: 1, hostIds: ["x"], tasks: [...many, task("t0")] });
  await store.jobTasks.addCluster(id, { clusterId: 1, hostIds: ["y"], tasks: [task("late")] });
  assertEquals(await store.jobTasks.count(id, {}), 1200);
  assertEquals([...await store.jobTasks.clusters(id)], [[1, ["x"]]]);
  await store.jobs.cancel(id);
  await store.jobTasks.addCluster(id, { clusterId: 2, hostIds: [], tasks: [task("a")] });
  assertEquals(await store.jobTasks.count(id, { clusterId: 2 }), 0, "an ended job gets no more");
});

Deno.test("a task that has ended does not change again", async () => {
  await using store = await openStore(":memory:");
  const { id } = await add(store);
  await store.jobTasks.addCluster(id, { clusterId: 1, hostIds: [], tasks: [task("a"), task("b")] });
  const [a] = await store.jobTasks.pending(id, 1);
  await store.jobTasks.end(a!.id, ENDED);
  await store.jobTasks.end(a!.id, { ...ENDED, state: "FAILURE" });
  await store.jobTasks.failPending(id, { code: "timeout", message: "late" });
  const [failed, done] = await store.jobTasks.list(id, { limit: 10 });
  assertEquals([failed?.taskId, failed?.state, failed?.error?.code], ["b", "FAILURE", "timeout"]);
  assertEquals([done?.state, done?.item, done?.contentLength], ["SUCCESS", null, 12]);
  assertEquals(await store.jobTasks.sums(id), [
    { clusterId: 1, state: "FAILURE", count: 1, total: 10, done: 0, fromSource: 0, fromPeers: 0 },
    { clusterId: 1, state: "SUCCESS", count: 1, total: 12, done: 12, fromSource: 5, fromPeers: 7 },
  ]);
});

Deno.test("lists are narrowed by state and type", async () => {
  await using store = await openStore(":memory:");
  const { id } = await add(store);
  await add(store);
  await store.jobs.cancel(id);
  const list = async (filter: object) =>
    (await store.jobs.list({ ...filter, limit: 10, offset: 0 })).map((job) => job.id);
  assertEquals(await list({}), [2, 1]);
  assertEquals(await list({ state: "CANCELED" }), [1]);
  assertEquals(await list({ type: "get_task" }), []);
  assertEquals(await store.jobs.countByState(), { CANCELED: 1, PENDING: 1 });
});
