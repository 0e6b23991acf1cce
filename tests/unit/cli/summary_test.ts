/** The last line of a download. */
import { assertEquals } from "@std/assert";
import { percent, renderSummary, type Summary } from "../../../cli/summary.ts";

const MIB = 2 ** 20;
const NONE = { length: 0, from_local: 0, from_peers: 0, from_source: 0, peers: 0, verified: null };

const ROWS: [string, Partial<Summary["stats"]>, Partial<Summary>, string][] = [
  [
    "peers and origin, verified",
    {
      length: 64 * MIB,
      from_peers: 58.2 * MIB,
      from_source: 5.8 * MIB,
      peers: 7,
      verified: `sha256:ab12${"0".repeat(60)}`,
    },
    { elapsedMs: 1900 },
    "64.0 MiB in 1.9 s (33.7 MiB/s), 91% from 7 peers, 5.8 MiB from the origin, verified sha256:ab1200000000…",
  ],
  [
    "one peer alone",
    { length: MIB, from_peers: MIB, peers: 1 },
    { elapsedMs: 1000 },
    "1.0 MiB in 1.0 s (1.0 MiB/s), 100% from 1 peer, not verified: no digest given",
  ],
  [
    "what this host had",
    { length: MIB, from_local: MIB },
    { elapsedMs: 500 },
    "1.0 MiB in 500 ms (2.0 MiB/s), 1.0 MiB from this host, not verified: no digest given",
  ],
  [
    "the origin without a daemon",
    { length: 1000, from_source: 1000 },
    { elapsedMs: 1000, direct: true },
    "1000 B in 1.0 s (1000 B/s), from the origin, without a daemon, not verified: no digest given",
  ],
  ["nothing at all", {}, { elapsedMs: 0 }, "0 B in 0 ms (0 B/s), not verified: no digest given"],
  [
    "nothing at all without a daemon",
    {},
    { elapsedMs: 0, direct: true },
    "0 B in 0 ms (0 B/s), from the origin, without a daemon, not verified: no digest given",
  ],
];
for (const [claim, stats, rest, line] of ROWS) {
  Deno.test(`renderSummary() tells of ${claim}`, () => {
    assertEquals(renderSummary({ stats: { ...NONE, ...stats }, elapsedMs: 0, direct: false, ...rest }), line);
  });
}

Deno.test("percent() says 100% only of all, and 0% only of nothing", () => {
  const rows: [number, number, string][] = [
    [0, 10, "0%"],
    [1, 10_000, "1%"],
    [9_999, 10_000, "99%"],
    [10, 10, "100%"],
    [0, 0, "0%"],
  ];
  for (const [part, whole, text] of rows) assertEquals(percent(part, whole), text);
});
