// Thresholds stand just above what the deciding files reach now, over seeds 1 to 5.
import { assert, assertEquals } from "@std/assert";
import { coldWave, mbit, MiB } from "./config.ts";
import { expectSwarm } from "./expect.ts";
import { simulate } from "./simulation.ts";

for (
  const [hosts, stretch] of [
    [1, 1.03],
    [2, 1.05],
    [16, 1.15],
    [32, 1.31],
    [64, 1.20],
    [256, 1.27],
    [1000, 1.42],
  ] as const
) {
  Deno.test(`a cold wave of ${hosts} hosts ends within ${stretch} × the bound, with one copy from the origin`, () => {
    expectSwarm(coldWave(hosts, { watchMs: 500 }), { stretch, originCopies: 1.01 });
  });
}

Deno.test("with four upload slots 64 hosts end within 1.16 × the bound", () => {
  expectSwarm(coldWave(64, { slots: 4 }), { stretch: 1.16, originCopies: 1.01 });
});

Deno.test("a scarce origin is the only limit for hosts that are faster", () => {
  const config = coldWave(16, { originRate: mbit(20), upRate: () => mbit(100), downRate: () => mbit(100) });
  expectSwarm(config, { stretch: 1.03, originCopies: 1.01 });
});

Deno.test("hosts of three speeds end with the slowest of them", () => {
  const rate = (index: number) => mbit(index % 4 === 0 ? 12.5 : index % 4 === 1 ? 100 : 50);
  expectSwarm(coldWave(16, { upRate: rate, downRate: rate }), { stretch: 1.05, originCopies: 1.01 });
});

Deno.test("an origin far away costs a quarter, not a multiple", () => {
  const config = coldWave(16, { originLatencyMs: 50, schedulerLatencyMs: 20, latencyMs: 10 });
  expectSwarm(config, { stretch: 1.35, originCopies: 1.01 });
});

Deno.test("the order of pieces matters more than anything else: in order is twice as slow as rarest first", () => {
  const of = (policy: "rarest" | "in-order") => simulate(coldWave(16, { policy })).stretch;
  assert(of("in-order") > 2 * of("rarest"));
});

Deno.test("a tree of three children per host is twice as slow as the graph", () => {
  const tree = simulate(coldWave(16, { topology: "tree" }));
  assertEquals(tree.incomplete, 0);
  assert(tree.stretch > 2 * simulate(coldWave(16)).stretch);
});

Deno.test("what a host says to the scheduler does not grow with the number of hosts", () => {
  const of = (hosts: number) => simulate(coldWave(hosts, { contentLength: 16 * MiB })).messages;
  assert(of(200) <= 1.2 * of(20));
});

Deno.test("the same seed gives the same run, another one another", () => {
  const run = (seed: number) => {
    const { wallMs: _, schedulerMs: __, ...outcome } = simulate(coldWave(40, { contentLength: 8 * MiB, seed }));
    return outcome;
  };
  assertEquals(run(7), run(7));
  assert(run(7).lastMs !== run(8).lastMs);
});
