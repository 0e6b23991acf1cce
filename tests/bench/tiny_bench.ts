/**
 * Scenario H: what a tiny content costs in time. Daemons are up and warm, the
 * content is new to everybody; beside it curl for the same bytes from the same origin.
 */
import { median } from "./bound.ts";
import { MANAGER, ORIGIN, type Stage, type Workload } from "./contestant.ts";
import { LacewingSwarm } from "./lacewing.ts";
import { BenchNetwork } from "./network.ts";
import { startOrigin } from "./origin.ts";
import { BenchProcess } from "./processes.ts";

export const TINY_SIZES = [1, 1024, 1024 * 1024] as const;
/** Contents that make code warm before anything is measured. */
const WARM_UP_COUNT = 5;

/** Milliseconds; medians over the contents. */
export interface TinyResult {
  readonly size: number;
  /** One host, which reads the origin. */
  readonly oneMs: number;
  /** The last of all hosts that ask in the same moment. */
  readonly allMs: number;
  /** The content is on the host. */
  readonly heldMs: number;
  /** One curl, by its own clock: from its start to the last byte, without the process. */
  readonly curlMs: number;
  /** The last of a curl on every host, with their processes. */
  readonly curlAllMs: number;
}

export interface TinyOptions {
  readonly peers: number;
  /** Contents of each size. */
  readonly count: number;
  readonly folder: string;
  readonly daemon: Stage["daemon"];
  readonly manager: Stage["manager"];
  readonly workload: (sizes: readonly number[]) => Promise<Workload>;
}

export async function runTiny(
  { peers, count, folder, daemon, manager, workload: make }: TinyOptions,
): Promise<TinyResult[]> {
  const hosts = Array.from({ length: peers }, (_, index) => `p${index + 1}`);
  const each = WARM_UP_COUNT + count;
  // Two series of each size: one host alone, and all at once.
  const workload = await make(TINY_SIZES.flatMap((size) => new Array<number>(2 * each).fill(size)));
  const links = [MANAGER, ORIGIN, ...hosts].map((name) => ({ name, up: 0, down: 0 }));
  await using network = await BenchNetwork.create({ hosts: links });
  await Deno.mkdir(folder);
  const stage: Stage = {
    network,
    workload,
    hosts,
    seed: null,
    idcOf: () => "",
    folder,
    verbose: false,
    daemon,
    manager,
  };
  await using origin = await startOrigin(network, stage);
  await using swarm = new LacewingSwarm(stage, origin);
  await swarm.start();
  const timed = async (host: string, name: string) => {
    const beganMs = performance.now();
    await swarm.download(host, origin.url(name), () => {});
    return performance.now() - beganMs;
  };
  const results: TinyResult[] = [];
  for (const [index, size] of TINY_SIZES.entries()) {
    const names = workload.files.slice(index * 2 * each, (index + 1) * 2 * each).map(({ name }) => name);
    const rows: Omit<TinyResult, "size">[] = [];
    for (let at = 0; at < each; at++) {
      const [alone, common] = [names[at]!, names[each + at]!];
      const host = hosts[at % hosts.length]!;
      rows.push({
        oneMs: await timed(host, alone),
        curlMs: await curlMs(network, host, origin.url(alone)),
        allMs: Math.max(...await Promise.all(hosts.map((it) => timed(it, common)))),
        heldMs: await timed(host, common),
        curlAllMs: await curlAll(network, hosts, origin.url(common)),
      });
    }
    const of = (key: keyof Omit<TinyResult, "size">) => median(rows.slice(WARM_UP_COUNT).map((row) => row[key]));
    results.push({
      size,
      oneMs: of("oneMs"),
      allMs: of("allMs"),
      heldMs: of("heldMs"),
      curlMs: of("curlMs"),
      curlAllMs: of("curlAllMs"),
    });
  }
  return results;
}

async function curlMs(network: BenchNetwork, host: string, url: string): Promise<number> {
  const command = ["curl", "-sf", "-o", "/dev/null", "-w", "%{time_total}\n", url];
  await using process = new BenchProcess("curl", network.on(host, command));
  return Number(await process.line((line) => /^[\d.]+$/.test(line))) * 1000;
}

async function curlAll(network: BenchNetwork, hosts: readonly string[], url: string): Promise<number> {
  const beganMs = performance.now();
  await Promise.all(hosts.map((host) => curlMs(network, host, url)));
  return performance.now() - beganMs;
}
