/** The star as a contestant: every host fetches everything from the origin by curl. */
import type { Contestant, FetchOptions, Running, Stage, Totals } from "./contestant.ts";
import { type BenchOrigin, startOrigin } from "./origin.ts";
import { BenchProcess } from "./processes.ts";

const FILES_AT_ONCE = 8;
const SAMPLE_MS = 250;

export const curl: Contestant = {
  name: "curl",
  async start(stage) {
    return new CurlStar(stage, await startOrigin(stage.network, stage));
  },
};

class CurlStar implements Running {
  readonly #processes = new Map<string, BenchProcess>();
  /** CPU seconds of those that have ended. */
  #cpuSeconds = 0;

  constructor(private readonly stage: Stage, private readonly origin: BenchOrigin) {}

  async fetch(host: string, { onProgress }: FetchOptions): Promise<void> {
    const { network, workload, folder } = this.stage;
    await Deno.mkdir(`${folder}/${host}`, { recursive: true });
    const outputs = workload.files.flatMap(({ name }) => ["-o", `${folder}/${host}/${name}`, this.origin.url(name)]);
    const parallel = workload.files.length > 1 ? ["--parallel", "--parallel-max", String(FILES_AT_ONCE)] : [];
    // bash's time, because a process that has ended leaves no entry in /proc.
    const timed = ["bash", "-c", 'TIMEFORMAT="cpu %U %S"; time "$@"', "bash"];
    const process = new BenchProcess(
      `curl on ${host}`,
      network.on(host, [...timed, "curl", "-sSf", ...parallel, ...outputs]),
    );
    this.#processes.set(host, process);
    const timer = setInterval(() => onProgress(this.#bytesOf(host)), SAMPLE_MS);
    try {
      const code = await process.ended;
      if (code !== 0) throw new Error(`curl on ${host} ended with ${code}: ${process.output()}`);
      onProgress(workload.size);
    } finally {
      clearInterval(timer);
      const [, user, system] = /^cpu ([\d.]+) ([\d.]+)$/m.exec(process.output()) ?? [];
      this.#cpuSeconds += Number(user ?? 0) + Number(system ?? 0);
    }
  }

  // deno-lint-ignore require-await
  async totals(): Promise<Totals> {
    return {
      sourceBytes: this.origin.sentBytes(),
      peerBytes: 0,
      cpuSeconds: this.#cpuSeconds + this.origin.process.cpuSeconds(),
      sourceCpuSeconds: this.origin.process.cpuSeconds(),
      rssMaxBytes: null,
    };
  }

  paths(host: string): readonly string[] {
    return this.stage.workload.files.map(({ name }) => `${this.stage.folder}/${host}/${name}`);
  }

  async kill(host: string): Promise<void> {
    await this.#processes.get(host)?.kill();
  }

  async restart(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {
    for (const process of this.#processes.values()) await process[Symbol.asyncDispose]();
    await this.origin[Symbol.asyncDispose]();
  }

  #bytesOf(host: string): number {
    return this.paths(host).reduce((total, path) => {
      try {
        return total + Deno.statSync(path).size;
      } catch {
        return total;
      }
    }, 0);
  }
}
