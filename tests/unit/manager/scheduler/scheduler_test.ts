// covers: manager/scheduler/swarm.ts manager/scheduler/digest_exchange.ts manager/scheduler/resource.ts
// covers: manager/scheduler/task.ts
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { digests, factsOf, metaOf, SPEC, TASK, World } from "./world.ts";

const idsOf = (neighbours: readonly { host_id: string }[]) => neighbours.map(({ host_id }) => host_id);

Deno.test("pieces are forwarded once per turn, to everybody but their reporter", () => {
  const world = new World().join("a").join("b").join("c").meta("a", metaOf(100)).clear();
  world.pieces("a", 0, 1).pieces("a", 1, 1);
  assertEquals(world.sent("b", "digests"), []);
  world.flush();
  assertEquals(world.sent("b", "digests").map(({ pieces }) => pieces), [digests(0, 2)]);
  assertEquals(world.sent("a", "digests"), []);
  assertEquals(world.flush().sent("b", "digests").length, 1);
});

Deno.test("the larger the swarm, the longer digests are gathered", () => {
  const world = new World().begin("a", metaOf(60));
  assertEquals(world.scheduler.flushAtMs, null);
  assertEquals(world.pieces("a", 0, 1).scheduler.flushAtMs, world.nowMs);
  for (let index = 0; index < 200; index++) world.join(`m${index}`);
  world.flush();
  assertEquals(world.pieces("a", 1, 1).scheduler.flushAtMs, world.nowMs + 4);
  assertEquals(world.flush().scheduler.flushAtMs, null);
});

Deno.test("the more pieces, the more digests go in one message, and the last ones at once", () => {
  const world = new World().begin("a", metaOf(640)).join("b");
  for (let number = 0; number < 639; number++) {
    world.nowMs += 20;
    if (world.nowMs >= (world.scheduler.flushAtMs ?? Infinity)) world.apply({ type: "flush" });
    world.pieces("a", number, 1);
  }
  const count = world.sent("b", "digests").length;
  assert(count >= 55 && count <= 70, `${count} messages`);
  world.pieces("a", 639, 1);
  assertEquals(world.scheduler.flushAtMs, null);
  assertEquals(world.sent("b", "digests").flatMap(({ pieces }) => pieces).length, 640);
});

Deno.test("a task that gathers keeps no other one waiting, and none makes it send early", () => {
  const world = new World().begin("a", metaOf(640)).join("b");
  world.pieces("a", 0, 1).nowMs += 20;
  world.pieces("a", 1, 1).flush().nowMs += 20;
  world.pieces("a", 2, 1);
  const dueMs = world.nowMs + 200;
  assertEquals(world.scheduler.flushAtMs, dueMs);
  const other = { ...SPEC, task_id: "b".repeat(64) };
  for (const id of ["a", "b"]) world.join(id, { task: other });
  world.say("a", { type: "meta", task_id: other.task_id, meta: metaOf(4) });
  world.say("a", { type: "pieces", task_id: other.task_id, generation: "g1", pieces: digests(0, 1) });
  assertEquals(world.scheduler.flushAtMs, world.nowMs);
  world.clear().apply({ type: "flush" });
  assertEquals(world.sent("b", "digests").map(({ task_id }) => task_id), [other.task_id]);
  assertEquals(world.scheduler.flushAtMs, dueMs);
});

Deno.test("a late joiner gets every digest in batches", () => {
  const world = new World().join("a").meta("a", metaOf(2500)).pieces("a", 0, 1000).pieces("a", 1000, 1000).join("b");
  assertEquals(world.sent("b", "digests").map(({ pieces }) => pieces.length), [1000, 1000]);
});

Deno.test("pieces of another generation, beyond the end, or from strangers do not count", () => {
  const world = new World().join("a").meta("a", metaOf(10)).connect("x").clear();
  world.join("b").pieces("a", 0, 2, "g0").pieces("x", 0, 2).pieces("a", 10, 5).flush();
  assertEquals(world.sent("b", "digests"), []);
});

Deno.test("the first digest of a piece stands", () => {
  const world = new World().join("a").join("b").meta("a", metaOf(10)).pieces("a", 0, 1);
  world.say("b", { type: "pieces", task_id: TASK, generation: "g1", pieces: [[0, "f".repeat(64)]] });
  world.join("c");
  assertEquals(world.sent("c", "digests")[0]!.pieces, digests(0, 1));
});

Deno.test("a joiner's generation becomes the task's when it has none", () => {
  const world = new World().join("a").join("b", { meta: metaOf(10), piece_count: 4 });
  assertEquals(world.sent("a", "meta").map(({ meta }) => meta.generation), ["g1"]);
  assertEquals(world.sent("b", "want_digests").length, 1);
});

Deno.test("a joiner of another generation is told the current one", () => {
  const world = new World().begin("a", metaOf(10)).pieces("a", 0, 4);
  world.join("b", { meta: metaOf(20, { generation: "g0" }), piece_count: 20 });
  assertEquals(world.sent("b", "task")[0]!.meta?.generation, "g1");
  assertEquals(world.sent("b", "want_digests"), []);
});

Deno.test("a joiner's generation replaces one of which no live host has a piece", () => {
  const world = new World().begin("a", metaOf(10)).leave("a").join("b", {
    meta: metaOf(20, { generation: "g2" }),
    piece_count: 3,
  });
  assertEquals(world.sent("b", "task")[0]!.meta?.generation, "g2");
});

Deno.test("a host without the layout is told a differing meta that it sends without a probe", () => {
  const world = new World().begin("a", metaOf(10)).join("b").clear().meta("b", metaOf(5, { generation: "g9" }));
  assertEquals(world.sent("b", "meta").map(({ meta }) => meta.generation), ["g1"]);
});

Deno.test("joining again answers with all neighbours and keeps one membership", () => {
  const world = new World().join("a").join("b").clear().join("a", { can_source: false });
  assertEquals(idsOf(world.sent("a", "task")[0]!.neighbours), ["b"]);
  assertEquals(world.swarm()!.members.size, 2);
  assertEquals(world.sent("b", "neighbours"), []);
});

Deno.test("idle holders of the whole content are given to joiners, seeds first, four at most", () => {
  const world = new World();
  for (const id of ["h1", "h2", "h3", "h4", "h5", "seed1"]) world.held(id, metaOf(8));
  world.held("partial", metaOf(8), { complete: false, piece_count: 3 });
  world.join("a");
  const given = idsOf(world.sent("a", "task")[0]!.neighbours);
  assertEquals(given.length, 4);
  assert(given.includes("seed1") && !given.includes("partial"));
  assertEquals([...world.inbox.keys()].filter((id) => id.startsWith("h")).length, 1);
});

Deno.test("an idle holder serves 64 members at once, and again others when they leave", () => {
  const world = new World().held("h", metaOf(8)).join("m0").pieces("h", 0, 8);
  for (let index = 1; index < 70; index++) world.join(`m${index}`);
  const knows = () => [...world.swarm()!.members.keys()].filter((id) => world.swarm()!.neighboursOf(id).includes("h"));
  assertEquals(knows().length, 64);
  for (let index = 0; index < 60; index++) world.leave(`m${index}`);
  for (let index = 0; index < 40; index++) world.join(`n${index}`);
  assertEquals(knows().filter((id) => id.startsWith("n")).length, 40);
});

Deno.test("digests are asked of one holder at a time, the next after three seconds", () => {
  const world = new World().held("h1", metaOf(8)).held("h2", metaOf(8)).join("a");
  const asked = () => ["h1", "h2"].filter((id) => world.sent(id, "want_digests").length > 0);
  assertEquals([asked(), world.leases()], [["h1"], []]);
  assertEquals(asked(), world.wait(2_900) && ["h1"]);
  world.wait(200);
  assertEquals(asked(), ["h1", "h2"]);
  world.clear().pieces("h2", 0, 8).flush();
  assertEquals(world.sent("a", "digests").map(({ pieces }) => pieces.length), [8]);
  assertEquals(world.leases(), []);
});

Deno.test("when no holder tells its digests the origin is read", () => {
  const world = new World().held("h1", metaOf(8)).join("a").wait(3_200);
  assertEquals(world.leases(), world.leases().filter((lease) => lease.startsWith("a:")));
  assertNotEquals(world.leases(), []);
});

Deno.test("the next holder is asked at once when the asked one is gone", () => {
  const world = new World().held("h1", metaOf(8)).held("h2", metaOf(8)).join("a").gone("h1");
  assertEquals(world.sent("h2", "want_digests").length, 1);
});

Deno.test("after a restart of the scheduler members bring back meta, digests and only the rest is leased", () => {
  const world = new World();
  world.join("a", { meta: metaOf(8), piece_count: 4 }).join("b", { meta: metaOf(8), piece_count: 2 });
  assertEquals(world.leases(), []);
  world.pieces("a", 0, 4);
  assertEquals(world.sent("b", "want_digests").length, 1);
  world.pieces("b", 4, 2);
  const leased = world.swarm()!.leases.flatMap(({ first, count }) =>
    Array.from({ length: count }, (_, index) => first + index)
  );
  assertEquals(leased.sort(), [6, 7]);
});

Deno.test("an idle holder that turns up while members wait brings its generation", () => {
  const world = new World().join("a", { can_source: false }).held("h", metaOf(8));
  assertEquals(world.sent("a", "meta").map(({ meta }) => meta.generation), ["g1"]);
  assertEquals(world.sent("a", "neighbours").flatMap(({ add }) => idsOf(add)), ["h"]);
});

Deno.test("a complete member that leaves goes on as a neighbour, an incomplete one does not", () => {
  const world = new World().begin("a", metaOf(4)).join("b").join("c").pieces("a", 0, 4).complete("a").clear();
  world.leave("a").leave("b");
  assertEquals(world.sent("c", "neighbours").map(({ remove }) => remove), [["b"]]);
  assertEquals(world.swarm()!.neighboursOf("c"), ["a"]);
  world.clear().say("a", { type: "dropped", task_ids: [TASK] });
  assertEquals(world.sent("c", "neighbours").map(({ remove }) => remove), [["a"]]);
});

Deno.test("a host that says hello again under the same id begins anew", () => {
  const world = new World().join("a").connect("a");
  assertEquals(world.effects.filter(({ type }) => type === "disconnect").length, 1);
  assertEquals(world.scheduler.swarms.size, 0);
});

Deno.test("words about unknown tasks, and of hosts that are not here, are ignored", () => {
  const world = new World().connect("a");
  world.pieces("a", 0, 1).leave("a").meta("a", metaOf(1)).leaseEnd("a", 7).starving("a", [0]).complete("a");
  world.say("a", { type: "bad_peer", task_id: TASK, host_id: "b", piece: 0 });
  world.say("a", { type: "dropped", task_ids: [TASK] });
  world.apply({ type: "message", hostId: "ghost", message: { type: "leave", task_id: TASK } });
  world.gone("ghost");
  assertEquals([world.effects, world.scheduler.tasks.size], [[], 0]);
});

Deno.test("a task is forgotten with its last holder and member", () => {
  const world = new World().begin("a", metaOf(4)).pieces("a", 0, 4).complete("a").leave("a");
  assertEquals(world.scheduler.tasks.get(TASK)?.isComplete("a"), true);
  world.gone("a");
  assertEquals([world.scheduler.tasks.size, world.scheduler.isTimed], [0, false]);
});

Deno.test("digests survive the last member as long as somebody holds everything", () => {
  const world = new World().begin("a", metaOf(4)).pieces("a", 0, 4).complete("a").leave("a").join("b");
  assertEquals(world.sent("b", "digests")[0]!.pieces.length, 4);
  assertEquals(world.sent("a", "want_digests"), []);
});

Deno.test("the best report of idle holders is the task's meta: complete ones win, else the newest", () => {
  const world = new World().held("a", metaOf(4, { generation: "old" }), { complete: false, piece_count: 1 });
  world.held("b", metaOf(5, { generation: "new" }), { complete: false, piece_count: 1 });
  assertEquals(world.scheduler.tasks.get(TASK)?.meta?.generation, "new");
  world.held("c", metaOf(6, { generation: "whole" })).held("b", metaOf(5, { generation: "new" }), {
    complete: false,
    piece_count: 2,
  });
  assertEquals(world.scheduler.tasks.get(TASK)?.meta?.generation, "whole");
  world.gone("c");
  assertEquals(world.scheduler.tasks.get(TASK)?.meta?.generation, "new");
});

Deno.test("ticks are wanted only while something depends on time", () => {
  const world = new World();
  assertEquals(world.scheduler.isTimed, false);
  world.join("a");
  assertEquals(world.scheduler.isTimed, true);
  world.meta("a", metaOf(4)).pieces("a", 0, 4).complete("a");
  assertEquals(world.scheduler.isTimed, false);
});

Deno.test("neighbours are named by address, IPv6 in brackets", () => {
  const world = new World().join("a", {}, { ip: "fd00::1" }).join("b", {}, { ip: "10.1.1.1", idc: "x" }).join("c");
  assertEquals(world.sent("c", "task")[0]!.neighbours, [
    { host_id: "a", address: "[fd00::1]:1000", type: "normal", idc: "" },
    { host_id: "b", address: "10.1.1.1:1000", type: "normal", idc: "x" },
  ]);
});

Deno.test("drop orders every holder and member to throw the task away", () => {
  const world = new World().held("h", metaOf(4)).join("a").connect("x");
  world.apply({ type: "drop", taskId: TASK });
  assertEquals(["a", "h", "x"].map((id) => world.sent(id, "order").map(({ kind }) => kind)), [["drop"], ["drop"], []]);
  assertEquals(world.sent("h", "order")[0]!.task, { ...SPEC, headers: {} });
  assertEquals(factsOf("h").id, "h");
});
