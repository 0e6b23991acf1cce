// What the bench prints of scenario I: tests/bench/pair_report.ts
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { PairResult } from "../../bench/pair_bench.ts";
import { pairTable } from "../../bench/pair_report.ts";

const GIB = 2 ** 30;
const OWN: PairResult = {
  contestant: "lacewing",
  size: GIB,
  rate: 900,
  cpuSecondsPerGb: 1.5,
  senderCpuSecondsPerGb: 0.35,
  rssMaxBytes: 160e6,
  rssIdleBytes: 80e6,
  stallSeconds: 0.05,
  wrong: [],
};
const CURL: PairResult = {
  ...OWN,
  contestant: "curl",
  rate: 1000,
  cpuSecondsPerGb: 1.2,
  rssMaxBytes: null,
  rssIdleBytes: null,
  stallSeconds: null,
};

/** The verdicts, by the name of the target. */
function verdicts(results: readonly PairResult[]): Record<string, string> {
  const rows = pairTable(results).split("\n").map((line) => /^ {3}1\.0 GiB, (.+?) {2,}.*(reached|missed)$/.exec(line));
  return Object.fromEntries(rows.filter((row) => row !== null).map((row) => [row[1], row[2]]));
}

Deno.test("pairTable() calls every target reached that is just reached", () => {
  assertEquals(verdicts([OWN, CURL]), {
    rate: "reached",
    "CPU s/GB, both ends": "reached",
    "of it the sender": "reached",
    "peak RSS": "reached",
    "idle RSS": "reached",
    "longest stall": "reached",
  });
});

const MISSES: [target: string, more: Partial<PairResult>][] = [
  ["rate", { rate: 899 }],
  ["CPU s/GB, both ends", { cpuSecondsPerGb: 1.51 }],
  ["of it the sender", { senderCpuSecondsPerGb: 0.36 }],
  ["peak RSS", { rssMaxBytes: 160.1e6 }],
  ["idle RSS", { rssIdleBytes: 80.1e6 }],
  ["longest stall", { stallSeconds: 0.051 }],
];
for (const [target, more] of MISSES) {
  Deno.test(`pairTable() calls ${target} missed where it is, and no other`, () => {
    const missed = Object.entries(verdicts([{ ...OWN, ...more }, CURL])).filter(([, verdict]) => verdict === "missed");
    assertEquals(missed.map(([name]) => name), [target]);
  });
}

Deno.test("pairTable() takes the worst stall and the median rate of several rounds, and sizes each for itself", () => {
  const rounds = [OWN, { ...OWN, rate: 100, stallSeconds: 0.2 }, OWN, { ...CURL, size: 4 * GIB }];
  const text = pairTable([...rounds, CURL, { ...OWN, size: 4 * GIB }]);
  assertEquals([verdicts(rounds.concat(CURL)).rate, verdicts(rounds)["longest stall"]], ["reached", "missed"]);
  assertMatch(text, /200 ms/);
  assertMatch(text, /4\.0 GiB, rate +>= 0\.90x +0\.90x/);
});

Deno.test("pairTable() without curl says nothing of the rate, and of wrong bytes always", () => {
  const text = pairTable([{ ...OWN, wrong: ["p2: f0"] }]);
  assert(!text.includes("0.90x") && text.includes("WRONG") && text.includes("<= 160 MB"), text);
});
