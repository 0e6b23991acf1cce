/**
 * What a container host pays for the mirror: `ctr content fetch` of one image
 * straight from Debian's registry, through a daemon that has nothing of it,
 * and through one that has all; on loopback, alone, in an order that goes
 * round, so that what one pull leaves behind falls on each of the three.
 */
import { Containerd } from "../testutil/containerd.ts";
import { makeImage } from "../testutil/image.ts";
import { type DaemonProcess, spawnDaemon } from "../testutil/process.ts";
import { hasTools, startRegistry } from "../testutil/registry.ts";
import { formatBytes } from "../../peer/core/units.ts";
import { median } from "./bound.ts";
import { CpuSampler } from "./processes.ts";

const NAME = "registry.test";
/** The image of one platform, at scale 1: gzip makes its invented content 5% longer. */
export const IMAGE_SCALE_LENGTH = 2_795_000;
const TICKS = 100;
/** Pages that are free before each pull, by the image's size: the daemon's file, containerd's, and some. */
const PAGES_PER_IMAGE = 2.4;

const WAYS = ["direct", "cold", "warm"] as const;
export type Way = typeof WAYS[number];

export interface Pull {
  readonly seconds: number;
  /** CPU seconds of the daemon. */
  readonly daemonCpuSeconds: number;
  /** CPU seconds of all processes of the machine. */
  readonly cpuSeconds: number;
  /** Busy share of all cores: above 0.85 all ratios are about the CPU. */
  readonly busy: number;
}

export interface RegistryResult {
  /** Bytes of the image's layers. */
  readonly size: number;
  /** Each way's pulls, by round. */
  readonly pulls: Readonly<Record<Way, readonly Pull[]>>;
  /** The daemon's peak. */
  readonly rssMaxBytes: number;
}

/** Why this bench cannot run here, or null. */
export function registryBenchProblem(): string | null {
  if (Deno.uid() !== 0) return "containerd needs root";
  return hasTools(["docker-registry", "skopeo", "containerd", "ctr"])
    ? null
    : "docker-registry, skopeo, containerd or ctr is not installed";
}

export async function runRegistryBench(
  { size, rounds, folder, daemon: sections }: {
    readonly size: number;
    readonly rounds: number;
    /** Of the bench; there must be room for a few images. */
    readonly folder: string;
    readonly daemon: Readonly<Record<string, unknown>>;
  },
): Promise<RegistryResult> {
  await using registry = await startRegistry();
  const image = makeImage({ scale: size / IMAGE_SCALE_LENGTH });
  const layers = image.images[0]!.layers.reduce((sum, { bytes }) => sum + bytes.length, 0);
  // Another repository is another URL for each blob: new to the daemon, and the same to the registry.
  const names = Array.from({ length: rounds + 1 }, (_, round) => `lab/app-${round}`);
  await registry.push(image, { name: names[0]!, tag: "v1" });
  for (const name of names.slice(1)) await registry.alias(`${names[0]}:v1`, `${name}:v1`);
  const proxy = {
    tcpListen: { port: 0 },
    registryMirror: { url: registry.url, registries: [{ host: NAME, url: registry.url }] },
  };
  await using daemon = await spawnDaemon({ config: { ...sections, proxy } });
  const pull = async (way: Way, name: string): Promise<Pull> => {
    await using node = await Containerd.start({
      registry: NAME,
      server: registry.url,
      mirror: way === "direct" ? registry.url : `http://${daemon.proxy}`,
    });
    await freePages(`${folder}/pages`, layers * PAGES_PER_IMAGE);
    return await measure(node, name, daemon);
  };
  // Code and page cache.
  for (const way of ["direct", "cold"] as const) await pull(way, names[0]!);
  const pulls: Record<Way, Pull[]> = { direct: [], cold: [], warm: [] };
  for (let round = 1; round <= rounds; round++) {
    for (const [index] of WAYS.entries()) {
      const way = WAYS[(round + index) % WAYS.length]!;
      pulls[way].push(await pull(way, names[way === "warm" ? round - 1 : round]!));
    }
  }
  return { size: layers, pulls, rssMaxBytes: daemon.rssMaxBytes() };
}

/** What was found, for people: medians, and the ratios of the pulls of each round from the least to the most. Pure. */
export function registryLines({ size, pulls, rssMaxBytes }: RegistryResult): string {
  const line = (title: string, way: Way) => {
    const of = (key: keyof Pull) => median(pulls[way].map((pull) => pull[key]));
    const ratios = pulls[way].map(({ seconds }, round) => seconds / pulls.direct[round]!.seconds);
    const [least, middle, most] = [Math.min(...ratios), median(ratios), Math.max(...ratios)].map((it) => it.toFixed(2));
    const ratio = way === "direct" ? "" : `${middle} x direct (${least} to ${most})`;
    return `   ${title.padEnd(23)} ${of("seconds").toFixed(2)} s   ${ratio.padEnd(29)} ` +
      `daemon ${of("daemonCpuSeconds").toFixed(2)} CPU s   ` +
      `all ${of("cpuSeconds").toFixed(2)} CPU s, busy ${Math.round(of("busy") * 100)}%`;
  };
  return [
    `Registry: ctr content fetch of ${formatBytes(size)} on loopback, alone; medians of ${pulls.direct.length}`,
    line("direct", "direct"),
    line("daemon that has nothing", "cold"),
    line("daemon that has it", "warm"),
    `   the daemon's peak memory ${formatBytes(rssMaxBytes)}`,
    "",
  ].join("\n");
}

async function measure(node: Containerd, name: string, daemon: DaemonProcess): Promise<Pull> {
  const [sampler, before, beganMs] = [new CpuSampler(), cpuSeconds(daemon), performance.now()];
  const { code, stderr } = await node.fetch(`${NAME}/${name}:v1`);
  const seconds = (performance.now() - beganMs) / 1000;
  if (code !== 0) throw new Error(`the pull of ${name} failed: ${stderr}`);
  const busy = sampler.read().all;
  return {
    seconds,
    busy,
    daemonCpuSeconds: cpuSeconds(daemon) - before,
    cpuSeconds: busy * seconds * navigator.hardwareConcurrency,
  };
}

/**
 * Writes a file and removes it, so that what a pull writes finds pages that a virtual machine has from its host already: the
 * first use of one costs more than the write itself, and would fall on whichever way first reaches it.
 */
async function freePages(path: string, length: number): Promise<void> {
  const chunk = new Uint8Array(1024 * 1024).fill(1);
  using file = await Deno.create(path);
  for (let written = 0; written < length; written += chunk.length) file.writeSync(chunk);
  await Deno.remove(path);
}

function cpuSeconds({ pid }: DaemonProcess): number {
  const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}
