/** The healing stream over a real engine, with origin and store in memory. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { systemClock } from "../../../../peer/core/clock.ts";
import { parseDigest, sha256Hex } from "../../../../peer/core/digest.ts";
import { type ErrorCode, LacewingError } from "../../../../peer/core/errors.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { parseRange } from "../../../../peer/core/range.ts";
import { ContentStream } from "../../../../peer/proxy/content_stream.ts";
import type { StreamingStarter, TaskRequest } from "../../../../peer/task/task.ts";
import { type Bench, bench, PIECE, REQUEST } from "../task/engine_bench.ts";

const SIGNAL = new AbortController().signal;
const fast = { nowMs: systemClock.nowMs, sleep: () => Promise.resolve() };

const strangersHeaders = () => Promise.resolve(null);

function streamOf(
  { tasks, source }: Pick<Bench, "source"> & { tasks: StreamingStarter },
  over: Partial<TaskRequest> = {},
): ContentStream {
  return new ContentStream(
    { tasks, source, clock: fast, log: silentLogger, strangersHeaders },
    { ...REQUEST, ...over },
    SIGNAL,
  );
}

async function readAll(stream: ContentStream): Promise<Uint8Array> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const part of stream.read()) parts.push(part.slice());
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** A swarm whose runs fail after so many bytes, the first times. */
function failing(
  made: Bench,
  { after, code, times }: { after: number; code: ErrorCode; times: number },
): StreamingStarter {
  let left = times;
  return {
    start: (request, options) => {
      const run = made.tasks.start(request, options);
      if (left-- <= 0) return run;
      const error = new LacewingError(code, "made to fail");
      const fail = async function* (read: AsyncIterable<Uint8Array>) {
        let given = 0;
        for await (const part of read) {
          if (given >= after) throw error;
          given += part.length;
          yield part;
        }
      };
      return {
        taskId: run.taskId,
        finished: run.finished,
        opened: after < 0 ? Promise.reject(error) : run.opened,
        progress: () => run.progress(),
        onProgress: (listener) => run.onProgress(listener),
        read: (given) => fail(run.read(given)),
        [Symbol.asyncDispose]: () => run[Symbol.asyncDispose](),
      };
    },
  };
}

for (const size of [0, 1, PIECE, 3 * PIECE + 7]) {
  Deno.test(`a content of ${size} B comes whole, first from the origin, then from the disk`, async () => {
    await using made = bench(size);
    for (const source of ["origin", "local"]) {
      await using stream = streamOf(made);
      const { status, bytes } = await stream.open();
      assertEquals([status, bytes], [200, { offset: 0, length: size }]);
      assertEquals(await readAll(stream), made.source.bytes);
      if (size > 0) assertEquals(stream.source, source);
    }
    assertEquals(made.source.sentBytes, size);
  });
}

for (
  const [text, offset, length] of [
    ["0-9", 0, 10],
    ["300000-", 300_000, 3 * PIECE - 300_000],
    ["-7", 3 * PIECE - 7, 7],
  ] as const
) {
  Deno.test(`the range ${text} comes exactly, whatever fails on the way`, async () => {
    for (const after of [-1, 0, 1, PIECE]) {
      await using made = bench(3 * PIECE);
      await using stream = streamOf({
        source: made.source,
        tasks: failing(made, { after, code: "peer_failed", times: 9 }),
      }, { range: parseRange(text) });
      const { status, bytes } = await stream.open();
      assertEquals([status, bytes], [206, { offset, length }]);
      assertEquals(await readAll(stream), made.source.bytes.slice(offset, offset + length));
    }
  });
}

for (
  const code of ["network", "peer_failed", "unavailable", "disk_full", "no_holder", "file", "source_refused"] as const
) {
  for (const times of [1, 9]) {
    Deno.test(`${times} times ${code} in mid-content is healed without a byte lost or doubled`, async () => {
      await using made = bench(5 * PIECE + 3);
      const tasks = failing(made, { after: 2 * PIECE, code, times });
      await using stream = streamOf({ source: made.source, tasks });
      await stream.open();
      assertEquals(await readAll(stream), made.source.bytes);
    });
  }
}

for (const code of ["source_refused", "source_not_found", "policy", "tls"] as const) {
  Deno.test(`${code} before the first byte is the origin's word`, async () => {
    await using made = bench(PIECE);
    await using stream = streamOf({ source: made.source, tasks: failing(made, { after: -1, code, times: 9 }) });
    const error = await assertRejects(() => stream.open(), LacewingError);
    assertEquals(error.code, code);
  });
}

Deno.test("a swarm that never works leaves the origin, and then the digest is still checked", async () => {
  await using made = bench(2 * PIECE);
  const tasks = failing(made, { after: -1, code: "unavailable", times: 99 });
  const right = parseDigest(`sha256:${sha256Hex(made.source.bytes)}`);
  await using stream = streamOf({ source: made.source, tasks }, { digest: right });
  await stream.open();
  assertEquals([await readAll(stream), stream.source], [made.source.bytes, "origin"]);
  const wrong = parseDigest(`sha256:${"0".repeat(64)}`);
  await using other = streamOf({ source: made.source, tasks }, { digest: wrong });
  await other.open();
  let given = 0;
  const error = await assertRejects(async () => {
    for await (const part of other.read()) given += part.length;
  }, LacewingError);
  assertEquals(error.code, "digest_mismatch");
  assert(given < 2 * PIECE);
});

Deno.test("a content in one chunk that is wrong ends by its digest, after a bound of tries", async () => {
  await using made = bench(100);
  const digest = parseDigest(`sha256:${"0".repeat(64)}`);
  for (const after of [-1, 0]) {
    const tasks = failing(made, { after, code: "unavailable", times: 99 });
    await using stream = streamOf({ source: made.source, tasks }, { digest });
    await stream.open();
    const error = await assertRejects(() => readAll(stream), LacewingError);
    assertEquals(error.code, "digest_mismatch");
  }
  assert(made.source.requests.length < 10, `${made.source.requests.length} requests`);
});

Deno.test("who was half-way through the swarm gets the right rest from the origin, or none of its end", async () => {
  await using made = bench(4 * PIECE + 9);
  const digest = parseDigest(`sha256:${sha256Hex(made.source.bytes)}`);
  const broken = (): StreamingStarter => {
    const ways = [2 * PIECE, 0].map((after) => failing(made, { after, code: "unavailable", times: 99 }));
    return { start: (request, options) => (ways.length > 1 ? ways.shift() : ways[0])!.start(request, options) };
  };
  await using stream = streamOf({ source: made.source, tasks: broken() }, { digest });
  await stream.open();
  assertEquals([await readAll(stream), stream.source], [made.source.bytes, "origin"]);
  const right = made.source.bytes;
  await using other = streamOf({ source: made.source, tasks: broken() }, { digest });
  await other.open();
  let given = 0;
  const error = await assertRejects(async () => {
    for await (const part of other.read()) {
      given += part.length;
      if (given < 2 * PIECE) continue;
      // From now on the origin has other bytes of the same length.
      made.source.bytes = right.slice();
      made.source.bytes[right.length - 5]! ^= 1;
    }
  }, LacewingError);
  assertEquals([error.code, given < right.length], ["digest_mismatch", true]);
});

Deno.test("an origin that stays away ends the stream after a bound of tries", async () => {
  await using made = bench(PIECE);
  made.source.failures = Array.from({ length: 50 }, () => new LacewingError("network", "away"));
  await using stream = streamOf(made);
  const error = await assertRejects(() => stream.open(), LacewingError);
  assertEquals(error.code, "network");
});

Deno.test("a reader that goes away ends the run, and is told nothing", async () => {
  await using made = bench(8 * PIECE);
  const gone = new AbortController();
  const deps = { tasks: made.tasks, source: made.source, clock: fast, log: silentLogger, strangersHeaders };
  await using stream = new ContentStream(deps, REQUEST, gone.signal);
  await stream.open();
  const reading = (async () => {
    for await (const part of stream.read()) if (part.length > 0) gone.abort(new DOMException("gone", "AbortError"));
  })();
  assertEquals((await assertRejects(() => reading, DOMException)).name, "AbortError");
});
