// covers: peer/task/engine_session.ts, peer/task/engine_errors.ts, peer/task/session.ts, peer/task/swarm.ts, peer/task/peer_work.ts
/** The engine among neighbours, under a scheduler whose words the test says. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { systemClock } from "../../../../peer/core/clock.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { metaOf } from "../../../../peer/task/generation.ts";
import type { PieceRequest } from "../../../../peer/transfer/piece_transfer.ts";
import { contentBytes } from "../../../testutil/content.ts";
import { type FakeNeighbour, FakeSwarm } from "../../../testutil/fake_neighbour.ts";
import { bench, digests, metaFor, neighbour, PIECE, stored, URL_TEXT } from "./engine_bench.ts";

Deno.test("with holders around, every byte comes from them", async () => {
  const size = 8 * PIECE + 1;
  const all = [...Array(9).keys()];
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(metaFor(size), [neighbour("a"), neighbour("b")]);
    listener.onDigests(metaFor(size).generation, digests(contentBytes(1, 0, size)));
  });
  await using made = bench(size, { swarm, neighbours: { a: { pieces: all }, b: { pieces: all } } });
  await using run = made.start();
  const { stats } = await run.finished;
  assertEquals([stats.from_peers, stats.from_source, stats.peers], [size, 0, 2]);
  assertEquals(made.source.requests.length, 0);
  await swarm.heard("complete");
});

Deno.test("a neighbour that sends wrong bytes is reported once and never asked again", async () => {
  const size = 12 * PIECE;
  const all = [...Array(12).keys()];
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(metaFor(size), [neighbour("a"), neighbour("liar")]);
    listener.onDigests(metaFor(size).generation, digests(contentBytes(1, 0, size)));
  });
  const liar: FakeNeighbour = { pieces: all, send: ({ length }) => new Uint8Array(length) };
  await using made = bench(size, { swarm, neighbours: { a: { pieces: all }, liar } });
  await using run = made.start({ disableBackSource: true });
  await run.finished;
  assertEquals(await stored(made.store), made.source.bytes);
  assert(swarm.said.some(([what, host]) => what === "badPeer" && host === "liar"));
  const asked = made.around.requests.filter(({ address }) => address === "liar").length;
  assert(asked <= 4, `the liar was asked ${asked} times`);
  assert(made.traffic.wastedBytes >= PIECE, "what it sent was in vain");
});

Deno.test("pieces whose digest comes later are checked then", async () => {
  const size = 4 * PIECE;
  const swarm = new FakeSwarm((listener) => listener.onTask(metaFor(size), [neighbour("a")]));
  await using made = bench(size, { swarm, neighbours: { a: { pieces: [0, 1, 2, 3] } } });
  await using run = made.start();
  while (made.around.requests.length < 4) await new Promise((resolve) => setTimeout(resolve, 1));
  assertEquals(run.progress().done, 0);
  swarm.listener!.onDigests(metaFor(size).generation, digests(made.source.bytes));
  assertEquals((await run.finished).stats.from_peers, size);
});

Deno.test("two second requests for a piece that end in the same moment do not wait for each other", async () => {
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(metaFor(PIECE), ["a", "b", "c"].map(neighbour));
    listener.onDigests(metaFor(PIECE).generation, digests(contentBytes(1, 0, PIECE)));
  });
  const asked = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  const before = async (request: PieceRequest) => {
    const number = made.around.requests.indexOf(request);
    asked[number]!.resolve();
    // The first is late, so that a second is asked, and fails then: so the second is late, and there is a third.
    await asked[number === 0 ? 1 : 2]!.promise;
    if (number === 0) throw new LacewingError("unavailable", "no slot");
  };
  const has = { pieces: [0], before };
  // Who looks again after 100 ms finds a request late.
  const clock = { ...systemClock, nowMs: () => 50 * systemClock.nowMs() };
  await using made = bench(PIECE, { swarm, clock, neighbours: { a: has, b: has, c: has } });
  await using run = made.start({ disableBackSource: true });
  assertEquals((await run.finished).stats.from_peers, PIECE);
  assertEquals(await stored(made.store), made.source.bytes);
});

Deno.test("a lease is read from the origin and reported piece by piece", async () => {
  const size = 6 * PIECE;
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(null, []);
    listener.onLease({ leaseId: 1, generation: null, first: 0, count: 0 });
  });
  await using made = bench(size, { swarm });
  await using run = made.start();
  const [meta] = await swarm.heard("meta");
  assertEquals(meta, metaFor(size));
  await swarm.heard("leaseEnd");
  swarm.listener!.onLease({ leaseId: 2, generation: metaFor(size).generation, first: 4, count: 2 });
  await run.finished;
  const reported = swarm.said.filter(([what]) => what === "pieces").flatMap(([, , pieces]) =>
    pieces as [number, string][]
  );
  assertEquals(reported, digests(made.source.bytes));
  assertEquals(made.source.sentBytes, size);
});

Deno.test("a lease that fails is given back with its reason", async () => {
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(null, []);
    listener.onLease({ leaseId: 1, generation: null, first: 0, count: 0 });
  });
  await using made = bench(10, { swarm });
  made.source.failures.push(new LacewingError("source_refused", "403"));
  await using run = made.start();
  const [leaseId, error] = await swarm.heard("leaseEnd");
  assertEquals([leaseId, error], [1, { code: "source_refused", message: "403" }]);
  swarm.listener!.onFailed({ code: "source_refused", message: "403" });
  assertEquals((await assertRejects(() => run.finished, LacewingError)).code, "source_refused");
});

Deno.test("a host that starves says which pieces it misses", async () => {
  const size = 3 * PIECE;
  const swarm = new FakeSwarm((listener) => listener.onTask(metaFor(size), []));
  await using made = bench(size, { swarm });
  await using run = made.start();
  const [, pieces] = await swarm.heard("starving");
  assertEquals(pieces, [0, 1, 2]);
  assertEquals(run.progress().done, 0);
});

Deno.test("a host that was stopped for a while does not take that for starving", async () => {
  const swarm = new FakeSwarm((listener) => listener.onTask(metaFor(PIECE), []));
  let nowMs = 0;
  // Every look finds 40 s gone: more than after which a host goes on alone.
  const clock = { ...systemClock, nowMs: () => nowMs += 40_000 };
  await using made = bench(PIECE, { swarm, clock });
  await using _run = made.start();
  await swarm.heard("starving");
  assertEquals(made.source.requests.length, 0);
});

Deno.test("when the scheduler goes away the host reads the rest from the origin itself", async () => {
  const size = 6 * PIECE;
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(metaFor(size), [neighbour("a")]);
    listener.onDigests(metaFor(size).generation, digests(contentBytes(1, 0, size)).slice(0, 2));
  });
  await using made = bench(size, { swarm, neighbours: { a: { pieces: [0, 1] } } });
  await using run = made.start();
  await new Promise<void>((resolve) => run.onProgress(() => run.progress().done === 2 * PIECE && resolve()));
  swarm.listener!.onDown();
  const { stats } = await run.finished;
  assertEquals([stats.from_peers, stats.from_source], [2 * PIECE, 4 * PIECE]);
  assertEquals(await stored(made.store), made.source.bytes);
});

Deno.test("a new generation starts a running request over, and no piece of the old one is left", async () => {
  const size = 4 * PIECE;
  const fresh = contentBytes(2, 0, size);
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(metaFor(size), [neighbour("a")]);
    listener.onDigests(metaFor(size).generation, digests(contentBytes(1, 0, size)).slice(0, 1));
  });
  await using made = bench(size, { swarm, neighbours: { a: { pieces: [0] } } });
  await using run = made.start();
  await new Promise<void>((resolve) => run.onProgress(() => run.progress().done === PIECE && resolve()));
  Object.assign(made.source, { bytes: fresh, version: { etag: '"2"' } });
  const meta = metaOf({ url: URL_TEXT, contentLength: size, ranges: true, version: { etag: '"2"' } }, "");
  swarm.listener!.onMeta(meta);
  swarm.listener!.onLease({ leaseId: 3, generation: meta.generation, first: 0, count: 4 });
  const { stats } = await run.finished;
  assertEquals([stats.from_source, stats.from_peers], [size, 0]);
  assertEquals(await stored(made.store), fresh);
});

Deno.test("a piece that a neighbour drips is asked of another one, and comes from there", async () => {
  const size = 10 * PIECE;
  const all = [...Array(10).keys()];
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(metaFor(size), [neighbour("a"), neighbour("hanging")]);
    listener.onDigests(metaFor(size).generation, digests(contentBytes(1, 0, size)));
  });
  const hanging: FakeNeighbour = { pieces: all, hang: true };
  await using made = bench(size, { swarm, neighbours: { a: { pieces: all }, hanging } });
  await using run = made.start({ disableBackSource: true });
  const { stats } = await run.finished;
  assertEquals(stats.from_peers, size);
  assertEquals(await stored(made.store), made.source.bytes);
});

Deno.test("asked to confirm an old generation, the host asks the origin once and says that it stands", async () => {
  const size = 3 * PIECE;
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(metaFor(size), [neighbour("a")], { confirm: true });
    listener.onDigests(metaFor(size).generation, digests(contentBytes(1, 0, size)));
  });
  await using made = bench(size, { swarm, neighbours: { a: { pieces: [0, 1, 2] } } });
  await using run = made.start();
  assertEquals((await run.finished).stats.from_peers, size);
  assertEquals(await swarm.heard("checked"), [metaFor(size).generation, false]);
  assertEquals(made.source.requests.map(({ range }) => range), [{ offset: 0, length: 1 }]);
});

Deno.test("a generation that the origin has replaced is not delivered, and the new one is", async () => {
  const size = 3 * PIECE;
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(metaFor(size), [neighbour("a")], { confirm: true });
    listener.onDigests(metaFor(size).generation, digests(contentBytes(1, 0, size)));
  });
  await using made = bench(size, { swarm, neighbours: { a: { pieces: [0, 1, 2] } } });
  const fresh = contentBytes(2, 0, size);
  Object.assign(made.source, { bytes: fresh, version: { etag: '"2"' } });
  await using run = made.start();
  assertEquals(await swarm.heard("checked"), [metaFor(size).generation, true]);
  swarm.listener!.onLease({ leaseId: 1, generation: null, first: 0, count: 0 });
  await swarm.heard("leaseEnd");
  await run.finished;
  assertEquals(await stored(made.store), fresh);
});
