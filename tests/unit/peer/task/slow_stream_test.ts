// covers: peer/task/source_work.ts, peer/task/peer_work.ts, peer/task/run.ts
/** A reader of a task at a low rate: the bytes that it waits for come first. */
import { assert, assertEquals } from "@std/assert";
import { type Clock, systemClock } from "../../../../peer/core/clock.ts";
import { contentBytes } from "../../../testutil/content.ts";
import { FakeSwarm } from "../../../testutil/fake_neighbour.ts";
import { bench, digests, metaFor, neighbour, PIECE } from "./engine_bench.ts";

const KIB = 1024;
const COUNT = 32;
const SIZE = COUNT * PIECE;
const SLOW = { rateLimitBytesPerSecond: 100 * KIB };
/** Neighbours send pieces in halves, so one more chunk may be on its way. */
const CHUNK = PIECE / 2;

/** Time that passes by being slept through. */
function sleeper(): Clock {
  let nowMs = 0;
  const sleep = async (ms: number, signal?: AbortSignal) => {
    await new Promise((resolve) => setTimeout(resolve, 0));
    signal?.throwIfAborted();
    nowMs += ms;
  };
  return { ...systemClock, nowMs: () => nowMs, sleep };
}

Deno.test("a reader at 100 KB/s gets its first bytes after one piece from the origin, not after several", async () => {
  await using made = bench(SIZE, { clock: sleeper() });
  await using run = made.start(SLOW);
  let read = 0;
  for await (const part of run.read()) {
    const ahead = made.traffic.sourceBytes - read;
    assert(ahead <= PIECE + CHUNK, `${ahead} B had come before byte ${read} was read`);
    read += part.length;
  }
  assertEquals(read, SIZE);
});

Deno.test("a reader at 100 KB/s gets its pieces from neighbours one after the other", async () => {
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(metaFor(SIZE), [neighbour("a"), neighbour("b")]);
    listener.onDigests(metaFor(SIZE).generation, digests(contentBytes(1, 0, SIZE)));
  });
  const all = { pieces: [...Array(COUNT).keys()] };
  await using made = bench(SIZE, { swarm, neighbours: { a: all, b: all }, clock: sleeper() });
  await using run = made.start({ ...SLOW, disableBackSource: true });
  const reader = run.read()[Symbol.asyncIterator]();
  const first = await reader.next();
  assert(!first.done && first.value.length > 0);
  assert(
    made.around.requests.length <= 3,
    `${made.around.requests.length} pieces were asked for before the first byte`,
  );
  await reader.return?.();
});

Deno.test("without a limit several pieces are under way at once", async () => {
  await using made = bench(SIZE);
  await using run = made.start();
  await run.finished;
  const opened = made.source.requests.length;
  assert(opened > 2, `${opened} requests to the origin`);
});

Deno.test("alone, what is read in order is asked of the origin with one request behind the first", async () => {
  await using made = bench(SIZE);
  await using run = made.start({ inOrder: true });
  let read = 0;
  for await (const part of run.read()) read += part.length;
  assertEquals([read, made.source.requests.length], [SIZE, 2]);
});

Deno.test("when a reader in order gives up, whoever wants the file gets it over all connections", async () => {
  await using made = bench(SIZE);
  const run = made.start({ inOrder: true });
  await using other = made.start();
  await run.opened;
  await run[Symbol.asyncDispose]();
  await other.finished;
  const opened = made.source.requests.length;
  assert(opened > 2, `${opened} requests to the origin`);
});
