/**
 * What container hosts gain together: 1, 2, 4 and 8 nodes in network namespaces
 * pull one image at once, straight from Debian's registry and then through
 * their daemons' mirrors, by `ctr content fetch` (unpacking does not count).
 * Every link has the same limit, that of the registry too.
 *
 * Keeps: every pull is of a repository of its own, so new to all daemons, and
 * by a containerd that has nothing; no seed peer adds a link of its own.
 */
import { formatBytes } from "../../peer/core/units.ts";
import { joined } from "../testutil/cluster.ts";
import { Containerd } from "../testutil/containerd.ts";
import { makeImage, type TestImage } from "../testutil/image.ts";
import { type DaemonProcess, type ManagerProcess, spawnManager } from "../testutil/process.ts";
import { startRegistry, type TestRegistry } from "../testutil/registry.ts";
import { median, sum } from "./bound.ts";
import { BenchNetwork } from "./network.ts";
import { CpuSampler } from "./processes.ts";
import { IMAGE_SCALE_LENGTH } from "./registry_bench.ts";

const NAME = "registry.test";
const REGISTRY = "registry";
const MANAGER = "manager";
const LINK_BITS_PER_SECOND = 100_000_000;

export interface NodesOptions {
  /** Bytes of the image's layers, about. */
  readonly size: number;
  /** Nodes that pull at once, one measurement each. */
  readonly counts: readonly number[];
  readonly rounds: number;
  /** Factor on the rate of all links. */
  readonly speed: number;
  /** Sections for the configurations. */
  readonly daemon: Readonly<Record<string, unknown>>;
  readonly manager: Readonly<Record<string, unknown>>;
}

/** One wave of pulls. */
export interface Wave {
  /** Of the slowest node. */
  readonly seconds: number;
  /** Bytes of blobs that the registry sent, in images. */
  readonly copies: number;
  /** Busy share of all cores: above 0.85 the figure is about the CPU. */
  readonly busy: number;
}

/** Medians over the rounds. */
export interface NodesRow {
  readonly nodes: number;
  readonly direct: Wave;
  readonly mirror: Wave;
}

export interface NodesResult {
  /** Bytes of config and layers. */
  readonly size: number;
  readonly linkBitsPerSecond: number;
  readonly rows: readonly NodesRow[];
}

export async function runNodesBench(options: NodesOptions): Promise<NodesResult> {
  const linkBitsPerSecond = LINK_BITS_PER_SECOND * options.speed;
  const names = Array.from({ length: Math.max(...options.counts) }, (_, index) => `n${index + 1}`);
  const link = { up: linkBitsPerSecond, down: linkBitsPerSecond };
  const hosts = [REGISTRY, ...names].map((name) => ({ name, ...link }));
  await using network = await BenchNetwork.create({ hosts: [...hosts, { name: MANAGER, up: 0, down: 0 }] });
  const place = { address: network.address(REGISTRY), within: network.on(REGISTRY, []) };
  await using registry = await startRegistry({ place });
  await using stack = new AsyncDisposableStack();
  const manager = stack.use(
    await spawnManager({
      within: network.on(MANAGER, []),
      listen: `${network.address(MANAGER)}:8080`,
      config: { auth: { disabled: true }, ...options.manager },
    }),
  );
  const join = async (name: string) =>
    stack.use(await startDaemon(name, { network, registry, manager, sections: options.daemon }));
  const nodes = await Promise.all(names.map(async (name) => ({ name, daemon: await join(name) })));
  const bench = new NodesBench(network, registry, nodes);
  await bench.warmUp();
  const image = makeImage({ scale: options.size / IMAGE_SCALE_LENGTH });
  const rows: NodesRow[] = [];
  for (const count of options.counts) rows.push(await bench.row(image, count, options.rounds));
  return { size: blobBytes(image), linkBitsPerSecond, rows };
}

/** What was found, for people. Pure. */
export function nodesLines({ size, linkBitsPerSecond, rows }: NodesResult): string {
  const wave = ({ seconds, copies, busy }: Wave) =>
    `${seconds.toFixed(2)} s`.padStart(9) + `${copies.toFixed(2)}`.padStart(8) +
    `${Math.round(busy * 100)}%`.padStart(6);
  const titles = "slowest  copies  busy";
  return [
    `Nodes: ctr content fetch of ${formatBytes(size)} by all at once, every link ${linkBitsPerSecond / 1e6} Mbit/s; ` +
    "copies: what the registry sent; busy: all cores",
    `   nodes   direct:  ${titles}   mirror:  ${titles}   time      registry`,
    ...rows.map(({ nodes, direct, mirror }) =>
      `   ${String(nodes).padStart(5)}      ${wave(direct)}       ${wave(mirror)}` +
      `   ${(mirror.seconds / direct.seconds).toFixed(2)} x    ${(mirror.copies / direct.copies).toFixed(2)} x`
    ),
    "",
  ].join("\n");
}

interface Node {
  readonly name: string;
  readonly daemon: DaemonProcess;
}

class NodesBench {
  #pushed = 0;

  constructor(
    private readonly network: BenchNetwork,
    private readonly registry: TestRegistry,
    private readonly nodes: readonly Node[],
  ) {}

  /** Code and connections, with an image that nobody measures. */
  async warmUp(): Promise<void> {
    const image = makeImage({ seed: 2 });
    await this.#wave(image, { name: await this.#push(image), count: this.nodes.length, mirrored: true });
  }

  async row(image: TestImage, count: number, rounds: number): Promise<NodesRow> {
    const direct: Wave[] = [];
    const mirror: Wave[] = [];
    for (let round = 0; round < rounds; round++) {
      const name = await this.#push(image);
      direct.push(await this.#wave(image, { name, count, mirrored: false }));
      mirror.push(await this.#wave(image, { name, count, mirrored: true }));
    }
    return { nodes: count, direct: medianOf(direct), mirror: medianOf(mirror) };
  }

  /** Another repository is another URL for each blob: new to the daemons, and the same to the registry. */
  async #push(image: TestImage): Promise<string> {
    const name = `lab/app-${++this.#pushed}`;
    await this.registry.push(image, { name, tag: "v1" });
    return name;
  }

  async #wave(
    image: TestImage,
    { name, count, mirrored }: { name: string; count: number; mirrored: boolean },
  ): Promise<Wave> {
    await using stack = new AsyncDisposableStack();
    const runtimes: Containerd[] = [];
    for (const node of this.nodes.slice(0, count)) {
      const mirror = mirrored ? { mirror: `http://${node.daemon.proxy}` } : {};
      const within = this.network.on(node.name, []);
      runtimes.push(stack.use(
        await Containerd.start({ registry: NAME, server: this.registry.url, within, ...mirror }),
      ));
    }
    const before = await this.#sentBytes();
    const sampler = new CpuSampler();
    const beganMs = performance.now();
    const pulls = await Promise.all(runtimes.map((runtime) => runtime.fetch(`${NAME}/${name}:v1`)));
    const seconds = (performance.now() - beganMs) / 1000;
    const busy = sampler.read().all;
    const sent = await this.#sentBytes() - before;
    for (const { code, stderr } of pulls) if (code !== 0) throw new Error(`a pull of ${name} failed: ${stderr}`);
    const wanted = contentOf(image).join();
    for (const runtime of runtimes) {
      if ((await runtime.content()).join() !== wanted) throw new Error(`a pull of ${name} left another content`);
    }
    return { seconds, copies: sent / blobBytes(image), busy };
  }

  async #sentBytes(): Promise<number> {
    return sum((await this.registry.blobReads()).map(({ bytes }) => bytes));
  }
}

function startDaemon(
  hostname: string,
  { network, registry, manager, sections }: {
    network: BenchNetwork;
    registry: TestRegistry;
    manager: ManagerProcess;
    sections: NodesOptions["daemon"];
  },
): Promise<DaemonProcess> {
  const address = network.address(hostname);
  const registryMirror = { url: registry.url, registries: [{ host: NAME, url: registry.url }] };
  const host = { advertiseIP: address, listenIP: address };
  const config = { ...sections, host, proxy: { tcpListen: { port: 0 }, registryMirror } };
  return joined(manager, { within: network.on(hostname, []), hostname, config });
}

function medianOf(waves: readonly Wave[]): Wave {
  const of = (key: keyof Wave) => median(waves.map((wave) => wave[key]));
  return { seconds: of("seconds"), copies: of("copies"), busy: of("busy") };
}

/** What a pull of the first platform leaves. */
function contentOf({ index, images: [image] }: TestImage): string[] {
  return [index, image!.manifest, image!.config, ...image!.layers].map(({ digest }) => digest).sort();
}

function blobBytes({ images: [image] }: TestImage): number {
  return sum([image!.config, ...image!.layers].map(({ bytes }) => bytes.length));
}
