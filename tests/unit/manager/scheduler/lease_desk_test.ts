import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { metaOf, MiB, TASK, World } from "./world.ts";

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

Deno.test("what idle hosts hold in part is no reason to trust an old layout: a joiner probes anew", () => {
  const world = new World().held("p", metaOf(8), { complete: false, piece_count: 3 }).join("a");
  assertEquals([world.sent("a", "task")[0]!.meta, world.leases()], [null, ["a:probe"]]);
  world.join("p", { meta: metaOf(8), piece_count: 3 });
  assertEquals(world.sent("a", "meta").map(({ meta }) => meta.generation), ["g1"]);
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
