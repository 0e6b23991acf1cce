/**
 * A manager with daemons that have joined it, as real processes, and what most
 * tests of a swarm do with them.
 */
import { assertEquals } from "@std/assert";
import type { ChildResult } from "./child.ts";
import { fileDigest } from "./content.ts";
import {
  type DaemonOptions,
  type DaemonProcess,
  type ManagerProcess,
  spawnDaemon,
  spawnManager,
  type SpawnOptions,
} from "./process.ts";

export interface ClusterOptions {
  /** Ordinary daemons. */
  daemons: number;
  seeds?: number;
  manager?: SpawnOptions;
  daemon?: Omit<DaemonOptions, "manager">;
  /** Work homes go into this folder and stay there; default: temporary ones. */
  folder?: string;
}

export interface Cluster extends AsyncDisposable {
  readonly manager: ManagerProcess;
  readonly daemons: DaemonProcess[];
  readonly seeds: DaemonProcess[];
}

/** Starts them side by side, and waits until every daemon has joined. */
export async function startCluster(
  { daemons, seeds = 0, manager: managerOptions, daemon, folder }: ClusterOptions,
): Promise<Cluster> {
  await using stack = new AsyncDisposableStack();
  const home = (name: string) => folder === undefined ? {} : { workHome: makeFolder(`${folder}/${name}`) };
  const manager = stack.use(await spawnManager({ ...managerOptions, ...home("manager") }));
  const join = (index: number, seed: boolean) => {
    const hostname = `${seed ? "seed" : "host"}-${index}`;
    return joined(manager, { ...daemon, ...home(hostname), seed, hostname });
  };
  const started = await Promise.allSettled([
    ...Array.from({ length: seeds }, (_, index) => join(index, true)),
    ...Array.from({ length: daemons }, (_, index) => join(index, false)),
  ]);
  const running = started.filter((result) => result.status === "fulfilled").map((result) => stack.use(result.value));
  const failed = started.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  const owned = stack.move();
  return {
    manager,
    seeds: running.slice(0, seeds),
    daemons: running.slice(seeds),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Starts one more daemon and waits until it has joined. */
export async function joined(
  manager: ManagerProcess,
  options: Omit<DaemonOptions, "manager"> = {},
): Promise<DaemonProcess> {
  const daemon = await spawnDaemon({ ...options, manager });
  await daemon.logged("joined a scheduler");
  return daemon;
}

/** Asserts that a client succeeded and that the file has this digest (`sha256:hex`). */
export async function assertDownloaded(result: ChildResult, path: string, digest: string): Promise<void> {
  assertEquals(result.code, 0, result.stderr);
  assertEquals(await fileDigest(path), digest);
}

/** Polls a job until it has ended. @returns the job as the API shows it */
// deno-lint-ignore no-explicit-any
export async function jobEnded(manager: ManagerProcess, id: number, timeoutMs = 60_000): Promise<any> {
  const until = Date.now() + timeoutMs;
  while (Date.now() < until) {
    const answer = await manager.api("GET", `/api/v1/jobs/${id}`).catch(() => null);
    if (answer?.status === 200 && answer.body.status !== "PENDING") return answer.body;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`job ${id} did not end within ${timeoutMs} ms\n${manager.log()}`);
}

function makeFolder(path: string): string {
  Deno.mkdirSync(path, { recursive: true });
  return path;
}
