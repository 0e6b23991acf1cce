/** What the client itself costs: whole processes, with a daemon that runs, beside curl. */
import { denoRun } from "../testutil/process.ts";
import { median } from "./bound.ts";
import { MANAGER, ORIGIN, type Stage, type Workload } from "./contestant.ts";
import { LacewingSwarm } from "./lacewing.ts";
import { BenchNetwork } from "./network.ts";
import { startOrigin } from "./origin.ts";
import { BenchProcess } from "./processes.ts";

const HOST = "p1";

/** Milliseconds of a process from its start to its end; medians. */
export interface ClientResult {
  readonly size: number;
  readonly versionMs: number;
  /** The daemon reads it from the origin. */
  readonly newMs: number;
  /** The daemon has it. */
  readonly heldMs: number;
  readonly curlMs: number;
}

export async function runClientBench(
  { size, count, folder, daemon, manager, workload: make }: {
    size: number;
    count: number;
    folder: string;
    daemon: Stage["daemon"];
    manager: Stage["manager"];
    workload: (sizes: readonly number[]) => Promise<Workload>;
  },
): Promise<ClientResult> {
  const workload = await make(new Array<number>(count).fill(size));
  const links = [MANAGER, ORIGIN, HOST].map((name) => ({ name, up: 0, down: 0 }));
  await using network = await BenchNetwork.create({ hosts: links });
  await Deno.mkdir(folder);
  const stage: Stage = {
    network,
    workload,
    hosts: [HOST],
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
  const client = [Deno.execPath(), ...denoRun("cli/main.ts")];
  const timed = async (command: readonly string[]) => {
    const beganMs = performance.now();
    await using process = new BenchProcess("client", network.on(HOST, command));
    const code = await process.ended;
    if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${process.output()}`);
    return performance.now() - beganMs;
  };
  const flags = ["-O", `${folder}/out`, "--daemon-sock", `${folder}/${HOST}/d.sock`, "--logdir", `${folder}/log`];
  const rows: Omit<ClientResult, "size">[] = [];
  for (const { name } of workload.files) {
    const download = [...client, origin.url(name), ...flags];
    rows.push({
      versionMs: await timed([...client, "version"]),
      newMs: await timed(download),
      heldMs: await timed(download),
      curlMs: await timed(["curl", "-sf", "-o", `${folder}/curl`, origin.url(name)]),
    });
  }
  const of = (key: keyof Omit<ClientResult, "size">) => median(rows.map((row) => row[key]));
  return { size, versionMs: of("versionMs"), newMs: of("newMs"), heldMs: of("heldMs"), curlMs: of("curlMs") };
}
