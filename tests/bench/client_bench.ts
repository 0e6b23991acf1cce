/**
 * The client beside curl, wget and aria2c: whole processes from nginx on
 * loopback, in turn, so that all meet the same moods of the machine. Ours is
 * the single-file bundle, with a daemon that has the content, with one that
 * must fetch it, and without any.
 *
 * CPU is that of all processes concerned but nginx: for the client with a
 * daemon both. Every output is compared with the origin's size.
 */
import { denoRun } from "../testutil/process.ts";
import { median } from "./bound.ts";
import type { BenchFile, Workload } from "./contestant.ts";
import { startOrigin } from "./origin.ts";
import { BenchProcess } from "./processes.ts";

export const CLIENTS = ["curl", "wget", "aria2c", "lacewing, new", "lacewing, held", "lacewing alone"] as const;
export type Client = (typeof CLIENTS)[number];

/** Above this each run has a daemon of its own, whose folder is removed after it. */
const LARGE = 256 * 1024 * 1024;
/** Runs before anything counts: code caches, name caches, the page cache. */
const WARM_UP_COUNT = 2;
const TICKS = 100;
/** How often a process is looked at for the most memory that it holds. */
const LOOK_EVERY_MS = 2;
const OWN_COMMAND = Deno.build.os === "linux" ? Deno.readTextFileSync("/proc/self/cmdline") : "";

export interface ClientRun {
  readonly ms: number;
  readonly cpuMs: number;
  readonly rssMaxBytes: number;
}

/** The runs of one client for one size. */
export interface ClientResult {
  readonly client: Client;
  readonly size: number;
  readonly runs: readonly ClientRun[];
}

export interface ClientBenchOptions {
  readonly sizes: readonly number[];
  /** Runs for a size. */
  readonly count: (size: number) => number;
  readonly folder: string;
  /** Those that are installed. */
  readonly clients: readonly Client[];
  readonly workload: (sizes: readonly number[]) => Promise<Workload>;
}

/** What all clients of the bench have: the origin, our program, and where outputs go. */
interface Desk {
  readonly folder: string;
  readonly program: string;
  readonly url: (name: string) => string;
}

export async function runClientBench(options: ClientBenchOptions): Promise<ClientResult[]> {
  const { sizes, count, folder, clients } = options;
  const workload = await options.workload(sizes);
  await Deno.mkdir(folder);
  const make = new BenchProcess("compile", [
    Deno.execPath(),
    ...denoRun(".ci/compile.ts"),
    ...["--bundle", "--out", `${folder}/dist`],
  ]);
  if (await make.ended !== 0) throw new Error(`Cannot make the bundle: ${make.output()}`);
  const address = `127.0.0.1:${freePort()}`;
  await using origin = await startOrigin({ address: () => address, on: (_, words) => [...words] }, {
    workload,
    folder,
  });
  const desk: Desk = { folder, program: `${folder}/dist/lacewing`, url: (name) => origin.url(name) };
  const results: ClientResult[] = [];
  for (const file of workload.files) {
    const runs = new Map<Client, ClientRun[]>(clients.map((client) => [client, []]));
    await using shared = file.size >= LARGE ? null : await BenchDaemon.start(desk, `${file.size}`);
    for (let round = -WARM_UP_COUNT; round < count(file.size); round++) {
      // Large contents are kept once only, and warm nothing up.
      if (round < 0 && shared === null) continue;
      await using own = shared === null ? await BenchDaemon.start(desk, `${file.size}-${round}`) : null;
      for (const client of clients) {
        // A query makes a new content of it, for us alone.
        const url = desk.url(`${file.name}?${round}`);
        const daemon = client === "lacewing, new" || client === "lacewing, held" ? shared ?? own : null;
        const run = await measure(commandOf(client, desk, { url, daemon }), desk, { file, daemon });
        if (round >= 0) runs.get(client)!.push(run);
      }
    }
    for (const [client, own] of runs) results.push({ client, size: file.size, runs: own });
  }
  return results;
}

/** Medians, and of the CPU the mean. */
export function medians({ runs }: ClientResult): ClientRun {
  const of = (key: keyof ClientRun) => runs.map((run) => run[key]);
  // One run's CPU is counted in ticks of 10 ms; their sum is right.
  const cpuMs = of("cpuMs").reduce((sum, value) => sum + value, 0) / runs.length;
  return { ms: median(of("ms")), cpuMs, rssMaxBytes: median(of("rssMaxBytes")) };
}

function commandOf(client: Client, desk: Desk, { url, daemon }: { url: string; daemon: BenchDaemon | null }): string[] {
  const out = outputOf(desk);
  switch (client) {
    case "curl":
      return ["curl", "-sf", "-o", out, url];
    case "wget":
      return ["wget", "-q", "-O", out, url];
    case "aria2c":
      return ["aria2c", "-q", "--file-allocation=none", "-x4", "-s4", "-d", desk.folder, "-o", "out", url];
    case "lacewing alone": {
      // Nothing can listen there, so no daemon comes up.
      const nowhere = ["--daemon-sock", "/dev/null/none"];
      return [desk.program, url, "-O", out, "--ratelimit", "0", "--logdir", `${desk.folder}/log`, ...nowhere];
    }
    default:
      return daemon!.command(desk, url);
  }
}

async function measure(
  [command, ...args]: string[],
  desk: Desk,
  { file, daemon }: { file: BenchFile; daemon: BenchDaemon | null },
): Promise<ClientRun> {
  const out = outputOf(desk);
  await Deno.remove(out).catch(() => {});
  const before = childrenCpuMs() + (daemon?.cpuMs() ?? 0);
  const beganMs = performance.now();
  const process = new Deno.Command(command!, { args, stdin: "null", stdout: "null", stderr: "piped" }).spawn();
  const looking = new MemoryWatch(process.pid);
  const { code, stderr } = await process.output();
  const ms = performance.now() - beganMs;
  looking.stop();
  if (code !== 0) {
    throw new Error(`${command} ${args.join(" ")} ended with ${code}: ${new TextDecoder().decode(stderr)}`);
  }
  if ((await Deno.stat(out)).size !== file.size) throw new Error(`${command} gave another size`);
  return {
    ms,
    cpuMs: childrenCpuMs() + (daemon?.cpuMs() ?? 0) - before,
    rssMaxBytes: looking.most + (daemon?.rssMaxBytes() ?? 0),
  };
}

function outputOf({ folder }: Desk): string {
  return `${folder}/out`;
}

/** A daemon alone, from the bundle; its folder goes with it. */
class BenchDaemon implements AsyncDisposable {
  private constructor(private readonly process: BenchProcess, private readonly folder: string) {}

  static async start({ folder, program, url }: Desk, name: string): Promise<BenchDaemon> {
    const home = `${folder}/daemon-${name}`;
    await Deno.mkdir(home);
    const config = ["upload: { tcpListen: { port: 0 } }", "health: { tcpListen: { port: 0 } }"];
    await Deno.writeTextFile(`${home}/client.yaml`, config.join("\n"));
    const flags = ["--config", `${home}/client.yaml`, "--workhome", home, "--daemon-sock", `${home}/sock`];
    const process = new BenchProcess("daemon", [program, "daemon", ...flags, "--logdir", `${home}/log`]);
    await process.line((line) => line.startsWith("ready "));
    const daemon = new BenchDaemon(process, home);
    // The first download of a daemon loads code.
    const first = new BenchProcess("client", daemon.command({ folder, program }, url("warm-up")));
    if (await first.ended !== 0) throw new Error(`Cannot warm the daemon up: ${first.output()}`);
    return daemon;
  }

  command({ program, folder }: Pick<Desk, "program" | "folder">, url: string): string[] {
    const flags = ["--daemon-sock", `${this.folder}/sock`, "--logdir", `${folder}/log`, "--ratelimit", "0"];
    return [program, url, "-O", `${folder}/out`, ...flags];
  }

  cpuMs(): number {
    return this.process.cpuSeconds() * 1000;
  }

  rssMaxBytes(): number {
    return this.process.rssMaxBytes();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process.kill("SIGTERM");
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** The most memory of a process, as far as it was looked at. */
class MemoryWatch {
  most = 0;
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(pid: number) {
    this.#timer = setInterval(() => {
      try {
        // Until it runs its own program it shows the memory of this one.
        if (Deno.readTextFileSync(`/proc/${pid}/cmdline`) === OWN_COMMAND) return;
        const status = Deno.readTextFileSync(`/proc/${pid}/status`);
        this.most = Math.max(this.most, Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024);
      } catch {
        // It has just ended.
      }
    }, LOOK_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** CPU of all processes that this one has started and that have ended. */
function childrenCpuMs(): number {
  const fields = Deno.readTextFileSync("/proc/self/stat").split(") ").at(-1)!.split(" ");
  return (Number(fields[13]) + Number(fields[14])) * (1000 / TICKS);
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
