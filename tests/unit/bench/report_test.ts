// What the bench prints and draws: tests/bench/report.ts, tests/bench/svg.ts
import { assert, assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import { clientTable, medianSummary, scenarioTable, summarize } from "../../bench/report.ts";
import type { HostFinish, ScenarioResult, Trial } from "../../bench/swarm_bench.ts";
import { wavesOf } from "../../bench/swarm_bench.ts";
import { plot, thin } from "../../bench/svg.ts";

const MIB = 2 ** 20;

function finish(host: string, seconds: number, more: Partial<HostFinish> = {}): HostFinish {
  return { host, seconds, wave: 0, progress: [[0, 0], [seconds, 64 * MIB]], killed: false, ...more };
}

function trial(more: Partial<Trial> = {}): Trial {
  return {
    contestant: "lacewing",
    finishes: [finish("p1", 11), finish("p2", 12)],
    sourceBytes: 65 * MIB,
    peerBytes: 64 * MIB,
    cpuSeconds: 0.2,
    busiestCore: 0.4,
    rssMaxBytes: 80 * MIB,
    wireBytes: 130 * MIB,
    trunkBytes: null,
    utilisation: 0.9,
    wrong: [],
    ...more,
  };
}

function result(trials: readonly Trial[]): ScenarioResult {
  const rates = { sourceUp: 6e6, hosts: { p1: { up: 6e6, down: 6e6 }, p2: { up: 6e6, down: 6e6 } } };
  return { scenario: { id: "a", title: "cold <wave>" }, peers: 2, size: 64 * MIB, bound: 10, rates, trials };
}

Deno.test("summarize() gives the slowest host over the bound, and the bytes that nobody needed", () => {
  const summary = summarize(trial(), result([]));
  assertEquals([summary.slowest, summary.median, summary.stretch], [12, 11.5, 1.2]);
  assertAlmostEquals(summary.sourceCopies, 65 / 64);
  assertEquals(summary.duplicateBytes, MIB);
});

Deno.test("summarize() adds up waves, and leaves killed hosts out", () => {
  const finishes = [finish("p1", 3), finish("p2", 4, { wave: 1 }), finish("p3", 50, { wave: 1, killed: true })];
  assertEquals(summarize(trial({ finishes }), result([])).slowest, 7);
});

Deno.test("medianSummary() keeps what is unknown unknown, and throws for nothing", () => {
  const summaries = [1, 2, 9].map((seconds) =>
    summarize(trial({ finishes: [finish("p1", seconds)], peerBytes: null }), result([]))
  );
  assertEquals(medianSummary(summaries).slowest, 2);
  assertEquals(medianSummary(summaries).duplicateBytes, null);
  assertThrows(() => medianSummary([]), RangeError);
});

Deno.test("scenarioTable() compares, and says when a figure is about the CPU or files are wrong", () => {
  const slow = trial({ contestant: "curl", finishes: [finish("p1", 24)], busiestCore: 0.97, wrong: ["p1: f0 is bad"] });
  const text = scenarioTable(result([trial(), slow]));
  assert(text.includes("lacewing is 2.00 times faster than curl"));
  assert(text.includes("curl: the busiest core was busy 97%"));
  assert(text.includes("curl: 1 FILES WRONG"));
  assert(scenarioTable(result([trial({ trunkBytes: 64 * MIB })])).includes("1.00 copies"));
});

Deno.test("plot() draws a line for each contestant, and escapes titles", () => {
  const svg = plot([result([trial(), trial({ contestant: "curl" })])]);
  assert(svg.startsWith("<svg ") && svg.trimEnd().endsWith("</svg>"));
  assert(svg.includes("cold &lt;wave&gt;") && !svg.includes("<wave>"));
  assertEquals(svg.match(/<polyline/g)?.length, 2 + 1 + 4);
});

Deno.test("thin() keeps both ends", () => {
  const points = Array.from({ length: 1000 }, (_, index) => index);
  const some = thin(points, 10);
  assertEquals([some.length, some[0], some.at(-1)], [10, 0, 999]);
  assertEquals(thin([1, 2], 10), [1, 2]);
});

Deno.test("wavesOf() cuts into groups of nearly one size", () => {
  assertEquals(wavesOf([1, 2, 3, 4, 5, 6, 7, 8], 4), [[1, 2], [3, 4], [5, 6], [7, 8]]);
  assertEquals(wavesOf([1, 2, 3], 2), [[1, 2], [3]]);
  assertEquals(wavesOf([1, 2], 4), [[1], [2]]);
});

Deno.test("clientTable() sets each client beside curl: medians of time and memory, the mean of CPU, the spread", () => {
  const run = (ms: number, cpuMs = ms, rssMaxBytes = MIB) => ({ ms, cpuMs, rssMaxBytes });
  const lines = clientTable([
    { client: "curl", size: MIB, runs: [run(10), run(12), run(50)] },
    { client: "lacewing, held", size: MIB, runs: [run(24, 0, 4 * MIB), run(24, 60, 4 * MIB), run(30, 60, 4 * MIB)] },
  ]).split("\n");
  assert(lines[0]!.includes("medians of 3 runs"));
  const columns = lines.map((line) => line.trim().split(/ {2,}/));
  assertEquals(columns[2]!.slice(0, 4), ["1.0 MiB", "curl", "12.0 ms", "1.00x"]);
  assertEquals(columns[3]!, [
    ...["1.0 MiB", "lacewing, held", "24.0 ms", "2.00x", "24.0 ms..30.0 ms"],
    ...["40.0 ms", "1.67x", "4.0 MiB", "4.00x"],
  ]);
});
