// covers: peer/task/peer_work.ts, peer/task/session.ts, peer/task/request_gate.ts
/** Many contents at once on one host: what they share of the neighbours, and when one of them starves. */
import { assert, assertEquals } from "@std/assert";
import { PATIENCE_MS_MAX } from "../../../../peer/task/arrival_pace.ts";
import { systemClock } from "../../../../peer/core/clock.ts";
import { contentBytes } from "../../../testutil/content.ts";
import { FakeSwarm } from "../../../testutil/fake_neighbour.ts";
import { bench, digests, metaFor, neighbour, PIECE } from "./engine_bench.ts";

const TAGS = ["a", "b", "c", "d", "e", "f"];

Deno.test("contents that are fetched at once ask as much of a neighbour as one does, and all come", async () => {
  const size = 8 * PIECE;
  const all = [...Array(8).keys()];
  const swarm = new FakeSwarm((listener) => {
    listener.onTask(metaFor(size), [neighbour("x"), neighbour("y")]);
    listener.onDigests(metaFor(size).generation, digests(contentBytes(1, 0, size)));
  });
  let open = 0;
  let most = 0;
  const before = async () => {
    most = Math.max(most, ++open);
    // A turn of the event loop: whoever may ask has asked.
    await new Promise((resolve) => setTimeout(resolve, 0));
    open -= 1;
  };
  await using made = bench(size, { swarm, neighbours: { x: { pieces: all, before }, y: { pieces: all, before } } });
  const runs = TAGS.map((tag) => made.start({ tag, disableBackSource: true }));
  await using stack = new AsyncDisposableStack();
  for (const run of runs) stack.use(run);
  for (const { finished } of runs) assertEquals((await finished).stats.from_peers, size);
  // Two neighbours, four requests in all: two for each.
  assert(most > 2 && most <= 4, `${most} pieces asked for at once`);
});

Deno.test("a content that gets nothing starves later while neighbours are to send another one", async () => {
  const size = 3 * PIECE;
  const swarm = new FakeSwarm((listener) => listener.onTask(metaFor(size), [neighbour("hanging")]));
  // All looks are taken for 150 ms apart.
  const clock = { ...systemClock, nowMs: () => 1.5 * systemClock.nowMs() };
  await using made = bench(size, { swarm, clock, neighbours: { hanging: { pieces: [0], hang: true } } });
  await using _busy = made.start({ tag: "busy" });
  while (made.around.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  made.around.neighbours.set("hanging", { pieces: [] });
  const beganAtMs = clock.nowMs();
  await using _starving = made.start({ tag: "starving" });
  const [, pieces] = await swarm.heard("starving");
  assertEquals(pieces, [0, 1, 2]);
  const afterMs = clock.nowMs() - beganAtMs;
  assert(afterMs >= PATIENCE_MS_MAX, `it said so after ${afterMs} ms`);
});
