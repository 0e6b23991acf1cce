// covers: manager/scheduler/swarm.ts manager/scheduler/task.ts manager/scheduler/lease_desk.ts
// covers: manager/scheduler/digest_exchange.ts manager/scheduler/resource.ts
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { digests, factsOf, metaOf, MiB, SPEC, TASK, World } from "./world.ts";

const idsOf = (neighbours: readonly { host_id: string }[]) => neighbours.map(({ host_id }) => host_id);

Deno.test("the first joiner is told that nothing is known and gets the probe, the second waits", () => {
  const world = new World().join("a").join("b");
  assertEquals(world.sent("a", "task")[0], { type: "task", task_id: TASK, meta: null, neighbours: [] });
  assertEquals(world.leases(), ["a:probe"]);
  assertEquals(world.sent("b", "lease"), []);
  assertEquals(idsOf(world.sent("b", "task")[0]!.neighbours), ["a"]);
  assertEquals(idsOf(world.sent("a", "neighbours")[0]!.add), ["b"]);
});

Deno.test("the probe's host becomes the reader of the first MiB and the others read beside it", () => {
  const world = new World().join("a").join("b").join("c").meta("a", metaOf(256));
  assertEquals(world.leases(), ["a:0+4", ...world.leases().slice(1)]);
  assertEquals(world.leases().length, 4);
  assertEquals(world.sent("b", "meta").map(({ meta }) => meta.generation), ["g1"]);
  assertEquals(world.sent("a", "meta"), []);
  assertEquals(world.sent("b", "lease").length + world.sent("c", "lease").length >= 2, true);
});

for (
  const [pieceLength, want] of [[MiB / 4, "a:0+4"], [MiB, "a:0+1"], [16 * MiB, "a:0+1"]] as [number, string][]
) {
  Deno.test(`a probe of ${pieceLength} B pieces covers ${want}`, () => {
    const world = new World().join("a").meta("a", metaOf(20, { piece_length: pieceLength }));
    assertEquals(world.leases()[0], want);
  });
}

Deno.test("a content smaller than the probe is one lease", () => {
  assertEquals(new World().join("a").join("b").meta("a", metaOf(3)).leases(), ["a:0+3"]);
});

Deno.test("an empty content needs no lease and everyone has it", () => {
  const world = new World().join("a").join("b").meta("a", metaOf(0));
  world.leaseEnd("a", world.sent("a", "lease")[0]!.lease_id).join("c").wait(10_000);
  assertEquals(world.leases(), []);
  assertEquals(world.sent("b", "meta").length, 1);
  assertEquals(world.sent("c", "task")[0]!.meta?.content_length, 0);
  assertEquals(world.sent("c", "failed"), []);
});

Deno.test("an origin without ranges is read by one host, and by another when it is gone", () => {
  const world = new World().join("a").join("b").meta("a", metaOf(100, { ranges: false })).pieces("a", 0, 10);
  assertEquals(world.leases(), ["a:0+100"]);
  world.gone("a");
  assertEquals(world.leases(), ["b:probe"]);
  world.meta("b", metaOf(100, { ranges: false }));
  assertEquals(world.leases(), ["b:0+100"]);
  world.pieces("b", 0, 100);
  assertEquals(world.leases(), []);
});

Deno.test("a stream that begins anew finds another generation: that becomes the current one", () => {
  const world = new World().join("a").join("b").meta("a", metaOf(100, { ranges: false })).gone("a").clear();
  world.join("c").meta("b", metaOf(50, { ranges: false, generation: "g2" }));
  assertEquals(world.sent("c", "meta").map(({ meta }) => meta.generation), ["g2"]);
  assertEquals(world.leases(), ["b:0+50"]);
});

Deno.test("a host holds two leases at most, a task four", () => {
  const world = new World().begin("a", metaOf(1000));
  assertEquals(world.leases().length, 2);
  for (const id of ["b", "c", "d", "e", "f"]) world.join(id);
  assertEquals(world.leases().length, 4);
});

Deno.test("leases go to whoever has read least", () => {
  const world = new World().begin("a", metaOf(2000)).join("b").join("c").join("d");
  const charged = new Map<string, number>();
  for (let round = 0; round < 30; round++) {
    const lease = world.swarm()!.leases[0]!;
    charged.set(lease.hostId, (charged.get(lease.hostId) ?? 0) + lease.count);
    world.pieces(lease.hostId, lease.first, lease.count);
  }
  assertEquals([...charged.keys()].sort(), ["a", "b", "c", "d"]);
  assert(Math.max(...charged.values()) < 3 * Math.min(...charged.values()), JSON.stringify([...charged]));
});

Deno.test("leases get shorter towards the end, so that all readers end together", () => {
  const world = new World({ config: { sourceConnectionsPerTask: 4 } }).join("a").join("b").meta("a", metaOf(128));
  const counts: number[] = [];
  for (let next = world.swarm()!.leases[0]; next !== undefined; next = world.swarm()!.leases[0]) {
    counts.push(next.count);
    world.pieces(next.hostId, next.first, next.count);
  }
  assertEquals(counts.reduce((a, b) => a + b), 128);
  assertEquals(counts.at(-1), 1);
  assert(Math.max(...counts) <= 16);
});

Deno.test("a lone member gets longer leases, because nobody waits for its pieces", () => {
  const world = new World().begin("a", metaOf(4000));
  assertEquals(world.swarm()!.leases[1]!.count, 128);
});

Deno.test("pieces are forwarded once per turn, to everybody but their reporter", () => {
  const world = new World().join("a").join("b").join("c").meta("a", metaOf(100)).clear();
  world.pieces("a", 0, 1).pieces("a", 1, 1);
  assertEquals(world.sent("b", "digests"), []);
  world.flush();
  assertEquals(world.sent("b", "digests").map(({ pieces }) => pieces), [digests(0, 2)]);
  assertEquals(world.sent("a", "digests"), []);
  assertEquals(world.flush().sent("b", "digests").length, 1);
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

Deno.test("what idle hosts hold in part is no reason to trust an old layout: a joiner probes anew", () => {
  const world = new World().held("p", metaOf(8), { complete: false, piece_count: 3 }).join("a");
  assertEquals([world.sent("a", "task")[0]!.meta, world.leases()], [null, ["a:probe"]]);
  world.join("p", { meta: metaOf(8), piece_count: 3 });
  assertEquals(world.sent("a", "meta").map(({ meta }) => meta.generation), ["g1"]);
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

Deno.test("leases of a host that is gone go to the others at once", () => {
  const world = new World().join("a").join("b").join("c").meta("a", metaOf(8)).pieces("a", 0, 2).gone("a");
  const pieces = world.swarm()!.leases.filter(({ hostId }) => hostId !== "a").flatMap(({ left }) => [...left]);
  assert(pieces.includes(2) && !pieces.includes(0));
});

Deno.test("a refused host is not asked again, and all are told when nobody is left", () => {
  const world = new World().join("a").join("b").join("c", { can_source: false });
  world.leaseEnd("a", world.sent("a", "lease")[0]!.lease_id, "source_not_found");
  assertEquals(world.leases(), ["b:probe"]);
  assertEquals(world.sent("a", "failed"), []);
  world.leaseEnd("b", world.sent("b", "lease")[0]!.lease_id, "source_refused");
  for (const id of ["a", "b", "c"]) {
    assertEquals(world.sent(id, "failed").map(({ error }) => error.code), ["source_not_found"]);
  }
  world.wait(5_000);
  assertEquals(world.sent("a", "failed").length, 1);
  world.join("d");
  assertEquals(world.leases().length, 1);
});

Deno.test("a failed lease pauses its host, twice as long each time, and the third failure is the last", () => {
  const world = new World().join("a");
  const fail = () => world.leaseEnd("a", world.sent("a", "lease").at(-1)!.lease_id, "network");
  fail();
  assertEquals(world.wait(1_800).sent("a", "lease").length, 1);
  assertEquals(world.wait(400).sent("a", "lease").length, 2);
  fail();
  assertEquals(world.wait(3_800).sent("a", "lease").length, 2);
  assertEquals(world.wait(400).sent("a", "lease").length, 3);
  assertEquals(world.sent("a", "failed"), []);
  fail();
  assertEquals(world.sent("a", "failed").map(({ error }) => error.code), ["network"]);
});

Deno.test("a piece read in between forgives failures", () => {
  const world = new World().begin("a", metaOf(400));
  for (let round = 0; round < 5; round++) {
    const lease = world.swarm()!.leases[0]!;
    world.pieces("a", lease.first, 1).leaseEnd("a", lease.id, "network").wait(2_200);
  }
  assertEquals(world.sent("a", "failed"), []);
});

Deno.test("a lease given back with nothing read is not given again for ever", () => {
  const world = new World().begin("a", metaOf(400));
  for (let round = 0; round < 10; round++) {
    for (const { id } of world.swarm()!.leases) world.leaseEnd("a", id);
    world.wait(200);
  }
  assert(world.sent("a", "lease").length <= 8, `${world.sent("a", "lease").length} leases`);
});

Deno.test("a silent lease is taken back when somebody else can read, and only then", () => {
  const world = new World().begin("a", metaOf(64)).wait(60_000);
  assertEquals(world.sent("a", "revoke"), []);
  world.join("b").wait(400);
  assertNotEquals(world.sent("a", "revoke"), []);
  assertNotEquals(world.sent("b", "lease"), []);
});

Deno.test("a content that changed starts over with a new probe, and old holders do not bring it back", () => {
  const world = new World().begin("a", metaOf(64)).join("b").pieces("a", 0, 4);
  const lease = world.sent("b", "lease")[0]!;
  world.clear().leaseEnd("b", lease.lease_id, "content_changed");
  assertEquals(world.leases().length, 1);
  assertEquals(world.leases()[0]!.endsWith(":probe"), true);
  world.held("old", metaOf(64)).join("c", { meta: metaOf(64), piece_count: 9 });
  assertEquals(world.sent("c", "task")[0]!.meta, null);
  const prober = world.swarm()!.leases[0]!.hostId;
  const other = prober === "a" ? "b" : "a";
  world.meta(prober, metaOf(32, { generation: "g2" }));
  assertEquals(world.sent(other, "meta").map(({ meta }) => meta.generation), ["g2"]);
  assertEquals(world.sent("c", "meta").map(({ meta }) => meta.generation), ["g2"]);
});

Deno.test("an origin that changes without end is given up", () => {
  const world = new World().join("a");
  for (let round = 0; round < 5; round++) {
    world.meta("a", metaOf(64, { generation: `g${round}` }));
    world.leaseEnd("a", world.swarm()!.leases.find(({ generation }) => generation !== null)!.id, "content_changed");
  }
  assertEquals(world.sent("a", "failed").map(({ error }) => error.code), ["content_changed"]);
});

Deno.test("hosts that may not read the origin are told when nobody holds the task", () => {
  const world = new World().join("a", { can_source: false }).join("b", { can_source: false }).wait(1_000);
  assertEquals(world.sent("b", "failed"), []);
  world.wait(1_400);
  assertEquals(world.sent("b", "failed").map(({ error }) => error.code), ["no_holder"]);
});

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
  assertEquals(world.starving(stranger, [1, 2]).leases().every((lease) => lease.startsWith(stranger)), true);
  assertEquals(world.leases().length > 0, true);
});

Deno.test("leases that stay silent everywhere are passed on less and less often", () => {
  const world = new World().join("a").join("b").join("c").join("d").meta("a", metaOf(400)).wait(300_000);
  const revokes = ["a", "b", "c", "d"].reduce((sum, id) => sum + world.sent(id, "revoke").length, 0);
  assert(revokes > 4 && revokes <= 20, `${revokes} revokes`);
});

Deno.test("for an anonymous download a seed is ordered and gets the leases", () => {
  const world = new World().connect("seed1").join("a", { anonymous: true });
  const order = world.sent("seed1", "order")[0]!;
  assertEquals([order.kind, order.order_id.startsWith("seed-"), order.task.headers], ["preheat", true, {}]);
  assertEquals(world.leases(), []);
  world.join("seed1", { anonymous: true });
  assertEquals(world.leases(), ["seed1:probe"]);
  world.meta("seed1", metaOf(1000));
  assertEquals(world.leases().every((lease) => lease.startsWith("seed1:")), true);
  world.join("b", { anonymous: true });
  assertEquals(world.sent("seed1", "order").length, 1);
});

Deno.test("a seed that does not come in time, or fails, leaves the leases to the others", () => {
  const late = new World().connect("seed1").join("a", { anonymous: true }).wait(600);
  assertEquals(late.leases(), ["a:probe"]);
  const failed = new World().connect("seed1").join("a", { anonymous: true });
  failed.say("seed1", {
    type: "order_progress",
    order_id: failed.sent("seed1", "order")[0]!.order_id,
    state: "failure",
    content_length: null,
    done: 0,
    from_source: 0,
    from_peers: 0,
  });
  assertEquals(failed.leases(), ["a:probe"]);
  assertEquals(new World().connect("seed1").join("a", { anonymous: true }).gone("seed1").leases(), ["a:probe"]);
});

Deno.test("private headers do not trigger a seed", () => {
  const world = new World().connect("seed1").join("a", { anonymous: false });
  assertEquals([world.sent("seed1", "order"), world.leases()], [[], ["a:probe"]]);
});

Deno.test("a seed that fails leaves the leases to ordinary members while it pauses", () => {
  const world = new World().join("seed1").join("a");
  world.leaseEnd("seed1", world.sent("seed1", "lease")[0]!.lease_id, "network");
  assertEquals(world.leases(), ["a:probe"]);
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
