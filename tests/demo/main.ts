/**
 * `deno task demo`: the main job end to end on one machine, with real
 * processes. An origin that counts its bytes, a manager, a seed peer and
 * daemons; a file and an image are preheated over HTTP, the origin goes away,
 * and every daemon downloads at once.
 */
import { parseArgs } from "@std/cli/parse-args";
import { LacewingError } from "../../peer/core/errors.ts";
import { formatBytes, parseByteSize } from "../../peer/core/units.ts";
import { connectDaemon } from "../../peer/ipc/client.ts";
import { type Cluster, jobEnded, startCluster } from "../testutil/cluster.ts";
import { fileDigest } from "../testutil/content.ts";
import { makeImage } from "../testutil/image.ts";
import { startOrigin } from "../testutil/origin.ts";
import type { DaemonProcess } from "../testutil/process.ts";
import { startSmallRegistry } from "../testutil/small_registry.ts";
import { exchangeChart, type HostResult, hostTable } from "./chart.ts";

const USAGE = `Usage: deno task demo [--hosts N] [--size SIZE] [--keep]

  --hosts N     ordinary daemons beside the seed peer, 1 to 32 (default 4)
  --size SIZE   size of the file, such as 64MiB (default 256MiB)
  --keep        keep the folders of all processes, and say where they are
`;

/** Downloads that one daemon does at once for the image. */
const BLOBS_AT_ONCE = 4;

interface Settings {
  readonly hosts: number;
  readonly size: number;
  readonly keep: boolean;
}

function readSettings(args: string[]): Settings | null {
  const flags = parseArgs(args, {
    string: ["hosts", "size"],
    boolean: ["keep", "help"],
    default: { hosts: "4", size: "256MiB" },
    unknown: (argument) => {
      throw new LacewingError("usage", `Cannot read argument ${JSON.stringify(argument)}\n\n${USAGE}`);
    },
  });
  if (flags.help) return null;
  const hosts = Number(flags.hosts);
  if (!Number.isInteger(hosts) || hosts < 1 || hosts > 32) {
    throw new LacewingError("usage", `Cannot use --hosts ${flags.hosts}: want a whole number from 1 to 32`);
  }
  return { hosts, size: parseByteSize(String(flags.size)), keep: Boolean(flags.keep) };
}

async function main(args: string[]): Promise<number> {
  const settings = readSettings(args);
  if (settings === null) {
    console.log(USAGE);
    return 0;
  }
  const folder = await Deno.makeTempDir({ prefix: "lacewing-demo-" });
  try {
    say(`Starting a manager, a seed peer and ${settings.hosts} daemons as processes of their own ...`);
    await using cluster = await startCluster({ daemons: settings.hosts, seeds: 1, folder });
    const fileRight = await demoFile(cluster, settings.size);
    const imageRight = await demoImage(cluster);
    say(fileRight && imageRight ? "\nEvery byte is right." : "\nSOMETHING IS WRONG: see above.");
    return fileRight && imageRight ? 0 : 1;
  } finally {
    if (settings.keep) say(`Kept: ${folder}`);
    else await Deno.remove(folder, { recursive: true });
  }
}

async function demoFile(cluster: Cluster, size: number): Promise<boolean> {
  const origin = startOrigin();
  const url = origin.put("/model.bin", { size, seed: 42 });
  const digest = origin.digest("/model.bin");
  say(`\n1. A file of ${formatBytes(size)} at ${url}`);
  await preheat(cluster, { type: "file", url });
  const copies = size === 0 ? 0 : origin.bytesSent("/model.bin") / size;
  say(
    `   The origin sent ${formatBytes(origin.bytesSent("/model.bin"))}: ${
      copies.toFixed(3)
    } copies. Now it is switched off.`,
  );
  await origin[Symbol.asyncDispose]();
  const names = new Map(
    [...cluster.daemons, ...cluster.seeds].map((daemon, index) => [daemon.upload, nameOf(cluster, index)]),
  );
  const results = await Promise.all(
    cluster.daemons.map((daemon, index) => download(daemon, { url, digest, name: nameOf(cluster, index), names })),
  );
  say(`   All ${cluster.daemons.length} daemons at once:\n`);
  say(hostTable(results));
  say(exchangeChart(results));
  return results.every(({ digestRight }) => digestRight);
}

async function demoImage(cluster: Cluster): Promise<boolean> {
  const image = await makeImage();
  const registry = await startSmallRegistry(image);
  const url = registry.manifestUrl("v1");
  say(`2. An image of two platforms in a registry, ${url}`);
  const job = await preheat(cluster, { type: "image", url, platform: "all" });
  // deno-lint-ignore no-explicit-any
  const tasks: any[] = job.result.clusters[0].tasks;
  say(
    `   ${tasks.length} manifests and blobs, ${formatBytes(job.result.bytes.total)}; the registry sent ${
      formatBytes(registry.bytesSent())
    }. Now it is switched off.`,
  );
  await registry[Symbol.asyncDispose]();
  const rights = await Promise.all(cluster.daemons.map(async (daemon) => {
    const queue = [...tasks];
    let right = 0;
    await Promise.all(Array.from({ length: BLOBS_AT_ONCE }, async () => {
      for (let task = queue.shift(); task !== undefined; task = queue.shift()) {
        const result = await download(daemon, {
          url: task.url,
          digest: task.digest ?? null,
          name: "",
          names: new Map(),
        });
        right += result.digestRight ? 1 : 0;
      }
    }));
    return right;
  }));
  rights.forEach((right, index) => say(`   ${nameOf(cluster, index)}: ${right} of ${tasks.length} right`));
  return rights.every((right) => right === tasks.length);
}

function nameOf(cluster: Cluster, index: number): string {
  return index < cluster.daemons.length ? `host-${index + 1}` : `seed-${index - cluster.daemons.length + 1}`;
}

/** Preheats over the HTTP API and polls until the outcome. @returns the job as the API shows it */
// deno-lint-ignore no-explicit-any
async function preheat(cluster: Cluster, args: Record<string, unknown>): Promise<any> {
  const startedMs = performance.now();
  const created = await cluster.manager.api("POST", "/api/v1/jobs", { type: "preheat", args });
  if (created.status !== 200) {
    throw new LacewingError("unknown", `The manager answered ${created.status}: ${JSON.stringify(created.body)}`);
  }
  say(`   POST /api/v1/jobs -> job ${created.body.id}, ${created.body.status}`);
  const job = await jobEnded(cluster.manager, created.body.id);
  say(`   GET /api/v1/jobs/${job.id} -> ${job.status} after ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
  if (job.status !== "SUCCESS") throw new LacewingError("unknown", `The preheat failed: ${JSON.stringify(job.result)}`);
  return job;
}

async function download(
  daemon: DaemonProcess,
  { url, digest, name, names }: {
    url: string;
    digest: string | null;
    name: string;
    names: ReadonlyMap<string, string>;
  },
): Promise<HostResult> {
  const startedMs = performance.now();
  using connection = await connectDaemon(daemon.socket);
  const { path, stats } = await connection.download({ url }, { signal: AbortSignal.timeout(120_000) });
  const ms = performance.now() - startedMs;
  const [algorithm, hex] = digest?.split(":") ?? [];
  const actual = await fileDigest(path, algorithm);
  return {
    name,
    ms,
    bytes: stats.length,
    fromPeers: stats.from_peers,
    fromSource: stats.from_source,
    fromLocal: stats.from_local,
    parents: new Map(stats.parents.map(([address, bytes]) => [names.get(address) ?? address, bytes])),
    digestRight: hex === undefined || actual === digest,
  };
}

function say(text: string): void {
  console.log(text);
}

if (import.meta.main) {
  try {
    Deno.exit(await main(Deno.args));
  } catch (error) {
    console.error(error instanceof LacewingError ? `demo: ${error.message}` : error);
    Deno.exit(error instanceof LacewingError && error.code === "usage" ? 2 : 1);
  }
}
