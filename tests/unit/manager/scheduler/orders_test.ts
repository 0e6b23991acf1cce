import { assertEquals } from "@std/assert";
import type { HostMessage } from "../../../../peer/core/wire/scheduler.ts";
import type { PreheatProgress, PreheatScope } from "../../../../manager/scheduler/schedulers.ts";
import { metaOf, SPEC, World } from "./world.ts";

type Progress = Extract<HostMessage, { type: "order_progress" }>;

function preheat(world: World, scope: PreheatScope, orderId = "o1"): World {
  world.apply({ type: "preheat", orderId, task: { ...SPEC, headers: { authorization: "x" } }, scope });
  return world;
}

function report(world: World, hostId: string, state: Progress["state"], changes: Partial<Progress> = {}): World {
  world.say(hostId, {
    type: "order_progress",
    order_id: "o1",
    state,
    content_length: 100,
    done: 50,
    from_source: 20,
    from_peers: 30,
    ...changes,
  });
  return world;
}

function updates(world: World): { progress: PreheatProgress; finished: boolean }[] {
  return world.effects.flatMap((effect) => effect.type === "order" ? [effect] : []);
}

const states = (world: World) =>
  Object.fromEntries(updates(world).at(-1)!.progress.hosts.map(({ id, state, error }) => [id, error?.code ?? state]));
const ordered = (world: World) => [...world.scheduler.hosts.keys()].filter((id) => world.sent(id, "order").length > 0);

for (
  const [hosts, scope, want] of [
    ["a b seed1 seed2", "all_peers", "a b seed1 seed2"],
    ["a b seed1 seed2", "all_seed_peers", "seed1 seed2"],
    ["a seed1", "single_seed_peer", "seed1"],
    ["a", "single_seed_peer", "a"],
    ["a", "all_seed_peers", "a"],
    ["a b holder", "all_seed_peers", "holder"],
    ["a b holder", "single_seed_peer", "holder"],
    ["holder seed1", "single_seed_peer", "seed1"],
  ] as [string, PreheatScope, string][]
) {
  Deno.test(`of ${hosts} the scope ${scope} means ${want}`, () => {
    const world = new World();
    for (const id of hosts.split(" ")) id === "holder" ? world.held(id, metaOf(4)) : world.connect(id);
    assertEquals(ordered(preheat(world, scope)), want.split(" "));
  });
}

Deno.test("one seed of several is chosen, the same whatever order they came in", () => {
  const one = new World().connect("seed1").connect("seed2").connect("seed3");
  const other = new World().connect("seed3").connect("seed1").connect("seed2");
  assertEquals(ordered(preheat(one, "single_seed_peer")), ordered(preheat(other, "single_seed_peer")));
});

Deno.test("progress adds up over the hosts, and the order ends with its last host", () => {
  const world = preheat(new World().connect("a").connect("b"), "all_peers");
  assertEquals(world.sent("a", "order")[0]!.task.headers, { authorization: "x" });
  report(report(world, "a", "running"), "b", "running").wait(200);
  const { contentLength, done, fromSource, fromPeers } = updates(world).at(-1)!.progress;
  assertEquals([contentLength, done, fromSource, fromPeers], [100, 100, 40, 60]);
  report(world, "a", "success");
  assertEquals([states(world), updates(world).at(-1)!.finished], [{ a: "SUCCESS", b: "PENDING" }, false]);
  report(world, "b", "failure", { error: { code: "disk_full", message: "full" } });
  assertEquals([states(world), updates(world).at(-1)!.finished], [{ a: "SUCCESS", b: "disk_full" }, true]);
});

Deno.test("running progress is told with the tick, not with each word", () => {
  const world = preheat(new World().connect("a"), "all_peers");
  for (let round = 0; round < 10; round++) report(world, "a", "running");
  assertEquals([updates(world).length, world.scheduler.isTimed], [1, true]);
  world.wait(200);
  assertEquals([updates(world).length, world.scheduler.isTimed], [2, false]);
});

Deno.test("what a host says after its end, of unknown orders, or of orders to others, changes nothing", () => {
  const world = report(preheat(new World().connect("a").connect("b").connect("x"), "all_peers"), "a", "success");
  const before = updates(world).length;
  report(world, "a", "failure");
  report(world, "b", "success", { order_id: "o2" });
  assertEquals(updates(world).length, before);
});

Deno.test("a host that goes away fails its orders, one that comes back is not waited for", () => {
  const world = preheat(new World().connect("a").connect("b"), "all_peers").gone("a").connect("a");
  assertEquals(states(world), { a: "unavailable", b: "PENDING" });
  report(world, "b", "success");
  assertEquals(updates(world).at(-1)!.finished, true);
});

Deno.test("a host that never answers fails after 30 s and is told to stop; one that answered may take longer", () => {
  const world = report(preheat(new World().connect("a").connect("b"), "all_peers"), "b", "running").wait(29_800);
  assertEquals(states(world), { a: "PENDING", b: "PENDING" });
  world.wait(400);
  assertEquals(states(world), { a: "timeout", b: "PENDING" });
  assertEquals(world.sent("a", "cancel_order").length, 1);
  assertEquals(world.wait(60_000).sent("b", "cancel_order"), []);
});

Deno.test("cancel tells the hosts that still work on it, and nobody twice", () => {
  const world = report(preheat(new World().connect("a").connect("b"), "all_peers"), "a", "success");
  world.apply({ type: "cancel", orderId: "o1" });
  world.apply({ type: "cancel", orderId: "o1" });
  assertEquals(["a", "b"].map((id) => world.sent(id, "cancel_order").length), [0, 1]);
  assertEquals(world.scheduler.isTimed, false);
});
