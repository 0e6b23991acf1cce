// covers: manager/scheduler/swarm.ts
import { assertEquals, assertStringIncludes } from "@std/assert";
import { CONFIG, metaOf, TASK, World } from "./world.ts";

const idsOf = (neighbours: readonly { host_id: string }[]) => neighbours.map(({ host_id }) => host_id);

Deno.test("a host that starves for a lost piece reads it, a second one reads others", () => {
  const world = new World().begin("a", metaOf(8)).pieces("a", 0, 8).join("b").join("c").gone("a").clear();
  assertEquals(world.leases(), []);
  world.starving("b", [2, 3, 4, 5]);
  assertEquals(world.leases(), ["b:2+2", "b:4+1"]);
  world.starving("c", [2, 3, 4, 5]);
  assertEquals(world.leases(), ["b:2+2", "b:4+1", "c:5+1"]);
  world.nowMs += 2_100;
  world.starving("c", [2, 3, 4, 5]);
  assertEquals(world.leases(), ["b:2+2", "b:4+1", "c:5+1", "c:2+2"]);
});

Deno.test("a starving host without a way to the origin is helped by another", () => {
  const world = new World().begin("a", metaOf(8)).pieces("a", 0, 8).join("b", { can_source: false }).join("c");
  world.gone("a").starving("b", [1]);
  assertEquals(world.leases(), ["c:1+1"]);
});

Deno.test("a starving host is told when nobody can ever read", () => {
  const world = new World().join("a").join("b", { can_source: false }).join("c", { can_source: false });
  world.meta("a", metaOf(8)).pieces("a", 0, 8).gone("a").starving("b", [1]).wait(1_000);
  assertEquals(world.sent("b", "failed"), []);
  world.wait(1_200);
  assertEquals(world.sent("b", "failed").map(({ error }) => error.code), ["no_holder"]);
  assertEquals(world.sent("c", "failed"), []);
});

Deno.test("a starving host is not given up after 2 s while a busy host has what it wants", () => {
  const world = new World().join("a", { can_source: false }).meta("a", metaOf(8)).pieces("a", 0, 8).complete("a");
  world.join("b", { can_source: false });
  for (let second = 0; second < 29; second++) world.starving("b", [1]).wait(1_000);
  assertEquals(world.sent("b", "failed"), []);
  for (let second = 0; second < 29; second++) world.starving("b", [2]).wait(1_000);
  assertEquals(world.sent("b", "failed"), []);
  world.starving("b", [2]).wait(1_500);
  const [failed] = world.sent("b", "failed");
  assertEquals(failed?.error.code, "no_holder");
  assertStringIncludes(failed!.error.message, "host a holds it but has sent nothing for 30 s");
});

Deno.test("starving for pieces that somebody reads right now brings no second reader", () => {
  const world = new World().join("a").join("b").meta("a", metaOf(2)).clear().starving("b", [0, 1]).wait(4_000);
  assertEquals(world.sent("b", "lease"), []);
});

Deno.test("a member that wants a part only is leased what it starves for and nothing else", () => {
  const world = new World().join("a", { partial: true }).meta("a", metaOf(100)).pieces("a", 0, 4);
  assertEquals(world.leases(), []);
  world.starving("a", [40, 41, 42, 43]);
  assertEquals(world.leases(), ["a:40+4"]);
  world.pieces("a", 40, 4).wait(5_000);
  assertEquals([world.leases(), world.sent("a", "failed")], [[], []]);
});

Deno.test("what a lone member's former companions reported is read again without waiting", () => {
  const world = new World().begin("a", metaOf(8)).pieces("a", 0, 8).join("b").join("c").gone("a");
  assertEquals(world.leases(), []);
  assertEquals(world.gone("c").leases(), ["b:0+2", "b:2+2"]);
});

Deno.test("a lone member also reads again what members that left had", () => {
  const world = new World().begin("a", metaOf(8)).pieces("a", 0, 8).join("b");
  assertEquals(world.leave("a").leases(), ["b:0+2", "b:2+2"]);
  const holder = new World().held("h", metaOf(8)).join("b").pieces("h", 0, 8);
  assertEquals(holder.leases(), []);
  assertEquals(holder.say("h", { type: "dropped", task_ids: [TASK] }) && holder.leases(), ["b:0+2", "b:2+2"]);
});

Deno.test("in a sparse graph a starving member is made known to the reporter before the origin is asked", () => {
  const world = new World().begin("a", metaOf(8)).pieces("a", 0, 8);
  for (let index = 0; index < 60; index++) world.join(`m${index}`);
  const stranger = [...world.swarm()!.members.keys()].find((id) =>
    id !== "a" && !world.swarm()!.neighboursOf(id).includes("a")
  )!;
  world.clear().starving(stranger, [1, 2]);
  assertEquals(world.sent(stranger, "neighbours").flatMap(({ add }) => idsOf(add)), ["a"]);
  assertEquals(world.leases(), []);
  assertEquals(world.wait(1_000).starving(stranger, [1, 2]).leases(), []);
  assertEquals(world.wait(800).leases(), []);
  world.wait(200);
  assertEquals(world.leases().every((lease) => lease.startsWith(stranger)), true);
  assertEquals(world.leases().length > 0, true);
});

Deno.test("in a sparse graph a host that starves no more is not given a lease later", () => {
  const world = new World().begin("a", metaOf(8)).pieces("a", 0, 8);
  for (let index = 0; index < 60; index++) world.join(`m${index}`);
  assertEquals(world.starving("m1", [1, 2]).wait(6_000).leases(), []);
});

Deno.test("in a sparse graph many who starve for one host's pieces do not all become its neighbours", () => {
  const world = new World().begin("a", metaOf(8)).pieces("a", 0, 8);
  for (let index = 0; index < 80; index++) world.join(`m${index}`);
  for (let index = 0; index < 80; index++) world.starving(`m${index}`, [1, 2]);
  const { length } = world.swarm()!.neighboursOf("a");
  assertEquals([length > CONFIG.neighbours, length <= 2 * CONFIG.neighbours], [true, true]);
});

Deno.test("a wrong piece parts the two, and a second accuser puts the host out", () => {
  const world = new World().join("a").join("b").join("c").join("d").meta("a", metaOf(4)).pieces("a", 0, 4).complete(
    "a",
  );
  const accuse = (id: string) => world.say(id, { type: "bad_peer", task_id: TASK, host_id: "a", piece: 1 });
  accuse("b");
  assertEquals(world.sent("b", "neighbours").at(-1)!.remove, ["a"]);
  accuse("b");
  assertEquals(world.swarm()!.members.has("a"), true);
  accuse("c");
  assertEquals(world.swarm()!.members.has("a"), false);
  assertEquals(world.sent("d", "neighbours").at(-1)!.remove, ["a"]);
  assertEquals(world.sent("a", "order").map(({ kind }) => kind), ["drop"]);
});

Deno.test("in a pair one accuser is enough, also against an idle holder", () => {
  const world = new World().held("h", metaOf(4)).join("a");
  world.say("a", { type: "bad_peer", task_id: TASK, host_id: "h", piece: 1 });
  assertEquals(world.sent("h", "order").map(({ kind }) => kind), ["drop"]);
  assertEquals(world.swarm()!.neighboursOf("a"), []);
});

Deno.test("accusing oneself, strangers, or from outside does nothing", () => {
  const world = new World().join("a").join("b").join("c").meta("a", metaOf(4)).connect("x");
  for (const [from, host_id] of [["a", "a"], ["a", "nobody"], ["x", "a"], ["a", "x"]] as const) {
    world.say(from, { type: "bad_peer", task_id: TASK, host_id, piece: 0 });
  }
  assertEquals(world.swarm()!.neighboursOf("a"), ["b", "c"]);
});
