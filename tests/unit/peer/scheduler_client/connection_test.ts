import { assert, assertEquals, assertRejects } from "@std/assert";
import { systemClock } from "../../../../peer/core/clock.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import type { HeldTask, HostFacts, SchedulerMessage } from "../../../../peer/core/wire/scheduler.ts";
import { type ConnectionDeps, SchedulerConnection } from "../../../../peer/scheduler_client/connection.ts";
import type { JoinState, SwarmListener } from "../../../../peer/task/swarm.ts";
import { FakeScheduler } from "../../../testutil/fake_scheduler.ts";

const ID = "a".repeat(64);
const DIGEST = "b".repeat(64);
const SPEC = { task_id: ID, url: "http://origin/f", tag: "", filter: "" };
const META = { generation: "g1", content_length: 10, piece_length: 262144, ranges: true };
const HOST: HostFacts = {
  id: "host-1",
  hostname: "h",
  ip: "127.0.0.1",
  upload_port: 1,
  type: "normal",
  idc: "",
  location: "",
  platform: "linux/amd64",
  version: "0",
};

function deps(over: Partial<ConnectionDeps> = {}): ConnectionDeps {
  return {
    clock: systemClock,
    random: () => 0,
    log: silentLogger,
    host: () => HOST,
    joinToken: "",
    held: () => [],
    load: () => ({ uploads: 1, downloads: 2, free_bytes: 3 }),
    onOrder: () => {},
    digestsOf: () => Promise.resolve([]),
    ...over,
  };
}

/** A listener that keeps the names of what it hears and lets the test wait for one. */
function listener(state: Partial<JoinState> = {}) {
  const heard: string[] = [];
  const waiters = new Set<() => void>();
  const hear = (what: string) => () => {
    heard.push(what);
    for (const wake of waiters) wake();
  };
  const swarm: SwarmListener = {
    joinState: () => ({ pieceCount: 0, canSource: true, anonymous: true, partial: false, ...state }),
    onTask: hear("task"),
    onMeta: hear("meta"),
    onNeighbours: hear("neighbours"),
    onCarriers: hear("carriers"),
    onDigests: hear("digests"),
    onLease: hear("lease"),
    onRevoke: hear("revoke"),
    onWantDigests: hear("want_digests"),
    onFailed: hear("failed"),
    onDown: hear("down"),
  };
  const heardOf = async (what: string) => {
    while (!heard.includes(what)) await new Promise<void>((resolve) => waiters.add(resolve));
  };
  return { swarm, heard, heardOf };
}

Deno.test("a host says hello, tells what it holds, and joins", async () => {
  await using scheduler = new FakeScheduler();
  const held: HeldTask = { ...SPEC, meta: META, piece_count: 1, complete: true };
  await using connection = new SchedulerConnection(scheduler.url, deps({ held: () => [held], joinToken: "secret" }));
  const traceparent = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;
  const { swarm, heardOf } = listener({ meta: META, pieceCount: 1, traceparent });
  connection.join(SPEC, swarm);
  const join = await scheduler.got("join");
  assertEquals(join.traceparent, traceparent);
  assertEquals(scheduler.received.map(({ type }) => type), ["hello", "held", "join"]);
  assertEquals((await scheduler.got("hello")).join_token, "secret");
  assertEquals([join.meta, join.piece_count], [META, 1]);
  scheduler.send({ type: "task", task_id: ID, meta: META, neighbours: [] });
  await heardOf("task");
});

Deno.test("every word of the scheduler reaches its task, and words for unknown tasks are answered or dropped", async () => {
  await using scheduler = new FakeScheduler();
  await using connection = new SchedulerConnection(scheduler.url, deps());
  const { swarm, heard, heardOf } = listener();
  connection.join(SPEC, swarm);
  await scheduler.got("join");
  const words: SchedulerMessage[] = [
    { type: "task", task_id: ID, meta: null, neighbours: [] },
    { type: "meta", task_id: ID, meta: META },
    { type: "neighbours", task_id: ID, add: [], remove: [] },
    { type: "neighbours", task_id: ID, add: [], remove: [], carriers: ["host"] },
    { type: "digests", task_id: ID, generation: "g1", pieces: [[0, DIGEST]] },
    { type: "lease", task_id: ID, lease_id: 1, generation: "g1", first: 0, count: 1 },
    { type: "revoke", task_id: ID, lease_id: 1 },
    { type: "want_digests", task_id: ID, generation: "g1" },
    { type: "failed", task_id: ID, error: { code: "network", message: "m" } },
  ];
  for (const word of words) scheduler.send(word);
  await heardOf("failed");
  // Who carries is told before the neighbours; of a task always, for a scheduler may have forgotten it.
  const before = (word: SchedulerMessage) => word.type === "task" || "carriers" in word ? ["carriers"] : [];
  assertEquals(heard, words.flatMap((word) => [...before(word), word.type]));
  scheduler.send({ type: "lease", task_id: "f".repeat(64), lease_id: 9, generation: null, first: 0, count: 0 });
  assertEquals((await scheduler.got("lease_end")).lease_id, 9);
});

Deno.test("after a break the host hears that the scheduler is down, and joins again by itself", async () => {
  await using scheduler = new FakeScheduler();
  await using connection = new SchedulerConnection(scheduler.url, deps());
  const { swarm, heardOf } = listener();
  connection.join(SPEC, swarm);
  await scheduler.got("join");
  const before = scheduler.received.length;
  scheduler.breakAll();
  await heardOf("down");
  await scheduler.got("join", before);
  assertEquals(scheduler.received.slice(before).map(({ type }) => type), ["hello", "join"]);
});

Deno.test("a scheduler that is not there is known as down at once after the first try", async () => {
  await using connection = new SchedulerConnection("ws://127.0.0.1:9/connect", deps());
  const first = listener();
  connection.join(SPEC, first.swarm);
  await first.heardOf("down");
  const second = listener();
  connection.join({ ...SPEC, task_id: "c".repeat(64) }, second.swarm);
  await second.heardOf("down");
});

Deno.test("a scheduler that sends what cannot be read loses its connection", async () => {
  await using scheduler = new FakeScheduler();
  await using connection = new SchedulerConnection(scheduler.url, deps());
  const { swarm, heardOf } = listener();
  connection.join(SPEC, swarm);
  await scheduler.got("join");
  scheduler.send("{");
  await heardOf("down");
});

Deno.test("pieces of one turn go in one message, and before the lease's end", async () => {
  await using scheduler = new FakeScheduler();
  await using connection = new SchedulerConnection(scheduler.url, deps());
  const { swarm } = listener();
  const membership = connection.join(SPEC, swarm);
  await scheduler.got("join");
  membership.pieces("g1", [[0, DIGEST]]);
  membership.pieces("g1", [[1, DIGEST]]);
  membership.leaseEnd(5);
  membership.leave();
  await scheduler.got("leave");
  const words = scheduler.received.filter(({ type }) => ["pieces", "lease_end", "leave"].includes(type));
  assertEquals(words.map(({ type }) => type), ["pieces", "lease_end", "leave"]);
  assert(words[0]!.type === "pieces" && words[0].pieces.length === 2);
});

Deno.test("digests of a task on disk that nobody works on are sent when asked for", async () => {
  await using scheduler = new FakeScheduler();
  await using _connection = new SchedulerConnection(
    scheduler.url,
    deps({ digestsOf: () => Promise.resolve([[0, DIGEST]]) }),
  );
  await scheduler.got("hello");
  scheduler.send({ type: "want_digests", task_id: ID, generation: "g1" });
  assertEquals((await scheduler.got("pieces")).pieces, [[0, DIGEST]]);
});

Deno.test("who has a task is asked and answered, and a scheduler that is away or goes away is said to be", async () => {
  await using scheduler = new FakeScheduler();
  await using connection = new SchedulerConnection(
    scheduler.url,
    deps({ held: () => [{ ...SPEC, meta: META, piece_count: 1, complete: true }] }),
  );
  assertEquals((await assertRejects(() => connection.find([ID]), LacewingError, "away")).code, "unavailable");
  await scheduler.got("held");
  const finding = connection.find([ID]);
  const { find_id, task_ids } = await scheduler.got("find");
  assertEquals(task_ids, [ID]);
  const found = { type: "found" as const, tasks: [], jobs: [] };
  // An answer to what nobody asks any more is nobody's.
  scheduler.send({ ...found, find_id: find_id + 1 });
  scheduler.send({ ...found, find_id });
  assertEquals(await finding, { ...found, find_id });
  const lost = assertRejects(() => connection.find([ID]), LacewingError, "went away");
  await scheduler.got("find", scheduler.received.findIndex(({ type }) => type === "find") + 1);
  scheduler.breakAll();
  assertEquals((await lost).code, "unavailable");
});

Deno.test("heartbeats carry the load", async () => {
  await using scheduler = new FakeScheduler(20);
  await using _connection = new SchedulerConnection(scheduler.url, deps());
  const { uploads, downloads, free_bytes } = await scheduler.got("heartbeat");
  assertEquals([uploads, downloads, free_bytes], [1, 2, 3]);
});

Deno.test("a scheduler that let a request time out is not waited for again until it speaks", async () => {
  await using scheduler = new FakeScheduler();
  await using connection = new SchedulerConnection(scheduler.url, deps());
  const [first, second, patient, third] = [listener(), listener(), listener({ canSource: false }), listener()];
  const spec = (letter: string) => ({ ...SPEC, task_id: letter.repeat(64) });
  connection.join(spec("a"), first.swarm);
  await first.heardOf("down");
  // From now on none is waited for: the next task knows at once, before a request would have timed out.
  const heard = { whenTimedOut: [] as string[] };
  const timedOut = new Promise<void>((resolve) =>
    setTimeout(() => resolve(void heard.whenTimedOut.push(...second.heard)), 1_000)
  );
  connection.join(spec("b"), second.swarm);
  connection.join(spec("c"), patient.swarm);
  await assertRejects(() => connection.find([ID]), LacewingError, "no answer");
  await timedOut;
  assertEquals([heard.whenTimedOut, patient.heard], [["down"], []]);
  // It heard everything meanwhile, and its first word counts for all.
  assertEquals(scheduler.received.filter(({ type }) => type === "join").length, 3);
  scheduler.send({ type: "task", task_id: spec("b").task_id, meta: null, neighbours: [] });
  await second.heardOf("task");
  connection.join(spec("d"), third.swarm);
  scheduler.send({ type: "task", task_id: spec("d").task_id, meta: null, neighbours: [] });
  await third.heardOf("task");
  assertEquals(third.heard, ["carriers", "task"]);
});
