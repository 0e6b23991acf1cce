/**
 * `lacewing setup` writes into a folder that stands for the machine, and the
 * real runtimes pull with exactly these files: of a registry whose name leads
 * nowhere, so that only the mirror can have served it.
 */
import { assert, assertEquals } from "@std/assert";
import { Child, runBytes } from "../testutil/child.ts";
import { Containerd, containerProblem } from "../testutil/containerd.ts";
import { podmanPull } from "../testutil/podman.ts";
import { type DaemonProcess, runClient, spawnDaemon } from "../testutil/process.ts";
import { hasTools, startRegistry, type TestRegistry } from "../testutil/registry.ts";
import { makeRunnableImage, type RunnableImage } from "../testutil/runnable_image.ts";

const problem = containerProblem();
if (problem !== null) console.log(`setup_runtimes_test: skipped, ${problem}`);
const absent = ["podman", "dockerd", "docker"].filter((tool) => !hasTools([tool]));
if (absent.length > 0) console.log(`setup_runtimes_test: parts are skipped, not installed: ${absent.join(", ")}`);

const NAME = "registry.test";
const REFERENCE = `${NAME}/lab/app:v1`;

class Machine implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  private constructor(
    readonly registry: TestRegistry,
    readonly daemon: DaemonProcess,
    readonly image: RunnableImage,
    /** What stands for `/`. */
    readonly root: string,
  ) {}

  static async start(): Promise<Machine> {
    await using stack = new AsyncDisposableStack();
    const registry = stack.use(await startRegistry());
    const image = await makeRunnableImage([600_000, 300]);
    await registry.push(image.image, { name: "lab/app", tag: "v1" });
    const registryMirror = { url: registry.url, registries: [{ host: NAME, url: registry.url }] };
    const daemon = stack.use(await spawnDaemon({ config: { proxy: { tcpListen: { port: 0 }, registryMirror } } }));
    const root = await Deno.makeTempDir({ prefix: "lacewing-setup-" });
    stack.defer(() => Deno.remove(root, { recursive: true }).catch(() => {}));
    const machine = new Machine(registry, daemon, image, root);
    machine.#stack.use(stack.move());
    return machine;
  }

  /** Runs setup; the mirror is the one that the daemon names. */
  async setUp(...args: string[]): Promise<void> {
    const { code, stderr } = await runClient([
      "setup",
      ...args,
      "--root",
      this.root,
      "--daemon-sock",
      this.daemon.socket,
    ]);
    assertEquals(code, 0, stderr);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

for (const registries of [[], ["--registry", NAME]]) {
  Deno.test({
    name: `containerd pulls and runs an image after setup containerd ${registries.join(" ")}, by ctr and by CRI`,
    ignore: problem !== null,
    async fn() {
      await using machine = await Machine.start();
      await machine.setUp("containerd", ...registries);
      const folder = `${machine.root}/etc/containerd/certs.d`;
      await using node = await Containerd.start({
        registry: NAME,
        server: "http://127.0.0.1:1",
        mirror: "http://127.0.0.1:1",
      });
      // CRI looks into the folder at each pull.
      await Deno.remove(`${node.folder}/certs.d`, { recursive: true });
      await Deno.symlink(folder, `${node.folder}/certs.d`);
      const pulled = await node.pull(REFERENCE);
      assertEquals(pulled.code, 0, pulled.stderr);
      assertEquals((await node.run(REFERENCE)).stdout.trim(), machine.image.prints);
      await using cri = node.cri();
      const { code, message } = await cri.pullImage(REFERENCE);
      assertEquals(code, 0, message);
    },
  });
}

Deno.test({
  name: "podman pulls an image after setup podman, with the daemon's registries",
  ignore: problem !== null || absent.includes("podman"),
  async fn() {
    await using machine = await Machine.start();
    await machine.setUp("podman");
    const registries = await Deno.readTextFile(`${machine.root}/etc/containers/registries.conf.d/lacewing.conf`);
    const pulled = await podmanPull(REFERENCE, { folder: machine.root, registries, credentials: {} });
    assertEquals(pulled.code, 0, pulled.stderr);
  },
});

Deno.test({
  name: "skopeo copies an image after setup crio, from the same file",
  ignore: problem !== null,
  async fn() {
    await using machine = await Machine.start();
    await machine.setUp("crio", "--registry", NAME);
    const policy = `${machine.root}/policy.json`;
    await Deno.writeTextFile(policy, `{"default":[{"type":"insecureAcceptAnything"}]}`);
    const conf = `${machine.root}/etc/containers/registries.conf.d/lacewing.conf`;
    const own = ["--policy", policy, "--registries-conf", conf, "--tmpdir", machine.root];
    const { code, stderr } = await runBytes("skopeo", {
      args: [...own, "copy", "--quiet", `docker://${REFERENCE}`, `dir:${machine.root}/copy`],
    });
    assertEquals(code, 0, stderr);
  },
});

Deno.test({
  name: "dockerd pulls an image after setup docker, beside what stands in its daemon.json",
  ignore: problem !== null || absent.includes("dockerd") || absent.includes("docker"),
  async fn() {
    await using machine = await Machine.start();
    await using node = await Containerd.start({
      registry: NAME,
      server: "http://127.0.0.1:1",
      mirror: "http://127.0.0.1:1",
    });
    const { root } = machine;
    const path = `${root}/etc/docker/daemon.json`;
    const own = {
      hosts: [`unix://${root}/docker.sock`],
      "data-root": `${root}/data`,
      "exec-root": `${root}/exec`,
      pidfile: `${root}/docker.pid`,
      containerd: `${node.folder}/c.sock`,
      bridge: "none",
      iptables: false,
      "ip-masq": false,
      "storage-driver": "vfs",
    };
    await Deno.mkdir(`${root}/etc/docker`, { recursive: true });
    await Deno.writeTextFile(path, JSON.stringify(own, null, 2));
    await machine.setUp("docker");
    const config = JSON.parse(await Deno.readTextFile(path));
    assertEquals(config, { ...own, "registry-mirrors": [`http://${machine.daemon.proxy}`] });
    const dockerd = new Child(["--config-file", path], { command: "dockerd" });
    try {
      await dockerd.line((line) => line.includes("API listen on"));
      // A name without a host is one of Docker Hub.
      const { code, stderr } = await runBytes("docker", { args: ["-H", own.hosts[0]!, "pull", "lab/app:v1"] });
      assertEquals(code, 0, stderr + dockerd.output().slice(-4000));
    } finally {
      dockerd.kill("SIGTERM");
      await dockerd.ended;
    }
    assert((await machine.registry.blobReads()).length > 0);
  },
});
