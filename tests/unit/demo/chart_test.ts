/** covers: tests/demo/chart.ts */
import { assert, assertEquals } from "@std/assert";
import { exchangeChart, type HostResult, hostTable, sentBy } from "../../demo/chart.ts";

const MIB = 2 ** 20;

function result(name: string, facts: Partial<HostResult> & { from?: Record<string, number> } = {}): HostResult {
  const { from = {}, ...rest } = facts;
  return {
    name,
    ms: 1000,
    bytes: 0,
    fromPeers: 0,
    fromSource: 0,
    fromLocal: 0,
    senders: new Map(Object.entries(from)),
    right: 1,
    wrong: 0,
    ...rest,
  };
}

Deno.test("hostTable() shows time, rate, shares and digests of each host", () => {
  const text = hostTable([
    result("host-0", { ms: 2000, bytes: 64 * MIB, fromPeers: 48 * MIB, fromSource: 16 * MIB }),
    result("host-10", { ms: 500, bytes: MIB, fromLocal: MIB, right: 13, wrong: 1 }),
  ]);
  assertEquals(
    text,
    "  host       time        rate  from peers  from origin  had before   sha256\n" +
      "  host-0    2.0 s  32.0 MiB/s         75%          25%          0%  1 right\n" +
      "  host-10  500 ms   2.0 MiB/s          0%           0%        100%  1 WRONG\n",
  );
});

Deno.test("hostTable() has no share of an empty content, and no endless rate", () => {
  const row = hostTable([result("host-0", { ms: 0 })]).split("\n")[1];
  assertEquals(row?.trim().split(/\s{2,}/), ["host-0", "0 ms", "0 B/s", "-", "-", "-", "1 right"]);
});

Deno.test("exchangeChart() has a row for each sender, the origin first, and a column for each receiver", () => {
  const text = exchangeChart([
    result("host-0", { from: { "seed-0": 3 * MIB, "host-1": MIB / 2 } }),
    result("host-1", { from: { "seed-0": MIB }, fromSource: 2 * MIB }),
  ]);
  assertEquals(
    text,
    "  MiB from \\ to  host-0  host-1  sum\n" +
      "  origin              .     2.0  2.0\n" +
      "  host-1            0.5       .  0.5\n" +
      "  seed-0            3.0     1.0  4.0\n",
  );
});

Deno.test("exchangeChart() of many receivers shows each sender's sum as a bar", () => {
  const results = Array.from({ length: 9 }, (_, at) => result(`host-${at}`, { from: { "seed-0": MIB, "host-3": 1 } }));
  const [head, host, seed] = exchangeChart(results).split("\n");
  assertEquals(head, "  MiB sent by  sum");
  assertEquals(host?.trim().split(/\s+/), ["host-3", "0.0", "#"]);
  assertEquals(seed?.trim().split(/\s+/), ["seed-0", "9.0", "#".repeat(30)]);
});

Deno.test("exchangeChart() says when nobody sent anything", () => {
  assert(exchangeChart([result("host-0", { fromLocal: MIB })]).includes("nobody"));
});

Deno.test("sentBy() orders names as people count", () => {
  const results = [result("host-0", { from: { "host-10": 1, "host-9": 2 }, fromSource: 4 })];
  assertEquals(sentBy([...results, ...results]), [["origin", 8], ["host-9", 4], ["host-10", 2]]);
});
