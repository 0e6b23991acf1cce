/**
 * Runs one scenario: makes its network, calibrates its links, and lets each
 * contestant bring the workload to every host in turn.
 */
import { fluidBound, type Rates, sum } from "./bound.ts";
import type { Calibration } from "./calibrate.ts";
import { type Contestant, MANAGER, ORIGIN, type Running, type Stage, type Workload } from "./contestant.ts";
import { BenchNetwork, type HostLink } from "./network.ts";
import { CpuSampler } from "./processes.ts";
import type { Scenario, ScenarioSettings } from "./scenarios.ts";
import { checkHosts } from "./workload.ts";

const CHURN_PAUSE_MS = 1000;

export interface HostFinish {
  readonly host: string;
  /** Seconds from the beginning of the host's wave. */
  readonly seconds: number;
  readonly wave: number;
  /** Seconds since the beginning and bytes held, in order of time. */
  readonly progress: readonly (readonly [number, number])[];
  /** It was killed, and came back. */
  readonly killed: boolean;
}

export interface Trial {
  readonly contestant: Contestant["name"];
  readonly finishes: readonly HostFinish[];
  readonly sourceBytes: number;
  readonly peerBytes: number | null;
  readonly cpuSeconds: number;
  readonly busiestCore: number;
  readonly rssMaxBytes: number | null;
  /** Bytes that all links of source and hosts sent, headers included. */
  readonly wireBytes: number;
  /** Bytes from the first rack to the second; null without racks. */
  readonly trunkBytes: number | null;
  /** Share of the time that all these links could have sent for, 0 to 1. */
  readonly utilisation: number;
  /** What went wrong: hosts whose files are not right. */
  readonly wrong: readonly string[];
}

export interface ScenarioResult {
  readonly scenario: { readonly id: string; readonly title: string };
  readonly peers: number;
  readonly size: number;
  readonly bound: number;
  readonly rates: { readonly sourceUp: number; readonly hosts: Readonly<Record<string, Rates>> };
  readonly trials: readonly Trial[];
}

export interface BenchContext {
  readonly calibration: Calibration;
  readonly contestants: readonly Contestant[];
  readonly rounds: number;
  /** Everything of this run goes into it. */
  readonly folder: string;
  readonly keep: boolean;
  readonly verbose: boolean;
  readonly daemon: Stage["daemon"];
  readonly manager: Stage["manager"];
  readonly workload: (sizes: readonly number[]) => Promise<Workload>;
  readonly signal: AbortSignal;
}

export async function runScenario(
  scenario: Scenario,
  settings: ScenarioSettings,
  context: BenchContext,
): Promise<ScenarioResult> {
  const hosts = scenario.hosts(settings);
  const workload = await context.workload(scenario.sizes(settings));
  const origin: HostLink = { name: ORIGIN, up: scenario.originUp, down: 0 };
  const seeds = scenario.seed === undefined ? [] : [scenario.seed];
  const all = [{ name: MANAGER, up: 0, down: 0 }, origin, ...seeds, ...hosts];
  await using network = await BenchNetwork.create({ hosts: all, trunk: scenario.trunk ?? 0 });
  const rates: Record<string, Rates> = {};
  for (const host of [origin, ...seeds, ...hosts]) {
    rates[host.name] = await context.calibration.rates(network, host, MANAGER);
  }
  const source = scenario.seed?.name ?? ORIGIN;
  const sourceUp = rates[source]!.up;
  const names = hosts.map(({ name }) => name);
  const result = {
    scenario: { id: scenario.id, title: scenario.title },
    peers: hosts.length,
    size: workload.size,
    bound: boundOf(scenario, { size: workload.size, sourceUp, hosts: names.map((name) => rates[name]!) }),
    rates: { sourceUp, hosts: Object.fromEntries(names.map((name) => [name, rates[name]!])) },
    trials: [] as Trial[],
  };
  const rackOf = new Map(hosts.map(({ name, rack = 0 }) => [name, rack]));
  for (let round = 0; round < context.rounds; round++) {
    for (const contestant of context.contestants) {
      context.signal.throwIfAborted();
      const folder = `${context.folder}/${scenario.id}-${round}-${contestant.name}`;
      await Deno.mkdir(folder);
      const stage: Stage = {
        network,
        workload,
        hosts: names,
        seed: scenario.seed?.name ?? null,
        idcOf: (host) => scenario.trunk === undefined ? "" : `rack-${rackOf.get(host) ?? 0}`,
        folder,
        verbose: context.verbose,
        daemon: context.daemon,
        manager: context.manager,
      };
      result.trials.push(await runTrial(contestant, scenario, { stage, source, rates }));
      if (!context.keep) await Deno.remove(folder, { recursive: true });
    }
  }
  return result;
}

/** Waves: each wave's own bound, where those before it serve too. */
function boundOf(
  scenario: Scenario,
  { size, sourceUp, hosts }: { size: number; sourceUp: number; hosts: readonly Rates[] },
): number {
  return sum(
    wavesOf(hosts, scenario.waves ?? 1).map((wave, index, waves) => {
      const holdersUp = sum(waves.slice(0, index).flat().map(({ up }) => up));
      return fluidBound({ size, sourceUp, hosts: wave, holdersUp });
    }),
  );
}

export function wavesOf<T>(items: readonly T[], count: number): T[][] {
  const waves = Array.from({ length: Math.min(count, items.length) }, (): T[] => []);
  for (const [index, item] of items.entries()) waves[Math.floor(index * waves.length / items.length)]!.push(item);
  return waves;
}

async function runTrial(
  contestant: Contestant,
  scenario: Scenario,
  { stage, source, rates }: { stage: Stage; source: string; rates: Readonly<Record<string, Rates>> },
): Promise<Trial> {
  await using running = await contestant.start(stage);
  const before = {
    totals: await running.totals(),
    links: await stage.network.counters(),
    trunk: await stage.network.trunkBytes(),
  };
  const cpu = new CpuSampler();
  const beganMs = performance.now();
  const finishes: HostFinish[] = [];
  for (const [wave, hosts] of wavesOf(stage.hosts, scenario.waves ?? 1).entries()) {
    finishes.push(...await runWave(running, hosts, { scenario, stage, wave, beganMs }));
  }
  const seconds = (performance.now() - beganMs) / 1000;
  const busiestCore = cpu.read().busiest;
  const totals = await running.totals();
  const links = await stage.network.counters();
  const trunk = await stage.network.trunkBytes();
  const senders = [source, ...stage.hosts];
  const wireBytes = sum(senders.map((host) => links.get(host)!.sent - before.links.get(host)!.sent));
  return {
    contestant: contestant.name,
    finishes,
    sourceBytes: totals.sourceBytes - before.totals.sourceBytes,
    peerBytes: totals.peerBytes,
    cpuSeconds: totals.cpuSeconds - before.totals.cpuSeconds,
    busiestCore,
    rssMaxBytes: totals.rssMaxBytes,
    wireBytes,
    trunkBytes: scenario.trunk === undefined ? null : trunk.there - before.trunk.there,
    utilisation: wireBytes / (seconds * sum(senders.map((host) => rates[host]!.up))),
    wrong: await checkHosts(stage.workload, finishes.map(({ host }) => ({ host, paths: running.paths(host) }))),
  };
}

interface WaveContext {
  readonly scenario: Scenario;
  readonly stage: Stage;
  readonly wave: number;
  readonly beganMs: number;
}

async function runWave(running: Running, hosts: readonly string[], context: WaveContext): Promise<HostFinish[]> {
  const { scenario: { churn }, stage, wave, beganMs } = context;
  const waveMs = performance.now();
  const victims = churn === undefined ? [] : hosts.slice(-Math.floor(hosts.length * churn.killed));
  const back = churn === undefined ? [] : victims.slice(0, Math.floor(hosts.length * churn.back));
  const half = Promise.withResolvers<void>();
  const held = new Map<string, number>();
  const fetchOne = async (host: string, killed: boolean): Promise<HostFinish> => {
    const progress: [number, number][] = [];
    await running.fetch(host, {
      onProgress: (bytes) => {
        progress.push([(performance.now() - beganMs) / 1000, bytes]);
        held.set(host, bytes);
        if (sum([...held.values()]) >= hosts.length * stage.workload.size / 2) half.resolve();
      },
    });
    return { host, seconds: (performance.now() - waveMs) / 1000, wave, progress, killed };
  };
  const fetches = hosts.map((host) => {
    const work = fetchOne(host, false);
    return victims.includes(host) ? work.catch(() => null) : work;
  });
  const disturb = async (): Promise<HostFinish[]> => {
    await half.promise;
    await Promise.all(victims.map((host) => running.kill(host)));
    await new Promise((resolve) => setTimeout(resolve, CHURN_PAUSE_MS));
    return await Promise.all(back.map(async (host) => {
      await running.restart(host);
      return await fetchOne(host, true);
    }));
  };
  const [finished, returned] = await Promise.all([
    Promise.all(fetches.filter((_, index) => !victims.includes(hosts[index]!))),
    victims.length === 0 ? [] : disturb(),
  ]);
  return [...finished.filter((it) => it !== null), ...returned];
}
