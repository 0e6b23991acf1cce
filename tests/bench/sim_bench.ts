/**
 * The simulator and the scheduler's limits as benches: runs `tests/sim/main.ts`
 * and `tests/sim/scale.ts`, each run in a process of its own, so that its CPU
 * and memory are its own and V8 gets the flags that a large run needs.
 * Needs neither root nor other programs.
 */
import { denoFlags, mapInUse, projectRoot } from "../../.ci/deno.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import { formatBytes } from "../../peer/core/units.ts";
import type { ScaleResult } from "../sim/scale_lines.ts";
import type { Outcome } from "../sim/simulation.ts";
import { formatTable } from "../sim/table.ts";
import type { Usage } from "../sim/usage.ts";
import { runToEnd } from "../testutil/child.ts";

/** Up to so many hosts the other ways of distribution are run too, for comparison. */
const COMPARED_HOSTS_MAX = 1_000;
/** Most of a run's objects die young, but not before a small space for new ones is full. */
const SIM_FLAGS = "--max-old-space-size=16000,--min-semi-space-size=64,--max-semi-space-size=256";
const WAYS = [["graph", "rarest"], ["graph", "in-order"], ["tree", "rarest"]] as const;

/** One simulated wave; a time is null when not all hosts came to an end. */
export type SimRun = Outcome & Usage & {
  readonly hosts: number;
  readonly topology: string;
  readonly policy: string;
  readonly pieces: number;
};

/** Runs a cold wave for each number of hosts. */
export async function runSim(
  { hosts, pieces, signal }: { hosts: readonly number[]; pieces: number; signal: AbortSignal },
): Promise<SimRun[]> {
  const runs: SimRun[] = [];
  for (const count of hosts) {
    for (const [topology, policy] of count > COMPARED_HOSTS_MAX ? WAYS.slice(0, 1) : WAYS) {
      const way = ["--hosts", `${count}`, "--pieces", `${pieces}`, "--topology", topology, "--policy", policy];
      runs.push(await runJson<SimRun>("tests/sim/main.ts", SIM_FLAGS, { args: way, signal }));
    }
  }
  return runs;
}

/** @param options.members of each wave through the state machine; `sockets` are real WebSockets */
export function runScale(
  { members, sockets, signal }: { members: readonly number[]; sockets: number; signal: AbortSignal },
): Promise<ScaleResult> {
  const args = ["--members", members.join(","), "--sockets", `${sockets}`];
  return runJson("tests/sim/scale.ts", "--expose-gc", { args, signal });
}

export function simLines(runs: readonly SimRun[]): string {
  const nameOf = ({ hosts, topology, policy }: SimRun) => `${hosts} ${topology} ${policy}`;
  const cost = (run: SimRun) =>
    `   ${nameOf(run)}: ${run.cpuSeconds.toFixed(1)} CPU s, peak memory ` +
    (run.rssMaxBytes === null ? "unknown" : formatBytes(run.rssMaxBytes));
  const pieces = [...new Set(runs.map((run) => run.pieces))].join(" and ");
  return [
    `Simulator: a cold wave of ${pieces} pieces, all links 50 Mbit/s; the bound is what no way of distribution beats`,
    formatTable(runs.map((run) => [nameOf(run), run])),
    ...runs.map(cost),
    "",
  ].join("\n");
}

async function runJson<T>(
  entry: string,
  v8Flags: string,
  { args, signal }: { args: readonly string[]; signal: AbortSignal },
): Promise<T> {
  const run = ["run", "-A", `--v8-flags=${v8Flags}`, ...denoFlags(mapInUse()), `${projectRoot()}/${entry}`];
  const { stdout, stderr } = await runToEnd([...run, ...args, "--json"], { signal });
  // A run in which hosts were left over says so in its figures, and by its code.
  const line = stdout.trim().split("\n").at(-1) ?? "";
  if (line.startsWith("{")) return JSON.parse(line);
  throw new LacewingError("unknown", `Cannot run ${entry}: ${stderr.trim() || "it printed nothing"}`);
}
