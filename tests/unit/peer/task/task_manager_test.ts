// covers: peer/task/run.ts, peer/task/source_work.ts, peer/task/requests.ts, peer/task/verifications.ts, peer/task/probe.ts
// covers: peer/task/digest_follower.ts, peer/task/source_reader.ts, peer/task/freshness.ts, peer/task/ledger.ts
/** The engine from its door, working alone. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { parseDigest, sha256Hex } from "../../../../peer/core/digest.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { parseRange } from "../../../../peer/core/range.ts";
import { taskId } from "../../../../peer/core/task_id.ts";
import { contentBytes } from "../../../testutil/content.ts";
import { FakeSwarm } from "../../../testutil/fake_neighbour.ts";
import { bench, PIECE, readAll, REQUEST, stored, URL_TEXT } from "./engine_bench.ts";

for (const size of [0, 1, PIECE - 1, PIECE, PIECE + 1, 4 * PIECE, 4 * PIECE + 1, 9 * PIECE]) {
  Deno.test(`alone, a content of ${size} B is read from the origin once`, async () => {
    await using made = bench(size);
    await using run = made.start();
    const { stats } = await run.finished;
    assertEquals([stats.content_length, stats.length, stats.from_source, stats.from_peers], [size, size, size, 0]);
    assertEquals(await stored(made.store), made.source.bytes);
    assertEquals([made.source.sentBytes, made.traffic.sourceBytes], [size, size]);
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
    assertEquals(made.traffic.sourceBytes, made.source.sentBytes);
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
