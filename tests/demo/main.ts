/**
 * `deno task demo`: the main job end to end on one machine, with real
 * processes. An origin that counts its bytes, a manager, a seed peer and
 * daemons; a file and an image are preheated over the HTTP API, the origin is
 * switched off, and every daemon downloads at once.
 *
 * Every figure is measured in this run. The time at the left is counted from
 * the start of the demo's own process.
 */
import { ERRORS, LacewingError } from "../../peer/core/errors.ts";
import { formatBytes, formatDuration } from "../../peer/core/units.ts";
import { VERSION } from "../../peer/core/version.ts";
import { connectDaemon } from "../../peer/ipc/client.ts";
import { type Cluster, startCluster } from "../testutil/cluster.ts";
import { fileDigest } from "../testutil/content.ts";
import { makeImage } from "../testutil/image.ts";
import { startOrigin } from "../testutil/origin.ts";
import { startSmallRegistry } from "../testutil/small_registry.ts";
import { exchangeChart, type HostResult, hostTable, sentBy } from "./chart.ts";
import { checkSpace, readSettings, type Settings, USAGE } from "./settings.ts";

/** Downloads that one daemon does at once for the image, as container runtimes do. */
const DOWNLOADS_AT_ONCE = 4;
const POLL_MS = 250;
/** The image has about 3 MB times this. */
const IMAGE_SCALE = 4;

/** One content as the demo downloads it. */
interface Content {
  readonly url: string;
  readonly digest: string;
}

async function main(args: readonly string[]): Promise<number> {
  const settings = readSettings(args);
  if (settings === null) {
    console.log(USAGE);
    return 0;
  }
  const folder = await Deno.makeTempDir({ prefix: "lacewing-demo-" });
  const interrupted = Promise.withResolvers<never>();
  interrupted.promise.catch(() => {});
  const onSignal = () => interrupted.reject(new DOMException("The demo was interrupted", "AbortError"));
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) Deno.addSignalListener(signal, onSignal);
  try {
    checkSpace(settings, folder);
    const isRight = await runDemo(settings, { folder, interrupted: interrupted.promise });
    say(isRight ? "Done: every byte is right." : "SOMETHING IS WRONG: see above.");
    return isRight ? 0 : 1;
  } finally {
    for (const signal of signals) Deno.removeSignalListener(signal, onSignal);
    if (settings.keep) say(`Kept in ${folder}: a folder and a log for each process.`);
    else await Deno.remove(folder, { recursive: true });
  }
}

async function runDemo(
  settings: Settings,
  { folder, interrupted }: { folder: string; interrupted: Promise<never> },
): Promise<boolean> {
  const { hosts, keep } = settings;
  console.log(`Lacewing ${VERSION}: preheat, switch the origin off, download everywhere.`);
  console.log("The time at the left is counted from the start of this process.\n");
  await using cluster = await startCluster({ daemons: hosts, seeds: 1, folder });
  const count = `${hosts + 2} processes: a manager, a seed peer and ${counted(hosts, "daemon")}`;
  say(`Started ${count}, all on this machine's ${counted(navigator.hardwareConcurrency, "core")}.`);
  try {
    const isFileRight = await Promise.race([demoFile(cluster, settings), interrupted]);
    const isImageRight = await Promise.race([demoImage(cluster), interrupted]);
    return isFileRight && isImageRight;
  } finally {
    if (keep) await keepLogs(cluster, folder);
  }
}

async function demoFile(cluster: Cluster, { size }: Settings): Promise<boolean> {
  await using origin = startOrigin();
  const url = origin.put("/model.bin", { size, seed: 42 });
  const digest = origin.digest("/model.bin");
  console.log(`\n1. A FILE of ${formatBytes(size)}\n`);
  await preheat(cluster, { type: "file", url });
  sayOrigin("origin", origin.bytesSent(), size);
  await origin[Symbol.asyncDispose]();
  const isRight = await downloadEverywhere(cluster, [{ url, digest }]);
  return await runClient(cluster, { url, digest }) && isRight;
}

async function demoImage(cluster: Cluster): Promise<boolean> {
  const image = makeImage({ scale: IMAGE_SCALE });
  await using registry = startSmallRegistry();
  registry.add(image, { name: "demo/app", tag: "v1" });
  const url = registry.manifestUrl("demo/app", "v1");
  const platforms = image.images.map(({ platform }) => platform).join(" and ");
  console.log(`\n2. AN IMAGE for ${platforms}, from a registry\n`);
  const job = await preheat(cluster, { type: "image", url, platform: "all" });
  const tasks: (Content & { content_length: number })[] = job.result.clusters[0].tasks;
  const size = tasks.reduce((sum, { content_length }) => sum + content_length, 0);
  const preheated = new Set(tasks.map(({ digest }) => digest));
  const expected = [...image.manifests.keys(), ...image.blobs.keys()];
  const isAll = expected.every((digest) => preheated.has(digest));
  say(
    `Preheated: ${tasks.length} URLs (index by tag and by digest, manifests, configs, layers), ${formatBytes(size)}.`,
  );
  sayOrigin("registry", registry.bytesSent(), size);
  await registry[Symbol.asyncDispose]();
  return await downloadEverywhere(cluster, tasks) && isAll;
}

/** Preheats over the HTTP API and polls until the outcome. @returns the job as the API shows it */
// deno-lint-ignore no-explicit-any
async function preheat({ manager }: Cluster, args: Record<string, unknown>): Promise<any> {
  const body = { type: "preheat", args };
  const startedMs = performance.now();
  let { status, body: job } = await manager.api("POST", "/api/v1/jobs", body);
  say(`POST /api/v1/jobs ${JSON.stringify(body)}`);
  if (status !== 200) throw new LacewingError("unknown", `The manager answered ${status}: ${JSON.stringify(job)}`);
  say(`     job ${job.id}: ${job.status}`);
  while (job.status === "PENDING") {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    ({ status, body: job } = await manager.api("GET", `/api/v1/jobs/${job.id}`));
    const { bytes, tasks } = job.result ?? { bytes: { done: 0, total: 0 }, tasks: { done: 0, total: 0 } };
    const parts = `, ${tasks.done} of ${counted(tasks.total, "content")}`;
    const sizes = `, ${formatBytes(bytes.done)} of ${formatBytes(bytes.total)}`;
    say(`GET  /api/v1/jobs/${job.id}: ${job.status}${tasks.total === 0 ? "" : parts}${bytes.total === 0 ? "" : sizes}`);
  }
  if (job.status !== "SUCCESS") throw new LacewingError("unknown", `The preheat failed: ${JSON.stringify(job.result)}`);
  const hosts = new Set<string>(
    job.result.clusters.flatMap(({ tasks }: { tasks: { hosts: { hostname: string }[] }[] }) =>
      tasks.flatMap(({ hosts }) => hosts.map(({ hostname }) => hostname))
    ),
  );
  say(`Whole and verified on ${[...hosts].join(", ")} after ${formatDuration(performance.now() - startedMs)}.`);
  return job;
}

/** Downloads all contents through every daemon at once, and prints how it went. @returns whether all is right */
async function downloadEverywhere(cluster: Cluster, contents: readonly Content[]): Promise<boolean> {
  const { daemons, seeds } = cluster;
  say(`${counted(daemons.length, "daemon")}, all at once:\n`);
  const names = new Map([
    ...daemons.map(({ upload }, index) => [upload, `host-${index}`] as const),
    ...seeds.map(({ upload }, index) => [upload, `seed-${index}`] as const),
  ]);
  const downloads = await Promise.all(daemons.map(({ socket }) => downloadAll(socket, contents)));
  // Computed after all downloads, so that it does not slow them down.
  const results: HostResult[] = [];
  for (const [index, { ms, parts }] of downloads.entries()) {
    const sum = (key: "length" | "from_peers" | "from_source" | "from_local") =>
      parts.reduce((total, { stats }) => total + stats[key], 0);
    const senders = new Map<string, number>();
    for (const [address, bytes] of parts.flatMap(({ stats }) => stats.parents)) {
      const name = names.get(address) ?? address;
      senders.set(name, (senders.get(name) ?? 0) + bytes);
    }
    const digests = await Promise.all(parts.map(({ path }) => fileDigest(path)));
    const right = parts.filter(({ digest }, at) => digests[at] === digest).length;
    results.push({
      name: `host-${index}`,
      ms,
      bytes: sum("length"),
      fromPeers: sum("from_peers"),
      fromSource: sum("from_source"),
      fromLocal: sum("from_local"),
      senders,
      right,
      wrong: contents.length - right,
    });
  }
  console.log(hostTable(results));
  console.log(exchangeChart(results));
  saySeedShare(results);
  return results.every(({ wrong }) => wrong === 0);
}

async function downloadAll(socket: string, contents: readonly Content[]) {
  const startedMs = performance.now();
  const queue = [...contents];
  const parts: (Content & Awaited<ReturnType<typeof downloadOne>>)[] = [];
  await Promise.all(Array.from({ length: DOWNLOADS_AT_ONCE }, async () => {
    for (let content = queue.shift(); content !== undefined; content = queue.shift()) {
      parts.push({ ...content, ...await downloadOne(socket, content.url) });
    }
  }));
  return { ms: performance.now() - startedMs, parts };
}

/** Never from the origin, which is off anyway: what is not in the swarm fails. */
async function downloadOne(socket: string, url: string) {
  using connection = await connectDaemon(socket);
  const { path, stats } = await connection.download({ url, disable_back_source: true });
  return { path, stats };
}

/** The client, as a user calls it. @returns whether it went well */
async function runClient({ daemons: [daemon] }: Cluster, { url, digest }: Content): Promise<boolean> {
  if (daemon === undefined) return false;
  const startedMs = performance.now();
  const { code, stderr } = await daemon.client(url, "-O", daemon.out("model.bin"), "--digest", digest);
  const ms = performance.now() - startedMs;
  say(`And the client on host-0, with the content there: lacewing ${url} -O model.bin --digest sha256:…`);
  say(`     ${stderr.trim()}`);
  say(`     exit code ${code}, ${formatDuration(ms)} from the start of its process to its end`);
  return code === 0;
}

function sayOrigin(name: string, sent: number, size: number): void {
  const copies = size === 0 ? "" : `, ${(sent / size).toFixed(3)} times the content`;
  say(`The ${name} sent ${formatBytes(sent)}${copies}. It is switched off now.`);
}

function saySeedShare(results: readonly HostResult[]): void {
  const sums = sentBy(results);
  const all = sums.reduce((sum, [, bytes]) => sum + bytes, 0);
  const fromSeed = sums.filter(([name]) => name.startsWith("seed-")).reduce((sum, [, bytes]) => sum + bytes, 0);
  if (all === 0) return;
  const share = ((fromSeed / all) * 100).toFixed(0);
  say(`Of ${formatBytes(all)} that travelled, the seed peer sent ${share}%; the daemons gave each other the rest.`);
}

async function keepLogs({ manager, daemons, seeds }: Cluster, folder: string): Promise<void> {
  await Deno.writeTextFile(`${folder}/manager.log`, manager.log());
  for (const [index, seed] of seeds.entries()) await Deno.writeTextFile(`${folder}/seed-${index}.log`, seed.log());
  for (const [index, host] of daemons.entries()) await Deno.writeTextFile(`${folder}/host-${index}.log`, host.log());
}

/** One line, with the time since this process started. */
function say(text: string): void {
  console.log(`${(performance.now() / 1000).toFixed(1).padStart(6)} s  ${text}`);
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

if (import.meta.main) {
  try {
    Deno.exit(await main(Deno.args));
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") Deno.exit(130);
    console.error(error instanceof LacewingError ? `demo: ${error.message}` : error);
    Deno.exit(error instanceof LacewingError ? ERRORS[error.code].exitCode : 1);
  }
}
