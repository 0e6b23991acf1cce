// covers: peer/task/engine.ts, peer/task/engine_session.ts, peer/task/engine_errors.ts, peer/task/requests.ts, peer/task/run.ts
// covers: peer/task/session.ts, peer/task/verifications.ts, peer/task/digest_follower.ts, peer/task/probe.ts, peer/task/swarm.ts
// covers: peer/task/source_work.ts, peer/task/source_reader.ts, peer/task/peer_work.ts, peer/task/freshness.ts, peer/task/ledger.ts
/** The engine from its door, with origin, neighbours, store and scheduler in memory. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { seededRandom, systemClock } from "../../../../peer/core/clock.ts";
import { parseDigest, sha256Hex } from "../../../../peer/core/digest.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { pieceRange } from "../../../../peer/core/piece.ts";
import { parseRange } from "../../../../peer/core/range.ts";
import { RateLimiter } from "../../../../peer/core/rate_limit.ts";
import { taskId } from "../../../../peer/core/task_id.ts";
import { metaOf } from "../../../../peer/task/generation.ts";
import { PieceEvents } from "../../../../peer/task/piece_events.ts";
import { noSwarm, type Swarm } from "../../../../peer/task/swarm.ts";
import type { TaskRequest } from "../../../../peer/task/task.ts";
import { TaskManager } from "../../../../peer/task/task_manager.ts";
import { contentBytes } from "../../../testutil/content.ts";
import { type FakeNeighbour, FakeNeighbourhood, FakeSwarm } from "../../../testutil/fake_neighbour.ts";
import { FakeSource } from "../../../testutil/fake_source.ts";
import { MemoryStore } from "../../../testutil/memory_store.ts";

const KIB = 1024;
const PIECE = 256 * KIB;
const URL_TEXT = "http://origin/f";
const REQUEST: TaskRequest = {
  url: URL_TEXT,
  headers: [],
  tag: "",
  filter: "",
  digest: null,
  range: null,
  disableBackSource: false,
  rateLimitBytesPerSecond: 0,
};

interface Bench extends AsyncDisposable {
  readonly source: FakeSource;
  readonly store: MemoryStore;
  readonly tasks: TaskManager;
  readonly around: FakeNeighbourhood;
  start(over?: Partial<TaskRequest>): ReturnType<TaskManager["start"]>;
}

function bench(
  size: number,
  { swarm = noSwarm, neighbours = {} }: { swarm?: Swarm; neighbours?: Record<string, FakeNeighbour> } = {},
): Bench {
  const content = contentBytes(1, 0, size);
  const source = new FakeSource(content);
  const store = new MemoryStore();
  const around = new FakeNeighbourhood(content, PIECE, new Map(Object.entries(neighbours)));
  const tasks = new TaskManager({
    store,
    source,
    client: around,
    exchange: around,
    swarm,
    events: new PieceEvents(),
    totalLimiter: new RateLimiter(systemClock, 0),
    clock: systemClock,
    random: seededRandom(1),
    log: silentLogger,
    tempDir: Deno.makeTempDirSync(),
    onStored: () => {},
  }, { concurrentPieceCount: 4, maxConnections: 2, perTaskRateLimit: 0, autoBackSource: true, lingerMs: 0 });
  return {
    source,
    store,
    tasks,
    around,
    start: (over = {}) => tasks.start({ ...REQUEST, ...over }, { signal: AbortSignal.timeout(10_000) }),
    async [Symbol.asyncDispose]() {
      await tasks[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

async function stored(store: MemoryStore): Promise<Uint8Array> {
  await using task = await store.open(taskId(URL_TEXT));
  assert(task !== null);
  const bytes = new Uint8Array(task.info.meta.content_length);
  let at = 0;
  while (at < bytes.length) at += await task.read(bytes.subarray(at), at);
  return bytes;
}

async function readAll(run: ReturnType<TaskManager["start"]>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of run.read()) parts.push(part);
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

for (const size of [0, 1, PIECE - 1, PIECE, PIECE + 1, 4 * PIECE, 4 * PIECE + 1, 9 * PIECE]) {
  Deno.test(`alone, a content of ${size} B is read from the origin once`, async () => {
    await using made = bench(size);
    await using run = made.start();
    const { stats } = await run.finished;
    assertEquals([stats.content_length, stats.length, stats.from_source, stats.from_peers], [size, size, size, 0]);
    assertEquals(await stored(made.store), made.source.bytes);
    assertEquals(made.source.sentBytes, size);
  });
}

for (
  const [what, change] of [
    ["without ranges", { ranges: false }],
    ["without validators", { version: {} }],
    ["without length", { chunked: true }],
    ["that fails once", { failures: [new LacewingError("network", "broken")] }],
    ["that breaks off in the middle", { cutAfter: [PIECE + 5, 70_000] }],
  ] as const
) {
  Deno.test(`alone, an origin ${what} still gives the right content`, async () => {
    await using made = bench(5 * PIECE + 7);
    // The first failure is the probe's, which the HTTP source would have tried again itself.
    const later = what === "that fails once";
    Object.assign(made.source, later ? {} : change);
    await using run = made.start();
    if (later) made.source.cutAfter.push(1);
    await run.finished;
    assertEquals(await stored(made.store), made.source.bytes);
  });
}

Deno.test("requests for one task share one read of the origin", async () => {
  await using made = bench(6 * PIECE);
  await using one = made.start();
  await using two = made.start();
  await Promise.all([one.finished, two.finished]);
  assertEquals(made.source.sentBytes, 6 * PIECE);
});

Deno.test("a second request is served from the disk without asking the origin", async () => {
  await using made = bench(3 * PIECE);
  {
    await using first = made.start();
    await first.finished;
  }
  const requests = made.source.requests.length;
  await using second = made.start();
  const { stats } = await second.finished;
  assertEquals([stats.from_local, stats.from_source], [3 * PIECE, 0]);
  assertEquals(made.source.requests.length, requests);
});

for (
  const [text, offset, length] of [
    ["0-9", 0, 10],
    ["300000-", 300000, 5 * PIECE - 300000],
    ["-50", 5 * PIECE - 50, 50],
    ["0-99999999", 0, 5 * PIECE],
  ] as const
) {
  Deno.test(`the range ${text} gives exactly its bytes`, async () => {
    await using made = bench(5 * PIECE);
    await using run = made.start({ range: parseRange(text) });
    const bytes = await readAll(run);
    assertEquals(bytes, made.source.bytes.slice(offset, offset + length));
    assertEquals((await run.finished).stats.offset, offset);
  });
}

Deno.test("a range beyond the end fails as not satisfiable", async () => {
  await using made = bench(10);
  await using run = made.start({ range: parseRange("10-") });
  const error = await assertRejects(() => run.finished, LacewingError);
  assertEquals(error.code, "range_not_satisfiable");
});

Deno.test("a reader gets the bytes in order while they arrive", async () => {
  await using made = bench(7 * PIECE + 3);
  await using run = made.start();
  assertEquals(await readAll(run), made.source.bytes);
});

Deno.test("a right digest is reported, a wrong one fails and throws the content away", async () => {
  await using made = bench(2 * PIECE + 1);
  const right = parseDigest(`sha256:${sha256Hex(made.source.bytes)}`);
  {
    await using run = made.start({ digest: right });
    assertEquals((await run.finished).stats.verified, `sha256:${right.hex}`);
  }
  await using run = made.start({ digest: { ...right, hex: "0".repeat(64) } });
  const error = await assertRejects(() => run.finished, LacewingError);
  assertEquals(error.code, "digest_mismatch");
  await made.tasks[Symbol.asyncDispose]();
  assertEquals(await made.store.open(taskId(URL_TEXT)), null);
});

Deno.test("a content that changes while this host reads it alone is read anew", async () => {
  await using made = bench(40 * PIECE);
  const before = made.source.bytes;
  const after = contentBytes(2, 0, 40 * PIECE);
  const open = made.source.open.bind(made.source);
  let opens = 0;
  made.source.open = (request, options) => {
    if (++opens === 2) Object.assign(made.source, { bytes: after, version: { etag: '"2"' } });
    return open(request, options);
  };
  await using run = made.start();
  await run.finished;
  assert(before !== after);
  assertEquals(await stored(made.store), after);
});

Deno.test("a request that is given up leaves what was read on the disk for the next one", async () => {
  await using made = bench(64 * PIECE);
  const controller = new AbortController();
  {
    await using run = made.tasks.start(REQUEST, { signal: controller.signal });
    const half = new Promise<void>((resolve) => run.onProgress(() => run.progress().done > 20 * PIECE && resolve()));
    await half;
    controller.abort(new DOMException("enough", "AbortError"));
    await assertRejects(() => run.finished, DOMException);
  }
  const before = made.source.sentBytes;
  await using again = made.start();
  const { stats } = await again.finished;
  assert(stats.from_local > 15 * PIECE, `only ${stats.from_local} B were kept`);
  assert(made.source.sentBytes - before < 64 * PIECE - stats.from_local + 3 * PIECE);
  assertEquals(await stored(made.store), made.source.bytes);
});

for (const code of ["source_not_found", "source_refused", "tls", "policy"] as const) {
  Deno.test(`alone, an origin's ${code} is the request's error`, async () => {
    await using made = bench(10);
    made.source.failures.push(new LacewingError(code, "no"));
    await using run = made.start();
    assertEquals((await assertRejects(() => run.finished, LacewingError)).code, code);
  });
}

Deno.test("without a holder and with back-source disabled nothing is asked of the origin", async () => {
  await using made = bench(10);
  await using run = made.start({ disableBackSource: true });
  assertEquals((await assertRejects(() => run.finished, LacewingError)).code, "no_holder");
  assertEquals(made.source.requests.length, 0);
});

Deno.test("user and password of a URL reach the origin as a header, and nobody else", async () => {
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(null, []);
    listener.onLease({ leaseId: 1, generation: null, first: 0, count: 0 });
  });
  await using made = bench(10, { swarm });
  await using run = made.start({ url: "http://user:p%40ss@origin/f" });
  await run.finished;
  assertEquals(made.source.requests[0]!.url, URL_TEXT);
  assertEquals(made.source.requests[0]!.headers, [["authorization", `Basic ${btoa("user:p@ss")}`]]);
  const [state] = await swarm.heard("join");
  assertEquals((state as { anonymous: boolean }).anonymous, false);
});

/** The scheduler's list of digests. */
function digests(bytes: Uint8Array): [number, string][] {
  const count = Math.ceil(bytes.length / PIECE);
  return Array.from({ length: count }, (_, number) => {
    const { offset, length } = pieceRange(number, { contentLength: bytes.length, pieceLength: PIECE });
    return [number, sha256Hex(bytes.subarray(offset, offset + length))];
  });
}

function metaFor(size: number) {
  return metaOf({ url: URL_TEXT, contentLength: size, ranges: true, version: { etag: '"1"' } }, "");
}

const neighbour = (host_id: string) => ({ host_id, address: host_id, type: "normal" as const, idc: "" });

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
  run.progress();
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
