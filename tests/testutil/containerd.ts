/**
 * A containerd of a test's own: private root, state and socket in a temporary
 * folder, a hosts.toml that points at a mirror, `ctr` and CRI against it, in
 * a network namespace where one is given. Needs root; `containerProblem()`
 * says whether this machine can.
 *
 * Keeps: nothing stays behind, not even after a container that did not end.
 */
import { Child, runBytes } from "./child.ts";
import { fileDigest } from "./content.ts";
import { CriClient } from "./cri_client.ts";
import { hasTools } from "./registry.ts";

export interface ContainerdOptions {
  /** The registry's name in references, as `registry.test`. */
  readonly registry: string;
  /** Name of its folder; default: the registry's. `_default` has no server of its own. */
  readonly hostsFolder?: string;
  /** URL of the origin. */
  readonly server: string;
  /** URL of the mirror; default: none, it asks the origin. */
  readonly mirror?: string;
  /** PEM file of the authority that signed the origin's certificate. */
  readonly serverCa?: string;
  /** Command line that runs another one where the node is. Default: here. */
  readonly within?: readonly string[];
}

export interface CtrResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What tests with containers need; all of it comes with CI's packages. */
export const CONTAINER_TOOLS = ["containerd", "ctr", "runc", "docker-registry", "skopeo", "busybox", "openssl"];
/** A container that cannot come up is not waited for. */
const START_ATTEMPTS = 400;
const RECEIVE_TIMEOUT_MS = 60_000;
/** The one that test images have wherever they are made. */
const PLATFORM = "linux/amd64";

/** Why containers cannot be run here, or null. */
export function containerProblem(): string | null {
  if (Deno.build.os !== "linux") return `containerd needs Linux, this is ${Deno.build.os}`;
  if (Deno.uid() !== 0) return "containerd needs root";
  const absent = CONTAINER_TOOLS.filter((tool) => !hasTools([tool]));
  if (absent.length > 0) return `not installed: ${absent.join(", ")}`;
  return mayMount() ? null : "mounts and namespaces are not allowed here";
}

/** Why there are no network namespaces here, or null. */
export function namespaceProblem(): string | null {
  if (!hasTools(["ip", "nsenter"])) return "not installed: iproute2";
  const name = `lwb${Deno.pid}-try`;
  const ip = (...args: string[]) => new Deno.Command("ip", { args, stdout: "null", stderr: "null" }).outputSync();
  const added = ip("netns", "add", name).success;
  const linked = added && ip("-n", name, "link", "add", "x", "type", "bridge").success;
  ip("netns", "del", name);
  return linked ? null : "network namespaces are not allowed here";
}

export class Containerd implements AsyncDisposable {
  readonly #child: Child;
  #snapshotter = "native";
  #runs = 0;

  private constructor(readonly folder: string, private readonly options: ContainerdOptions) {
    const [command = "", ...args] = this.#command("containerd", "-c", `${folder}/config.toml`);
    this.#child = new Child(args, { command });
  }

  /** Starts it and waits until it answers. */
  static async start(options: ContainerdOptions): Promise<Containerd> {
    const folder = await Deno.makeTempDir({ prefix: "lacewing-containerd-" });
    await writeConfig(folder, options);
    const node = new Containerd(folder, options);
    for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      const { code, stdout } = await node.ctr("plugins", "ls");
      if (code === 0) {
        if (/\boverlayfs\s.*\bok\b/.test(stdout)) node.#snapshotter = "overlayfs";
        return node;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await node[Symbol.asyncDispose]();
    throw new Error(`containerd did not start:\n${node.#child.output()}`);
  }

  /** Runs `ctr` against it. */
  async ctr(...words: string[]): Promise<CtrResult> {
    const [command = "", ...args] = this.#command("ctr", "--address", `${this.folder}/c.sock`, ...words);
    const result = await runBytes(command, { args });
    return { ...result, stdout: new TextDecoder().decode(result.stdout) };
  }

  /** Pulls an image and unpacks it. */
  pull(reference: string, ...args: string[]): Promise<CtrResult> {
    const hosts = ["--hosts-dir", `${this.folder}/certs.d`, "--snapshotter", this.#snapshotter];
    return this.ctr("images", "pull", ...hosts, ...args, reference);
  }

  /** Fetches an image's content of one platform, without unpacking it. */
  fetch(reference: string): Promise<CtrResult> {
    const hosts = ["--hosts-dir", `${this.folder}/certs.d`];
    return this.ctr("content", "fetch", ...hosts, "--platform", PLATFORM, reference);
  }

  /** Runs a container of an image that was pulled to its end. */
  run(reference: string): Promise<CtrResult> {
    const id = `lacewing-test-${Deno.pid}-${++this.#runs}`;
    // All that it needs in the node's own folder; a cgroup of its own leaves no parent behind.
    const own = ["--runc-root", `${this.folder}/runc`, "--fifo-dir", `${this.folder}/fifo`, "--cgroup", `/${id}`];
    return this.ctr("run", "--rm", "--snapshotter", this.#snapshotter, ...own, reference, id);
  }

  /** A connection to its CRI service. */
  cri(): CriClient {
    return new CriClient(`${this.folder}/c.sock`);
  }

  /** Digests of all that it holds, of the bytes as they stand on its disk. */
  async content(): Promise<string[]> {
    const folder = `${this.#contentFolder}/blobs/sha256`;
    const names = await namesIn(folder);
    return (await Promise.all(names.map((name) => fileDigest(`${folder}/${name}`)))).sort();
  }

  /** Resolves when so many bytes of blobs that are still on their way have come. */
  async received(bytes: number): Promise<void> {
    const folder = `${this.#contentFolder}/ingest`;
    const deadlineMs = performance.now() + RECEIVE_TIMEOUT_MS;
    while (performance.now() < deadlineMs) {
      const sizes = (await namesIn(folder)).map((name) =>
        Deno.stat(`${folder}/${name}/data`).then(({ size }) => size, () => 0)
      );
      if ((await Promise.all(sizes)).reduce((sum, size) => sum + size, 0) >= bytes) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`${bytes} B of unfinished blobs never came`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.ended;
    // The parent of a container that still runs is a process of its own, known by this node's socket.
    for (const pid of await processesOf(this.folder)) killQuietly(pid);
    for (const mount of await mountsUnder(this.folder)) await runBytes("umount", { args: ["--lazy", mount] });
    await Deno.remove(this.folder, { recursive: true });
  }

  get #contentFolder(): string {
    return `${this.folder}/root/io.containerd.content.v1.content`;
  }

  #command(...words: string[]): string[] {
    return [...(this.options.within ?? []), ...words];
  }
}

async function writeConfig(folder: string, options: ContainerdOptions): Promise<void> {
  const { registry, hostsFolder = registry } = options;
  const certs = `${folder}/certs.d/${hostsFolder}`;
  await Deno.mkdir(certs, { recursive: true });
  const server = hostsFolder === registry ? `server = "${options.server}"\n` : "";
  const ca = options.serverCa === undefined ? "" : `ca = "${options.serverCa}"\n`;
  const host = options.mirror ?? options.server;
  const mirror = `[host."${host}"]\n  capabilities = ["pull", "resolve"]\n`;
  await Deno.writeTextFile(`${certs}/hosts.toml`, server + ca + mirror);
  const lines = [
    "version = 2",
    `root = "${folder}/root"`,
    `state = "${folder}/state"`,
    `disabled_plugins = ["io.containerd.internal.v1.opt"]`,
    "[grpc]",
    `  address = "${folder}/c.sock"`,
    `[plugins."io.containerd.grpc.v1.cri"]`,
    `  stream_server_address = "127.0.0.1"`,
    `  stream_server_port = "0"`,
    `[plugins."io.containerd.grpc.v1.cri".containerd]`,
    // Works wherever the folder is; containers of CRI are not run.
    `  snapshotter = "native"`,
    `[plugins."io.containerd.grpc.v1.cri".registry]`,
    `  config_path = "${folder}/certs.d"`,
  ];
  await Deno.writeTextFile(`${folder}/config.toml`, lines.join("\n"));
}

function mayMount(): boolean {
  return new Deno.Command("unshare", { args: ["--mount", "true"], stdout: "null", stderr: "null" }).outputSync()
    .success;
}

async function namesIn(folder: string): Promise<string[]> {
  return await Array.fromAsync(Deno.readDir(folder), ({ name }) => name).catch(() => []);
}

/** Processes whose command line names the folder. */
async function processesOf(folder: string): Promise<number[]> {
  const pids: number[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const line = await Deno.readTextFile(`/proc/${name}/cmdline`).catch(() => "");
    if (line.includes(`${folder}/`)) pids.push(Number(name));
  }
  return pids;
}

function killQuietly(pid: number): void {
  try {
    Deno.kill(pid, "SIGKILL");
  } catch {
    // It has ended in the meantime.
  }
}

/** Mount points below the folder, the deepest first. */
async function mountsUnder(folder: string): Promise<string[]> {
  const text = await Deno.readTextFile("/proc/mounts");
  const points = text.split("\n").map((line) => line.split(" ")[1] ?? "");
  return points.filter((point) => point.startsWith(`${folder}/`)).sort().reverse();
}
