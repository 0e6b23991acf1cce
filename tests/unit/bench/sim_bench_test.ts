// The simulator and the scheduler as benches: tests/bench/sim_bench.ts
import { assert, assertEquals, assertRejects } from "@std/assert";
import { runScale, runSim, simLines } from "../../bench/sim_bench.ts";
import { LacewingError } from "../../../peer/core/errors.ts";
import { scaleLines } from "../../sim/scale_lines.ts";

const SIGNAL = new AbortController().signal;

Deno.test("bench sim runs the graph beside in-order picking and a tree, and tells what each run cost", async () => {
  const runs = await runSim({ hosts: [8], pieces: 8, signal: SIGNAL });
  assertEquals(runs.map(({ topology, policy }) => `${topology} ${policy}`), [
    "graph rarest",
    "graph in-order",
    "tree rarest",
  ]);
  for (const { hosts, pieces, incomplete, wrong, stretch, cpuSeconds } of runs) {
    assertEquals([hosts, pieces, incomplete, wrong], [8, 8, 0, 0]);
    assert(stretch >= 1 && cpuSeconds > 0);
  }
  const lines = simLines(runs).split("\n");
  assert(lines[0]!.startsWith("Simulator: a cold wave of 8 pieces"));
  assertEquals(lines.filter((line) => line.includes("8 tree rarest")).length, 2);
});

Deno.test("bench scale measures waves through the state machine and real sockets", async () => {
  const result = await runScale({ members: [40], sockets: 5, signal: SIGNAL });
  const [pure] = result.pure;
  assertEquals([result.pure.length, pure?.members, result.sockets.members], [1, 40, 5]);
  assert(pure!.events > 40 * 4 && pure!.eventsPerSecond > 0 && result.sockets.messages > 0);
  const lines = scaleLines(result).split("\n");
  assertEquals(lines.map((line) => line.split(" members")[0]), ["pure: 40", "sockets: 5"]);
});

Deno.test("a bench that cannot run says why", async () => {
  const error = await assertRejects(() => runSim({ hosts: [300_000], pieces: 8, signal: SIGNAL }), LacewingError);
  assert(error.message.includes("want 1 to 200000"), error.message);
});
