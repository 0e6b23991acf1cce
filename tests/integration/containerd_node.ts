/**
 * A containerd of a test's own: private root, state and socket in a temporary
 * folder, a hosts.toml that points at a mirror, and `ctr` against it. Needs
 * root; whether the tools are there is for the caller to ask.
 */
import { runBytes } from "../testutil/child.ts";

export interface HostsToml {
  /** The registry's name in references, as `registry.test`. */
  readonly registry: string;
  /** Name of its folder; default: the registry's. `_default` has no server of its own. */
  readonly folder?: string;
  /** URL of the origin. */
  readonly server: string;
  /** URL of the mirror. */
  readonly mirror: string;
}

export class ContainerdNode implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;

  private constructor(readonly folder: string) {
    this.#process = new Deno.Command("containerd", {
      args: ["-c", `${folder}/config.toml`],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
  }

  /** Starts it and waits until it answers. */
  static async start(hosts: HostsToml): Promise<ContainerdNode> {
    const folder = await Deno.makeTempDir({ prefix: "lacewing-containerd-" });
    const { registry, folder: name = registry } = hosts;
    const certs = `${folder}/certs.d/${name}`;
    await Deno.mkdir(certs, { recursive: true });
    await Deno.writeTextFile(
      `${certs}/hosts.toml`,
      `${
        name === registry ? `server = "${hosts.server}"\n` : ""
      }[host."${hosts.mirror}"]\n  capabilities = ["pull", "resolve"]\n`,
    );
    await Deno.writeTextFile(
      `${folder}/config.toml`,
      [
        "version = 2",
        `root = "${folder}/root"`,
        `state = "${folder}/state"`,
        `disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]`,
        "[grpc]",
        `  address = "${folder}/c.sock"`,
      ].join("\n"),
    );
    const node = new ContainerdNode(folder);
    for (let attempt = 0; attempt < 200; attempt++) {
      if ((await node.ctr("version")).code === 0) return node;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await node[Symbol.asyncDispose]();
    throw new Error("containerd did not start");
  }

  /** Runs `ctr` against it. */
  async ctr(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const result = await runBytes("ctr", { args: ["--address", `${this.folder}/c.sock`, ...args] });
    return { ...result, stdout: new TextDecoder().decode(result.stdout) };
  }

  /** Fetches an image's content of one platform, without unpacking it. */
  pull(reference: string, ...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const hosts = ["--hosts-dir", `${this.folder}/certs.d`];
    return this.ctr("content", "fetch", ...hosts, "--platform", "linux/amd64", ...args, reference);
  }

  /** Digests of all that it holds. */
  async content(): Promise<string[]> {
    return (await this.ctr("content", "ls", "-q")).stdout.split("\n").filter((line) => line !== "").sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.status;
    await Deno.remove(this.folder, { recursive: true }).catch(() => {});
  }
}
