/**
 * What a container host pays for the mirror: `ctr content fetch` of one image
 * straight from Debian's registry, through a daemon that has nothing of it,
 * and through one that has all; in turn, on loopback, alone.
 */
import { Containerd } from "../testutil/containerd.ts";
import { makeImage } from "../testutil/image.ts";
import { type DaemonProcess, spawnDaemon } from "../testutil/process.ts";
import { hasTools, startRegistry, type TestRegistry } from "../testutil/registry.ts";
import { formatBytes } from "../../peer/core/units.ts";
import { median } from "./bound.ts";
import { CpuSampler } from "./processes.ts";

const NAME = "registry.test";
/** The image of one platform, at scale 1. */
export const IMAGE_SCALE_LENGTH = 2_650_000;
const TICKS = 100;

/** Medians over the rounds, but for the memory. */
export interface RegistryResult {
  /** Bytes of the image's layers. */
  readonly size: number;
  readonly directSeconds: number;
  /** Busy share of all cores in a pull straight from the registry: above 0.85 all ratios are about the CPU. */
  readonly directBusy: number;
  readonly coldSeconds: number;
  readonly warmSeconds: number;
  /** CPU seconds of the daemon. */
  readonly coldCpuSeconds: number;
  readonly warmCpuSeconds: number;
  readonly rssMaxBytes: number;
}

interface Row {
  readonly direct: number;
  readonly directBusy: number;
  readonly cold: number;
  readonly warm: number;
  readonly coldCpu: number;
  readonly warmCpu: number;
}

/** Why this bench cannot run here, or null. */
export function registryBenchProblem(): string | null {
  if (Deno.uid() !== 0) return "containerd needs root";
  return hasTools(["docker-registry", "skopeo", "containerd", "ctr"])
    ? null
    : "docker-registry, skopeo, containerd or ctr is not installed";
}

export async function runRegistryBench(
  { size, rounds, daemon: sections }: { size: number; rounds: number; daemon: Readonly<Record<string, unknown>> },
): Promise<RegistryResult> {
  await using registry = await startRegistry();
  const image = makeImage({ scale: size / IMAGE_SCALE_LENGTH });
  const layers = image.images[0]!.layers.reduce((sum, { bytes }) => sum + bytes.length, 0);
  // Another repository is another URL for each blob: new to the daemon, and the same to the registry.
  const names = Array.from({ length: rounds + 1 }, (_, round) => `lab/app-${round}`);
  for (const name of names) await registry.push(image, { name, tag: "v1" });
  const proxy = {
    tcpListen: { port: 0 },
    registryMirror: { url: registry.url, registries: [{ host: NAME, url: registry.url }] },
  };
  await using daemon = await spawnDaemon({ config: { ...sections, proxy } });
  const rows: Row[] = [];
  for (const [round, name] of names.entries()) {
    const sampler = new CpuSampler();
    const direct = await pull(registry, registry.url, name);
    const directBusy = sampler.read().all;
    const cpu = [cpuSeconds(daemon)];
    const cold = await pull(registry, `http://${daemon.proxy}`, name);
    cpu.push(cpuSeconds(daemon));
    const warm = await pull(registry, `http://${daemon.proxy}`, name);
    cpu.push(cpuSeconds(daemon));
    // The first round warms up: code, page cache.
    if (round > 0) {
      rows.push({ direct, directBusy, cold, warm, coldCpu: cpu[1]! - cpu[0]!, warmCpu: cpu[2]! - cpu[1]! });
    }
  }
  const of = (key: keyof Row) => median(rows.map((row) => row[key]));
  return {
    size: layers,
    directSeconds: of("direct"),
    directBusy: of("directBusy"),
    coldSeconds: of("cold"),
    warmSeconds: of("warm"),
    coldCpuSeconds: of("coldCpu"),
    warmCpuSeconds: of("warmCpu"),
    rssMaxBytes: daemon.rssMaxBytes(),
  };
}

/** What was found, for people. Pure. */
export function registryLines(result: RegistryResult): string {
  const { size, directSeconds, directBusy, coldSeconds, warmSeconds, coldCpuSeconds, warmCpuSeconds } = result;
  const line = (name: string, seconds: number, cpu: number) => {
    const ratio = (seconds / directSeconds).toFixed(2);
    return `   ${name.padEnd(24)} ${seconds.toFixed(2)} s   ${ratio} x direct   daemon ${cpu.toFixed(2)} CPU s`;
  };
  return [
    `Registry: ctr content fetch of ${formatBytes(size)} on loopback, alone; medians`,
    `   direct                   ${directSeconds.toFixed(2)} s   the cores were busy ${
      Math.round(directBusy * 100)
    }% of the time`,
    line("daemon that has nothing", coldSeconds, coldCpuSeconds),
    line("daemon that has it", warmSeconds, warmCpuSeconds),
    `   the daemon's peak memory ${formatBytes(result.rssMaxBytes)}`,
    "",
  ].join("\n");
}

/** Seconds of one pull by a containerd that has nothing. */
async function pull(registry: TestRegistry, mirror: string, name: string): Promise<number> {
  await using node = await Containerd.start({ registry: NAME, server: registry.url, mirror });
  const beganMs = performance.now();
  const { code, stderr } = await node.fetch(`${NAME}/${name}:v1`);
  const seconds = (performance.now() - beganMs) / 1000;
  if (code !== 0) throw new Error(`the pull through ${mirror} failed: ${stderr}`);
  return seconds;
}

function cpuSeconds({ pid }: DaemonProcess): number {
  const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}
