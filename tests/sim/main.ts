/**
 * Simulated swarms by hand: `--hosts 1000 --policy rarest --topology graph
 * --seed 1` prints one run, and without a policy or topology all of them side
 * by side. The same arguments print the same figures.
 */
import { parseArgs } from "@std/cli/parse-args";
import { coldWave, KiB, mbit, type Policy, type SimConfig, type Topology } from "./config.ts";
import { type Outcome, simulate } from "./simulation.ts";
import { formatTable } from "./table.ts";
import { usage } from "./usage.ts";

const POLICIES: readonly Policy[] = ["rarest", "random", "in-order"];
const TOPOLOGIES: readonly Topology[] = ["graph", "mesh", "tree"];
/** All with all is for few: a host of a thousand would hear a thousand. */
const MESH_HOSTS_MAX = 200;
const HOSTS_MAX = 200_000;

const USAGE = `Usage: main.ts [--hosts 16,64] [--policy rarest,random,in-order] [--topology graph,mesh,tree] [--seed 1]
  [--pieces 256] [--piece-kib 256] [--up-mbit 50] [--down-mbit 50] [--origin-mbit 50] [--latency-ms 0.5] [--slots 16]
  [--concurrent 8] [--neighbours 12] [--liars 0] [--loss 0] [--kill 0] [--restart-ms 0] [--racks 1] [--cross-mbit 0] [--json]`;

const NUMBERS = {
  "seed": 1,
  "pieces": 256,
  "piece-kib": 256,
  "up-mbit": 50,
  "down-mbit": 50,
  "origin-mbit": 50,
  "latency-ms": 0.5,
  "slots": 16,
  "concurrent": 8,
  "neighbours": 12,
  "liars": 0,
  "loss": 0,
  "kill": 0,
  "restart-ms": 0,
  "racks": 1,
  "cross-mbit": 0,
};

function fail(message: string): never {
  console.error(`${message}\n${USAGE}`);
  Deno.exit(2);
}

function choices<T extends string>(text: string | undefined, all: readonly T[], name: string): readonly T[] {
  if (text === undefined) return all;
  return text.split(",").map((one) =>
    all.find((known) => known === one) ?? fail(`Cannot use --${name} ${one}: want one of ${all.join(" ")}`)
  );
}

function readArgs(args: string[]) {
  const options: Record<string, unknown> = parseArgs(args, {
    string: ["hosts", "policy", "topology", ...Object.keys(NUMBERS)],
    boolean: ["json", "help"],
    unknown: (name) => fail(`Cannot use ${name}: no such option`),
  });
  if (options.help === true) {
    console.log(USAGE);
    Deno.exit(0);
  }
  const text = (name: string) => options[name] === undefined ? undefined : String(options[name]);
  const number = (name: keyof typeof NUMBERS) => {
    const value = Number(text(name) ?? NUMBERS[name]);
    return Number.isFinite(value) && value >= 0 ? value : fail(`Cannot use --${name} ${text(name)}: want a number`);
  };
  const hosts = (text("hosts") ?? "16").split(",").map((one) => {
    const count = Number(one);
    if (Number.isInteger(count) && count >= 1 && count <= HOSTS_MAX) return count;
    return fail(`Cannot use --hosts ${one}: want 1 to ${HOSTS_MAX}`);
  });
  return {
    hosts,
    policies: choices(text("policy"), POLICIES, "policy"),
    topologies: choices(text("topology"), TOPOLOGIES, "topology"),
    number,
    json: options.json === true,
  };
}

function configOf(
  number: (name: keyof typeof NUMBERS) => number,
  { hosts, policy, topology }: { hosts: number; policy: Policy; topology: Topology },
): SimConfig {
  const pieceLength = number("piece-kib") * KiB;
  const contentLength = number("pieces") * pieceLength;
  const originRate = mbit(number("origin-mbit"));
  const [up, down] = [mbit(number("up-mbit")), mbit(number("down-mbit"))];
  const halfMs = contentLength / originRate / 2;
  const degree = topology === "mesh" ? Math.max(2, hosts - 1) : number("neighbours");
  return coldWave(hosts, {
    seed: number("seed"),
    pieceLength,
    contentLength,
    originRate,
    upRate: () => up,
    downRate: () => down,
    latencyMs: number("latency-ms"),
    slots: number("slots"),
    concurrent: number("concurrent"),
    liars: number("liars"),
    loss: number("loss"),
    kills: number("kill") === 0 ? [] : [{ atMs: halfMs, count: number("kill"), backAfterMs: null }],
    restarts: number("restart-ms") === 0 ? [] : [{ atMs: halfMs, awayMs: number("restart-ms") }],
    racks: number("racks"),
    crossRate: number("cross-mbit") === 0 ? Infinity : mbit(number("cross-mbit")),
    policy,
    topology,
    scheduler: { neighbours: degree, sourceConnectionsPerTask: 4, hostTimeoutMs: 10_000 },
    endMs: 10 * 60_000 + 20 * contentLength / Math.min(originRate, up, down),
  });
}

function main(args: string[]): void {
  const { hosts, policies, topologies, number, json } = readArgs(args);
  const rows: [string, Outcome][] = [];
  for (const count of hosts) {
    for (const topology of topologies) {
      if (topology === "mesh" && count > MESH_HOSTS_MAX && topologies.length > 1) continue;
      for (const policy of policies) {
        if (number("liars") >= count) fail(`Cannot use --liars ${number("liars")}: want fewer than hosts`);
        const outcome = simulate(configOf(number, { hosts: count, policy, topology }));
        rows.push([`${count} ${topology} ${policy}`, outcome]);
        const facts = { hosts: count, topology, policy, seed: number("seed"), pieces: number("pieces") };
        if (json) console.log(JSON.stringify({ ...facts, ...outcome, ...usage() }));
      }
    }
  }
  if (!json) console.log(formatTable(rows));
  if (rows.some(([, { incomplete, wrong }]) => incomplete + wrong > 0)) Deno.exit(1);
}

if (import.meta.main) main(Deno.args);
