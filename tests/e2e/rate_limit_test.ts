/**
 * Limits of commands and daemons over real sockets. The machine that runs this
 * may be busy, so that the tolerance is wide; the figures are printed, and
 * `tests/unit/peer/core/rate_limit_test.ts` holds them to 3% with its own clock.
 */
// covers: peer/reload.ts
import { assert, assertEquals } from "@std/assert";
import type { ChildResult } from "../testutil/child.ts";
import { startCluster } from "../testutil/cluster.ts";
import { startOrigin } from "../testutil/origin.ts";
import { Place } from "../testutil/place.ts";
import { type DaemonProcess, spawnDaemon } from "../testutil/process.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
/** How slow is no judgement of the limit on a machine that does other work too: the figure is printed. */
const SHORTFALL_MAX = 0.8;
/** The same where the rate is near to what a busy machine can do at all. */
const FAST_SHORTFALL_MAX = 0.95;
/** Nothing makes a download faster than its limit: what 0.05 s may have saved, in 2 s. */
const EXCESS_MAX = 0.03;

/** Bytes a second of a finished command, by its own log records: without what it takes to look for a daemon. */
function rateOf({ code, stdout, stderr }: ChildResult): number {
  assertEquals(code, 0, stderr);
  const records = stdout.trim().split("\n").map((line) => JSON.parse(line));
  const done = records.find(({ message }) => message === "done");
  const direct = records.find(({ message }) => message === "downloading without a daemon");
  const elapsedMs = direct === undefined ? done.elapsed_ms : Date.parse(done.time) - Date.parse(direct.time);
  return (done.length / elapsedMs) * 1000;
}

function assertRate(what: string, rate: number, wanted: number, excessMax = EXCESS_MAX): void {
  const text = `${what}: ${(rate / wanted * 100).toFixed(1)}% of ${(wanted / KIB).toFixed(0)} KiB/s`;
  console.log(text);
  const shortfallMax = wanted > 50 * MIB ? FAST_SHORTFALL_MAX : SHORTFALL_MAX;
  assert(rate <= wanted * (1 + excessMax) && rate >= wanted * (1 - shortfallMax), text);
}

const RATES: [string, number, number][] = [["100K", 100 * KIB, 4], ["10M", 10 * MIB, 3], ["100M", 100 * MIB, 1.5]];
for (const [flag, rate, seconds] of RATES) {
  const size = Math.round(rate * seconds);
  Deno.test(`--ratelimit ${flag} is kept by the daemon, and by the client without one`, async () => {
    await using origin = startOrigin();
    await using daemon = await spawnDaemon();
    await using place = new Place();
    const url = origin.url(`/f?size=${size}`);
    const flags = ["-O", "x", "--ratelimit", flag, "--console"];
    assertRate("daemon", rateOf(await daemon.client(url, ...flags)), rate);
    const direct = await place.direct(url, ...flags);
    assertRate("direct", rateOf(direct), rate);
  });
}

/** Two commands at once for two contents of one size. */
async function both(daemon: DaemonProcess, urls: string[], ...flags: string[]): Promise<number[]> {
  const results = await Promise.all(
    urls.map((url, index) => daemon.client(url, "-O", daemon.out(`out-${index}`), "--console", ...flags)),
  );
  return results.map(rateOf);
}

Deno.test("two limited commands on two contents each get their own limit, on one content they share one", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  const urls = [1, 2].map((seed) => origin.url(`/f?size=${6 * MIB}&seed=${seed}`));
  for (const rate of await both(daemon, urls, "--ratelimit", "2M")) assertRate("each", rate, 2 * MIB);
  const one = origin.url(`/f?size=${6 * MIB}&seed=3`);
  // Who asks later finds a part of it there already: only the one who began has it all at the limit.
  assertRate("one content", Math.min(...await both(daemon, [one, one], "--ratelimit", "2M")), 2 * MIB);
  assertEquals(origin.bytesSent(), 18 * MIB);
});

Deno.test("the daemon's --limit is shared fairly, whatever the commands allow themselves", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon({ args: ["--limit", "8M"] });
  // The second has no ranges: one connection against four.
  const urls = [
    origin.put("/a", { size: 12 * MIB, seed: 1 }),
    origin.put("/b", { size: 12 * MIB, seed: 2, ranges: false }),
  ];
  const shares = await both(daemon, urls, "--ratelimit", "0");
  // Who begins a moment earlier, or goes on alone at the end, has a little more.
  for (const rate of shares) assertRate("share", rate, 4 * MIB, 0.2);
});

Deno.test("limits of the configuration: total, of one task, and of uploads", async () => {
  await using origin = startOrigin();
  const limits: [string, Record<string, unknown>][] = [
    ["total", { download: { totalRateLimit: "3MiB" } }],
    ["of one task", { download: { perPeerRateLimit: "3MiB" } }],
  ];
  for (const [what, config] of limits) {
    await using daemon = await spawnDaemon({ config });
    const flags = ["-O", daemon.out(), "--console", "--ratelimit", "0"];
    assertRate(what, rateOf(await daemon.client(origin.url(`/f?size=${6 * MIB}`), ...flags)), 3 * MIB);
  }
  await using cluster = await startCluster({ daemons: 2, daemon: { config: { upload: { rateLimit: "3MiB" } } } });
  const [first, second] = cluster.daemons as [DaemonProcess, DaemonProcess];
  const url = origin.url(`/f?size=${6 * MIB}&seed=7`);
  const flags = ["--console", "--ratelimit", "0"];
  assertEquals((await first.client(url, "-O", first.out(), ...flags)).code, 0);
  const upload = await second.client(url, "-O", second.out(), "--disable-back-source", ...flags);
  assertRate("upload", rateOf(upload), 3 * MIB);
});

Deno.test("SIGHUP changes the limits of what is under way, says what needs a restart, and survives a bad file", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon({ config: { download: { totalRateLimit: "100K" } } });
  const path = `${daemon.folder}/client.yaml`;
  const text = await Deno.readTextFile(path);
  const download = daemon.client(origin.url(`/f?size=${4 * MIB}`), "-O", daemon.out(), "--console");
  await origin.sent(200 * KIB);
  const hangUp = async (config: string, line: string) => {
    await Deno.writeTextFile(path, config);
    Deno.kill(daemon.pid, "SIGHUP");
    return JSON.parse(await daemon.logged(line));
  };
  const bad = await hangUp("download: { totalRateLimit: fast }", "cannot be read again");
  assertEquals([bad.level, bad.error.code], ["error", "config_invalid"]);
  const good = await hangUp(
    `${text.replace(/totalRateLimit: .*/, "totalRateLimit: 0")}aliveTime: 1h\n`,
    "configuration read again",
  );
  assertEquals(good.changed, [{ path: "download.totalRateLimit", from: 100 * KIB, to: 0 }]);
  assertEquals(good.needs_restart, ["aliveTime"]);
  // At the old limit it would take 40 s.
  assert(rateOf(await download) > 400 * KIB);
});
