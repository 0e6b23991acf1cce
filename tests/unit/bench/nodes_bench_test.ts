// The lines of the bench of container nodes: tests/bench/nodes_bench.ts
import { assertEquals } from "@std/assert";
import { nodesLines } from "../../bench/nodes_bench.ts";

Deno.test("nodesLines() tells times, copies and their ratios, a line for each number of nodes", () => {
  const lines = nodesLines({
    size: 40 * 2 ** 20,
    linkBitsPerSecond: 100_000_000,
    rows: [
      { nodes: 1, direct: { seconds: 3.5, copies: 1, busy: 0.1 }, mirror: { seconds: 3.5, copies: 1, busy: 0.3 } },
      { nodes: 8, direct: { seconds: 28, copies: 8, busy: 0.2 }, mirror: { seconds: 7, copies: 1, busy: 0.5 } },
    ],
  }).split("\n");
  assertEquals(
    lines[0]?.startsWith("Nodes: ctr content fetch of 40.0 MiB by all at once, every link 100 Mbit/s"),
    true,
  );
  assertEquals(lines.slice(2), [
    "       1         3.50 s    1.00   10%          3.50 s    1.00   30%   1.00 x    1.00 x",
    "       8        28.00 s    8.00   20%          7.00 s    1.00   50%   0.25 x    0.13 x",
    "",
  ]);
});
