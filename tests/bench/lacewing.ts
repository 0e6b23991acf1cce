/** Lacewing as a contestant: a manager, and a daemon on every host, asked over their Unix sockets. */
import { stringify } from "@std/yaml";
import { connectDaemon, type DaemonConnection } from "../../peer/ipc/client.ts";
import { denoRun } from "../testutil/process.ts";
import type { Contestant, FetchOptions, Running, Stage, Totals } from "./contestant.ts";
import { MANAGER } from "./contestant.ts";
import { type BenchOrigin, startOrigin } from "./origin.ts";
import { BenchProcess } from "./processes.ts";

/** Contents that one host asks for at once. */
const FILES_AT_ONCE = 8;
const PORT = 65002;
const HEALTH_PORT = 40901;

export const lacewing: Contestant = {
  name: "lacewing",
  async start(stage) {
    await using stack = new AsyncDisposableStack();
    const origin = stack.use(await startOrigin(stage.network, stage));
    const swarm = stack.use(new LacewingSwarm(stage, origin));
    await swarm.start();
    const owned = stack.move();
    swarm.onDispose = () => owned.disposeAsync();
    return swarm;
  },
};

export class LacewingSwarm implements Running {
  onDispose: (() => Promise<void>) | null = null;
  readonly daemons = new Map<string, BenchProcess>();
  readonly #gone: BenchProcess[] = [];
  readonly #paths = new Map<string, string[]>();
  readonly #open = new Set<DaemonConnection>();
  #manager: BenchProcess | null = null;
  #rssIdleBytes = 0;
  #sentBefore = 0;
  /** Of the warm-up, and of the seed's own fetch. */
  #originBytesBefore = 0;
  readonly #uploadedBefore = new Map<string, number>();

  constructor(private readonly stage: Stage, private readonly origin: BenchOrigin) {}

  /** Of the daemon that held most when it had joined, and nothing had been asked of it. */
  get rssIdleBytes(): number {
    return this.#rssIdleBytes;
  }

  get manager(): BenchProcess {
    return this.#manager!;
  }

  async start(): Promise<void> {
    const { network, folder, hosts, seed } = this.stage;
    const address = `${network.address(MANAGER)}:8080`;
    await Deno.writeTextFile(`${folder}/manager.yaml`, stringify({ auth: { disabled: true }, ...this.stage.manager }));
    await Deno.mkdir(`${folder}/manager`);
    const flags = ["--config", `${folder}/manager.yaml`, "--listen", address, "--workhome", `${folder}/manager`];
    const verbose = this.stage.verbose ? ["--verbose"] : [];
    const argv = [Deno.execPath(), ...denoRun("manager/main.ts"), ...flags, "--console", ...verbose];
    this.#manager = new BenchProcess("manager", network.on(MANAGER, argv));
    await this.#manager.line((line) => line.startsWith("ready "));
    await Promise.all([...hosts, ...(seed === null ? [] : [seed])].map((host) => this.#startDaemon(host)));
    const idle = await Promise.all([...this.daemons.keys()].map((host) => this.figure(host, "resident_bytes")));
    this.#rssIdleBytes = Math.max(...idle);
    const { warmUp } = this.stage.workload;
    if (warmUp !== null) {
      const url = this.origin.url(warmUp.name);
      await Promise.all([...this.daemons.keys()].map((host) => this.download(host, url, () => {})));
    }
    if (seed !== null) await this.fetch(seed, { onProgress: () => {} });
    this.#originBytesBefore = this.origin.sentBytes();
    for (const host of this.daemons.keys()) this.#uploadedBefore.set(host, await this.uploadedBytes(host));
  }

  async fetch(host: string, { onProgress }: FetchOptions): Promise<void> {
    const { files } = this.stage.workload;
    const done = new Array<number>(files.length).fill(0);
    const paths = new Array<string>(files.length);
    const waiting = [...files.keys()];
    const work = async () => {
      for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) {
        const { path } = await this.download(host, this.origin.url(files[index]!.name), (bytes) => {
          done[index!] = bytes;
          onProgress(done.reduce((total, value) => total + value, 0));
        });
        paths[index] = path;
      }
    };
    await Promise.all(Array.from({ length: Math.min(FILES_AT_ONCE, files.length) }, work));
    this.#paths.set(host, paths);
  }

  /** One content through the daemon of a host. */
  async download(host: string, url: string, onProgress: (bytes: number) => void, order = {}) {
    const connection = await connectDaemon(this.#socket(host));
    this.#open.add(connection);
    try {
      return await connection.download({ url, rate_limit: 0, ...order }, {
        onProgress: ({ done }) => onProgress(done),
      });
    } finally {
      this.#open.delete(connection);
      connection[Symbol.dispose]();
    }
  }

  async totals(): Promise<Totals> {
    const { seed } = this.stage;
    const all = [...this.daemons.values(), ...this.#gone];
    const sent = await Promise.all([...this.daemons].map(async ([host, daemon]) => {
      const bytes = daemon.hasEnded ? 0 : await this.uploadedBytes(host);
      return { host, bytes: bytes - (this.#uploadedBefore.get(host) ?? 0) };
    }));
    const bytesOf = (isMeant: (host: string) => boolean) =>
      sent.filter(({ host }) => isMeant(host)).reduce((total, { bytes }) => total + bytes, 0);
    const seedSent = bytesOf((host) => host === seed);
    return {
      sourceBytes: this.origin.sentBytes() - this.#originBytesBefore + seedSent,
      peerBytes: bytesOf((host) => host !== seed) + this.#sentBefore,
      cpuSeconds: [...all, this.manager, this.origin.process].reduce((total, it) => total + it.cpuSeconds(), 0),
      sourceCpuSeconds: null,
      rssMaxBytes: Math.max(...all.map((it) => it.rssMaxBytes())),
    };
  }

  /** Bytes of pieces that a daemon has sent. */
  uploadedBytes(host: string): Promise<number> {
    return this.figure(host, "uploaded_bytes");
  }

  /** One of a daemon's own metrics; 0 where there is none. */
  async figure(host: string, name: string): Promise<number> {
    const command = ["curl", "-s", `http://127.0.0.1:${HEALTH_PORT}/metrics`];
    const curl = new BenchProcess("curl", this.stage.network.on(host, command));
    await curl.ended;
    return Number(new RegExp(`^lacewing_daemon_${name} (\\S+)$`, "m").exec(curl.output())?.[1] ?? 0);
  }

  paths(host: string): readonly string[] {
    return this.#paths.get(host) ?? [];
  }

  async kill(host: string): Promise<void> {
    const daemon = this.daemons.get(host);
    if (daemon === undefined) return;
    this.#sentBefore += await this.uploadedBytes(host) - (this.#uploadedBefore.get(host) ?? 0);
    await daemon.kill();
    this.#uploadedBefore.delete(host);
    this.#gone.push(daemon);
    this.daemons.delete(host);
  }

  restart(host: string): Promise<void> {
    return this.#startDaemon(host);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#open) connection[Symbol.dispose]();
    await Promise.all([...this.daemons.values(), this.#manager].map((it) => it?.[Symbol.asyncDispose]()));
    const dispose = this.onDispose;
    this.onDispose = null;
    await dispose?.();
  }

  #socket(host: string): string {
    return `${this.stage.folder}/${host}/d.sock`;
  }

  async #startDaemon(host: string): Promise<void> {
    const { network, folder, seed, idcOf, verbose, daemon } = this.stage;
    const home = `${folder}/${host}`;
    await Deno.mkdir(home, { recursive: true });
    const config: Record<string, Record<string, unknown>> = {
      host: { hostname: host, advertiseIP: network.address(host), idc: idcOf(host) },
      scheduler: {
        manager: { addr: `http://${network.address(MANAGER)}:8080`, seedPeer: { enable: host === seed, clusterID: 1 } },
      },
      upload: { tcpListen: { port: PORT } },
      health: { tcpListen: { port: HEALTH_PORT } },
      storage: { diskGCThresholdPercent: 100 },
    };
    for (const [name, section] of Object.entries(daemon)) config[name] = { ...config[name], ...section };
    await Deno.writeTextFile(`${home}/client.yaml`, stringify(config));
    const flags = ["--config", `${home}/client.yaml`, "--workhome", home, "--daemon-sock", this.#socket(host)];
    const argv = [
      Deno.execPath(),
      ...denoRun("peer/main.ts"),
      ...flags,
      "--console",
      ...(verbose ? ["--verbose"] : []),
    ];
    const process = new BenchProcess(`daemon of ${host}`, network.on(host, argv));
    this.daemons.set(host, process);
    await process.line((line) => line.startsWith("ready "));
    await process.line((line) => line.includes("joined a scheduler"));
  }
}
