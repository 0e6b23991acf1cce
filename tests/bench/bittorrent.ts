/**
 * BitTorrent as a contestant: aria2 on every host, one that has it all on the
 * source's host, and a tracker. Clients are up and paused before the start, as our daemons are.
 */
import { denoFlags, mapInUse } from "../../.ci/deno.ts";
import {
  type Contestant,
  type FetchOptions,
  MANAGER,
  ORIGIN,
  type Running,
  type Stage,
  type Totals,
} from "./contestant.ts";
import { BenchProcess } from "./processes.ts";
import { makeTorrent } from "./torrent.ts";

const TRACKER_PORT = 6969;
const PIECES_WANTED = 1000;
const PIECE_LENGTH_MIN = 256 * 1024;
const NAME = "workload";
const SAMPLE_MS = 250;

export const bittorrent: Contestant = {
  name: "bittorrent",
  async start(stage) {
    const swarm = new AriaSwarm(stage);
    try {
      await swarm.start();
      return swarm;
    } catch (error) {
      await swarm[Symbol.asyncDispose]();
      throw error;
    }
  },
};

class AriaSwarm implements Running {
  readonly #clients = new Map<string, BenchProcess>();
  readonly #gone: BenchProcess[] = [];
  #desk: BenchProcess | null = null;
  #lastId = 0;
  #sentBefore = 0;

  constructor(private readonly stage: Stage) {}

  get #source(): string {
    return this.stage.seed ?? ORIGIN;
  }

  get #torrent(): string {
    return `${this.stage.folder}/${NAME}.torrent`;
  }

  async start(): Promise<void> {
    const { network, workload, hosts } = this.stage;
    const address = network.address(MANAGER);
    let pieceLength = PIECE_LENGTH_MIN;
    while (workload.size / pieceLength > PIECES_WANTED && pieceLength < 2 ** 24) pieceLength *= 2;
    const announce = `http://${address}:${TRACKER_PORT}/announce`;
    const { folder, files } = workload;
    await Deno.writeFile(this.#torrent, await makeTorrent(NAME, { folder, files, announce, pieceLength }));
    const script = decodeURIComponent(new URL("bittorrent_desk.ts", import.meta.url).pathname);
    const argv = [Deno.execPath(), "run", "-A", ...denoFlags(mapInUse()), script, address, String(TRACKER_PORT)];
    this.#desk = new BenchProcess("tracker", network.on(MANAGER, argv));
    await this.#desk.line((line) => line === "listening");
    await this.#startClient(this.#source);
    while ((await this.#ask("seeds")).seeds === 0) await new Promise((resolve) => setTimeout(resolve, 50));
    await Promise.all(hosts.map((host) => this.#startClient(host)));
  }

  async fetch(host: string, { onProgress }: FetchOptions): Promise<void> {
    const { network, workload } = this.stage;
    const done = this.#desk!.line((line) => line === JSON.stringify({ done: network.address(host) }));
    await this.#ask("start", host);
    let isSampling = false;
    const timer = setInterval(async () => {
      if (isSampling) return;
      isSampling = true;
      try {
        onProgress((await this.#stat(host)).completed);
      } catch {
        // The desk has ended: a host that was killed is sampled until then.
      }
      isSampling = false;
    }, SAMPLE_MS);
    try {
      await done;
      onProgress(workload.size);
    } finally {
      clearInterval(timer);
    }
  }

  async totals(): Promise<Totals> {
    const all = [...this.#clients.values(), ...this.#gone];
    const sent = await Promise.all([...this.#clients.keys()].map(async (host) => {
      return { host, bytes: (await this.#stat(host)).uploaded };
    }));
    const bytesOf = (isMeant: (host: string) => boolean) =>
      sent.filter(({ host }) => isMeant(host)).reduce((total, { bytes }) => total + bytes, 0);
    return {
      sourceBytes: bytesOf((host) => host === this.#source),
      peerBytes: bytesOf((host) => host !== this.#source) + this.#sentBefore,
      // The desk is the bench's own; a tracker costs next to nothing.
      cpuSeconds: all.reduce((total, it) => total + it.cpuSeconds(), 0),
      sourceCpuSeconds: null,
      rssMaxBytes: Math.max(...all.map((it) => it.rssMaxBytes())),
    };
  }

  paths(host: string): readonly string[] {
    const { folder, workload: { files } } = this.stage;
    const base = files.length === 1 ? `${folder}/${host}` : `${folder}/${host}/${NAME}`;
    return files.map(({ name }) => `${base}/${name}`);
  }

  async kill(host: string): Promise<void> {
    const client = this.#clients.get(host);
    if (client === undefined) return;
    this.#sentBefore += (await this.#stat(host)).uploaded;
    await client.kill();
    this.#gone.push(client);
    this.#clients.delete(host);
  }

  restart(host: string): Promise<void> {
    return this.#startClient(host);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#clients.values(), this.#desk].map((it) => it?.[Symbol.asyncDispose]()));
  }

  async #startClient(host: string): Promise<void> {
    const { network, folder } = this.stage;
    const isSource = host === this.#source;
    await Deno.mkdir(`${folder}/${host}`, { recursive: true });
    if (isSource) await this.#layOut(`${folder}/${host}`);
    const flags = [
      "--no-conf",
      "--quiet",
      `--dir=${folder}/${host}`,
      "--enable-rpc",
      "--rpc-listen-all",
      "--enable-dht=false",
      "--enable-dht6=false",
      "--bt-enable-lpd=false",
      "--disable-ipv6",
      "--listen-port=6881",
      "--file-allocation=none",
      "--seed-ratio=0.0",
      "--max-concurrent-downloads=10",
      ...(isSource ? ["--check-integrity=true"] : ["--pause=true"]),
    ];
    this.#clients.set(
      host,
      new BenchProcess(`aria2 on ${host}`, network.on(host, ["aria2c", ...flags, this.#torrent])),
    );
    await this.#ask("connect", host);
  }

  /** The source's copy, as aria2 expects it. */
  async #layOut(dir: string): Promise<void> {
    const { files, folder } = this.stage.workload;
    const target = files.length === 1 ? dir : `${dir}/${NAME}`;
    await Deno.mkdir(target, { recursive: true });
    for (const { name } of files) await Deno.link(`${folder}/${name}`, `${target}/${name}`);
  }

  async #stat(host: string): Promise<{ uploaded: number; completed: number }> {
    const answer = await this.#ask("stat", host);
    const [stat] = (answer.stat ?? []) as { uploadLength: string; completedLength: string }[];
    return { uploaded: Number(stat?.uploadLength ?? 0), completed: Number(stat?.completedLength ?? 0) };
  }

  async #ask(what: string, host?: string): Promise<Record<string, unknown>> {
    const id = ++this.#lastId;
    const address = host === undefined ? undefined : this.stage.network.address(host);
    await this.#desk!.say(JSON.stringify({ id, do: what, address }));
    const answer = JSON.parse(
      await this.#desk!.line((line) => line.startsWith(`{"id":${id},`) || line === `{"id":${id}}`),
    );
    if (answer.error !== undefined) throw new Error(String(answer.error));
    return answer;
  }
}
