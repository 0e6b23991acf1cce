/**
 * Scenario I: one host to one host over links without limits, so that the CPU
 * is the limit. Beside it curl from nginx, and aria2 to aria2.
 */
import { bittorrent } from "./bittorrent.ts";
import { type Contestant, MANAGER, ORIGIN, type Stage, type Workload } from "./contestant.ts";
import { curl } from "./curl.ts";
import { LacewingSwarm } from "./lacewing.ts";
import { LentMemory } from "./lent_memory.ts";
import { BenchNetwork } from "./network.ts";
import { startOrigin } from "./origin.ts";
import { checkHosts } from "./workload.ts";

const SENDER = "p1";
const RECEIVER = "p2";
const GB = 1e9;

export interface PairResult {
  readonly contestant: string;
  readonly size: number;
  /** Bytes per second. */
  readonly rate: number;
  /** CPU seconds per GB of both ends, and of the sending one where it can be told apart. */
  readonly cpuSecondsPerGb: number;
  readonly senderCpuSecondsPerGb: number | null;
  readonly rssMaxBytes: number | null;
  /** Memory of a daemon that has done nothing yet. */
  readonly rssIdleBytes: number | null;
  /** The longest time that an event loop of one of both ends was held up. */
  readonly stallSeconds: number | null;
  readonly wrong: readonly string[];
}

export interface PairOptions {
  readonly sizes: readonly number[];
  readonly rounds: number;
  readonly against: readonly string[];
  readonly folder: string;
  readonly daemon: Stage["daemon"];
  readonly manager: Stage["manager"];
  readonly workload: (sizes: readonly number[]) => Promise<Workload>;
}

export async function runPair(
  { sizes, rounds, against, folder, daemon, manager, workload: make }: PairOptions,
): Promise<PairResult[]> {
  const links = [MANAGER, ORIGIN, SENDER, RECEIVER].map((name) => ({ name, up: 0, down: 0 }));
  await using network = await BenchNetwork.create({ hosts: links });
  const rivals = [curl, bittorrent].filter(({ name }) => against.includes(name));
  const results: PairResult[] = [];
  await Deno.mkdir(folder);
  for (const size of sizes) {
    const workload = await make([size]);
    for (let round = 0; round < rounds; round++) {
      const stage = (name: string, hosts: string[]): Stage => ({
        network,
        workload,
        hosts,
        seed: null,
        idcOf: () => "",
        folder: `${folder}/${size}-${round}-${name}`,
        verbose: false,
        daemon,
        manager,
      });
      results.push(await inFolder(stage("lacewing", [SENDER, RECEIVER]), ownPair));
      for (const rival of rivals) {
        results.push(await inFolder(stage(rival.name, [RECEIVER]), (it) => rivalPair(rival, it)));
      }
    }
  }
  return results;
}

async function inFolder(stage: Stage, act: (stage: Stage) => Promise<PairResult>): Promise<PairResult> {
  await Deno.mkdir(stage.folder);
  try {
    return await act(stage);
  } finally {
    await Deno.remove(stage.folder, { recursive: true });
  }
}

/** What the measured part finds: memory for its file, and a disk that has all that was written before. */
async function lent({ folder, workload: { size } }: Stage): Promise<LentMemory> {
  const memory = await LentMemory.of(`${folder}/memory`, { size });
  // A kernel with much to write lets whoever writes next sleep.
  await new Deno.Command("sync").output();
  return memory;
}

/** The receiver may ask nobody but the sender. */
async function ownPair(stage: Stage): Promise<PairResult> {
  await using origin = await startOrigin(stage.network, stage);
  await using swarm = new LacewingSwarm(stage, origin);
  await swarm.start();
  const [file] = stage.workload.files;
  const url = origin.url(file!.name);
  await swarm.download(SENDER, url, () => {});
  const figures = (name: string) => Promise.all([SENDER, RECEIVER].map((host) => swarm.figure(host, name)));
  using memory = await lent(stage);
  await figures("loop_stall_seconds");
  const cpuOf = (host: string) => swarm.daemons.get(host)!.cpuSeconds();
  const before = { sender: cpuOf(SENDER), receiver: cpuOf(RECEIVER) };
  const beganMs = performance.now();
  const { path } = await swarm.download(RECEIVER, url, (done) => memory.release(done), {
    disable_back_source: true,
  });
  const seconds = (performance.now() - beganMs) / 1000;
  const sender = cpuOf(SENDER) - before.sender;
  const receiver = cpuOf(RECEIVER) - before.receiver;
  const stallSeconds = Math.max(...await figures("loop_stall_seconds"));
  const { size } = stage.workload;
  return {
    contestant: "lacewing",
    size,
    rate: size / seconds,
    cpuSecondsPerGb: (sender + receiver) / (size / GB),
    senderCpuSecondsPerGb: sender / (size / GB),
    rssMaxBytes: Math.max(...[SENDER, RECEIVER].map((host) => swarm.daemons.get(host)!.rssMaxBytes())),
    rssIdleBytes: swarm.rssIdleBytes,
    stallSeconds,
    wrong: await checkHosts(stage.workload, [{ host: RECEIVER, paths: [path] }]),
  };
}

async function rivalPair(rival: Contestant, stage: Stage): Promise<PairResult> {
  await using running = await rival.start(stage);
  const before = await running.totals();
  using memory = await lent(stage);
  const beganMs = performance.now();
  await running.fetch(RECEIVER, { onProgress: (done) => memory.release(done) });
  const seconds = (performance.now() - beganMs) / 1000;
  const { cpuSeconds, sourceCpuSeconds, rssMaxBytes } = await running.totals();
  const { size } = stage.workload;
  return {
    contestant: rival.name,
    size,
    rate: size / seconds,
    cpuSecondsPerGb: (cpuSeconds - before.cpuSeconds) / (size / GB),
    senderCpuSecondsPerGb: sourceCpuSeconds === null
      ? null
      : (sourceCpuSeconds - (before.sourceCpuSeconds ?? 0)) / (size / GB),
    rssMaxBytes,
    rssIdleBytes: null,
    stallSeconds: null,
    wrong: await checkHosts(stage.workload, [{ host: RECEIVER, paths: running.paths(RECEIVER) }]),
  };
}
