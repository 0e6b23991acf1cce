/**
 * Real processes for end-to-end tests: manager, daemon and client from source,
 * under the import map in use. Each waits for its `ready {json}` line, keeps
 * what it wrote, and leaves nothing behind when it is disposed of.
 */
import { stringify } from "@std/yaml";
import { denoFlags, mapInUse, projectRoot, v8Flags } from "../../.ci/deno.ts";
import { Child, type ChildResult, runToEnd } from "./child.ts";

/** How a process is started; every part may be left out. */
export interface SpawnOptions {
  args?: readonly string[];
  env?: Record<string, string>;
  /** Sections of its configuration file (INTERFACE sections 3 and 5), over what the tests take. */
  config?: Record<string, unknown>;
  /** Default: a temporary folder, removed at the end. */
  workHome?: string;
  /** Command line that runs another one elsewhere: `nsenter …`. Default: none, it runs here. */
  within?: readonly string[];
}

export interface ManagerOptions extends SpawnOptions {
  /** `HOST:PORT`; default: a free port of loopback. */
  listen?: string;
}

export interface DaemonOptions extends SpawnOptions {
  /** Its manager: a process of `spawnManager`, or a URL. Default: none, it works alone. */
  manager?: { readonly http: string } | string;
  /** Fixed schedulers instead of a manager. */
  schedulers?: readonly string[];
  hostname?: string;
  /** Joins as a seed peer. */
  seed?: boolean;
  clusterId?: number;
}

const HOSTS_TIMEOUT_MS = 20_000;

/** Arguments of `deno` that run one of the project's entries under the import map in use. */
export function denoRun(entry: string): string[] {
  return ["run", "-A", ...v8Flags(entry), ...denoFlags(mapInUse()), `${projectRoot()}/${entry}`];
}

/** Runs the client from source. `cwd` is for relative output paths. */
export function runClient(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; signal?: AbortSignal } = {},
): Promise<ChildResult> {
  return runToEnd([...denoRun("cli/main.ts"), ...args], options);
}

/** Starts a manager, and waits until it serves. */
export async function spawnManager(options: ManagerOptions = {}): Promise<ManagerProcess> {
  const manager = new ManagerProcess(options);
  await manager.start();
  return manager;
}

/** Starts a daemon on free ports of loopback, and waits until it serves. */
export async function spawnDaemon(options: DaemonOptions = {}): Promise<DaemonProcess> {
  const daemon = new DaemonProcess(options);
  await daemon.start();
  return daemon;
}

/** What manager and daemon have in common: a work home, a life, a log. */
abstract class ServerProcess implements AsyncDisposable {
  /** Work home, configuration and outputs; temporary unless it was given. */
  readonly folder: string;
  protected child: Child | null = null;
  protected ready: Record<string, unknown> = {};
  readonly #ownFolder: boolean;
  #past = "";

  constructor(protected readonly options: SpawnOptions) {
    this.#ownFolder = options.workHome === undefined;
    this.folder = options.workHome ?? Deno.makeTempDirSync({ prefix: "lacewing-test-" });
  }

  protected abstract command(): { entry: string; args: string[] };

  /** Starts the process and waits for its `ready` line; rejects with its output if it ends before. */
  async start(): Promise<void> {
    const { entry, args } = this.command();
    const { env = {}, within = [] } = this.options;
    const words = [...within, Deno.execPath(), ...denoRun(entry), ...args, ...(this.options.args ?? [])];
    this.child = new Child(words.slice(1), { command: words[0]!, env });
    try {
      const line = await this.child.line((text) => text.startsWith("ready "));
      this.ready = JSON.parse(line.slice("ready ".length));
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  get pid(): number {
    return this.#running.pid;
  }

  /** Everything it has written since its first start: stdout and stderr. */
  log(): string {
    return this.#past + (this.child?.output() ?? "");
  }

  /** Resolves with the first line that holds the text, from now or from before; rejects when the process ends. */
  logged(text: string | RegExp): Promise<string> {
    return this.#running.line((line) => typeof text === "string" ? line.includes(text) : text.test(line));
  }

  /** Ends it at once, as a crash does, or with another signal. Resolves when it is gone. */
  async kill(signal: Deno.Signal = "SIGKILL"): Promise<void> {
    const child = this.child;
    if (child === null) return;
    child.kill(signal);
    await child.ended;
    this.#past += child.output();
    this.child = null;
  }

  /** Stops it as an operator does. @returns its exit code */
  async stop(): Promise<number> {
    const child = this.#running;
    await this.kill("SIGTERM");
    return (await child.ended).code;
  }

  /** Starts it again on the same work home. */
  async restart(): Promise<void> {
    if (this.child !== null) await this.stop();
    await this.start();
  }

  /** Memory that it holds now. */
  rssBytes(): number {
    const status = Deno.readTextFileSync(`/proc/${this.pid}/status`);
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? NaN) * 1024;
  }

  /** The most memory that it has held. */
  rssMaxBytes(): number {
    const status = Deno.readTextFileSync(`/proc/${this.pid}/status`);
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? NaN) * 1024;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child !== null) await this.kill();
    if (this.#ownFolder) await Deno.remove(this.folder, { recursive: true }).catch(() => {});
  }

  protected writeConfig(name: string, config: Record<string, unknown>): string {
    const path = `${this.folder}/${name}`;
    Deno.writeTextFileSync(path, stringify(merge(config, this.options.config ?? {})));
    return path;
  }

  get #running(): Child {
    if (this.child === null) throw new Error("the process does not run");
    return this.child;
  }
}

export class ManagerProcess extends ServerProcess {
  #listen: string;

  constructor(options: ManagerOptions) {
    super(options);
    this.#listen = options.listen ?? "127.0.0.1:0";
  }

  /** Base URL of its API; the same after a restart. */
  get http(): string {
    return String(this.ready.http);
  }

  override async start(): Promise<void> {
    await super.start();
    this.#listen = new URL(this.http).host;
  }

  /** One call of its API; the body is sent as JSON, the answer read as JSON. */
  // deno-lint-ignore no-explicit-any
  async api(method: string, path: string, body?: unknown): Promise<{ status: number; headers: Headers; body: any }> {
    const response = await fetch(this.http + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json") ?? false;
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  }

  /** Resolves when so many hosts are there: a daemon serves before its scheduler knows it. */
  async hosts(count: number): Promise<void> {
    const deadlineMs = performance.now() + HOSTS_TIMEOUT_MS;
    while (true) {
      const { body } = await this.api("GET", "/api/v1/peers");
      if (Array.isArray(body) && body.length >= count) return;
      if (performance.now() > deadlineMs) {
        throw new Error(`${count} hosts are wanted, there are: ${JSON.stringify(body)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  protected override command() {
    const config = this.writeConfig("manager.yaml", {});
    const args = ["--config", config, "--listen", this.#listen, "--workhome", this.folder, "--console"];
    return { entry: "manager/main.ts", args };
  }
}

export class DaemonProcess extends ServerProcess {
  constructor(protected override readonly options: DaemonOptions) {
    super(options);
  }

  get socket(): string {
    return `${this.folder}/daemon.sock`;
  }

  get hostId(): string {
    return String(this.ready.host_id);
  }

  /** `HOST:PORT` of its upload server. */
  get upload(): string {
    return String(this.ready.upload);
  }

  /** `HOST:PORT` of its proxy, or null when it is off. */
  get proxy(): string | null {
    return this.ready.proxy as string | null;
  }

  /** `HOST:PORT` of its health and metrics. */
  get health(): string | null {
    return this.ready.health as string | null;
  }

  /** A path for an output, in its own temporary folder. */
  out(name = "out"): string {
    return `${this.folder}/${name}`;
  }

  /** Runs the client against this daemon. */
  client(...args: string[]): Promise<ChildResult> {
    return runClient(["--daemon-sock", this.socket, "--logdir", `${this.folder}/client-log`, ...args], {
      env: this.options.env,
      cwd: this.folder,
    });
  }

  protected override command() {
    const { manager, schedulers, hostname = "", seed = false, clusterId = 1 } = this.options;
    const addr = typeof manager === "string" ? manager : manager?.http;
    const seedPeer = { enable: seed, clusterID: clusterId };
    const config = this.writeConfig("client.yaml", {
      host: { hostname, advertiseIP: "127.0.0.1", listenIP: "127.0.0.1" },
      scheduler: {
        ...(addr === undefined ? {} : { manager: { enable: true, addr, refreshInterval: "1s", seedPeer } }),
        ...(schedulers === undefined ? {} : { netAddrs: schedulers }),
      },
      upload: { tcpListen: { port: 0 } },
      health: { tcpListen: { port: 0 } },
    });
    const args = ["--config", config, "--workhome", this.folder, "--daemon-sock", this.socket, "--console"];
    return { entry: "peer/main.ts", args };
  }
}

/** Sections laid over sections; anything else replaces. */
function merge(below: Record<string, unknown>, above: Record<string, unknown>): Record<string, unknown> {
  const result = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const old = result[key];
    result[key] = isSection(old) && isSection(value) ? merge(old, value) : value;
  }
  return result;
}

function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
