import { assertEquals } from "@std/assert";
import { systemClock } from "../../../../peer/core/clock.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { SchedulerSet } from "../../../../peer/scheduler_client/scheduler_set.ts";
import type { SwarmListener } from "../../../../peer/task/swarm.ts";
import { FakeScheduler } from "../../../testutil/fake_scheduler.ts";

const DEPS = {
  clock: systemClock,
  random: () => 0,
  log: silentLogger,
  host: () => ({
    id: "host-1",
    hostname: "h",
    ip: "127.0.0.1",
    upload_port: 1,
    type: "normal" as const,
    idc: "",
    location: "",
    platform: "linux/amd64",
    version: "0",
  }),
  joinToken: "token-1",
  held: () => [],
  load: () => ({ uploads: 0, downloads: 0, free_bytes: 0 }),
  onOrder: () => {},
  digestsOf: () => Promise.resolve([]),
};

function listener(onDown: () => void = () => {}): SwarmListener {
  return {
    joinState: () => ({ pieceCount: 0, canSource: true, anonymous: true, partial: false }),
    onTask() {},
    onMeta() {},
    onNeighbours() {},
    onCarriers() {},
    onDigests() {},
    onLease() {},
    onRevoke() {},
    onWantDigests() {},
    onFailed() {},
    onDown,
  };
}

function spec(digit: string) {
  return { task_id: digit.repeat(64), url: "http://origin/f", tag: "", filter: "" };
}

/** A manager that lists schedulers, or fails. */
function fakeManager(answer: () => Response) {
  const seen: (string | null)[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    seen.push(request.headers.get("authorization"));
    return answer();
  });
  return { seen, url: `http://127.0.0.1:${server.addr.port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

Deno.test("schedulers come from the manager, asked with the join token", async () => {
  await using scheduler = new FakeScheduler();
  await using manager = fakeManager(() => Response.json([{ id: "1", url: scheduler.url }]));
  await using set = new SchedulerSet(DEPS, { managerUrl: manager.url, refreshIntervalMs: 60_000, fixedUrls: [] });
  set.join(spec("a"), listener());
  assertEquals((await scheduler.got("join")).task.task_id, "a".repeat(64));
  assertEquals(manager.seen[0], "Bearer token-1");
});

Deno.test("every host picks the same scheduler for a task, and tasks spread over them", async () => {
  await using first = new FakeScheduler();
  await using second = new FakeScheduler();
  const config = { managerUrl: null, refreshIntervalMs: 0, fixedUrls: [first.url, second.url] };
  await using one = new SchedulerSet(DEPS, config);
  await using two = new SchedulerSet(DEPS, { ...config, fixedUrls: [second.url, first.url] });
  const digits = [..."0123456789abcdef"];
  for (const digit of digits) {
    one.join(spec(digit), listener());
    two.join(spec(digit), listener());
  }
  const joins = (scheduler: FakeScheduler) =>
    scheduler.received.flatMap((message) => message.type === "join" ? [message.task.task_id] : []);
  while (joins(first).length + joins(second).length < 32) await new Promise((resolve) => setTimeout(resolve, 5));
  for (const scheduler of [first, second]) {
    const ids = joins(scheduler);
    assertEquals(ids.length, 2 * new Set(ids).size);
    assertEquals(new Set(ids).size > 0, true);
  }
});

for (
  const [what, answer] of [
    ["refuses", () => new Response("no", { status: 401 })],
    ["answers rubbish", () => new Response("{")],
    ["lists none", () => Response.json([])],
  ] as const
) {
  Deno.test(`a task goes on without a scheduler when the manager ${what}`, async () => {
    await using manager = fakeManager(answer);
    await using set = new SchedulerSet(DEPS, { managerUrl: manager.url, refreshIntervalMs: 60_000, fixedUrls: [] });
    await new Promise<void>((resolve) => set.join(spec("a"), listener(resolve)));
  });
}

Deno.test("a task goes on without a scheduler when the manager is not there", async () => {
  await using set = new SchedulerSet(DEPS, {
    managerUrl: "http://127.0.0.1:9",
    refreshIntervalMs: 60_000,
    fixedUrls: [],
  });
  await new Promise<void>((resolve) => set.join(spec("a"), listener(resolve)));
});
