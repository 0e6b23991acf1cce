/** Processes of ours that die while containerd pulls: the pull ends well, and of a manager's death it hears nothing. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { Child } from "../testutil/child.ts";
import { startCluster } from "../testutil/cluster.ts";
import { Containerd, containerProblem } from "../testutil/containerd.ts";
import { spawnDaemon } from "../testutil/process.ts";
import { startRegistry, type TestRegistry } from "../testutil/registry.ts";
import { makeRunnableImage, type RunnableImage } from "../testutil/runnable_image.ts";

const problem = containerProblem();
if (problem !== null) console.log(`containers_deaths_test: skipped, ${problem}`);

const MIB = 1024 * 1024;
const NAME = "registry.test";
const REFERENCE = `${NAME}/lab/app:v1`;
/** Slow enough to be met in the middle, however fast the machine. */
const SLOW = { download: { totalRateLimit: "4Mi" } };
const SIZES = [9 * MIB, 5 * MIB, 2 * MIB];

async function registryWithImage(image: RunnableImage): Promise<TestRegistry> {
  const registry = await startRegistry();
  await registry.push(image.image, { name: "lab/app", tag: "v1" });
  return registry;
}

function proxyConfig({ url }: TestRegistry) {
  return { proxy: { tcpListen: { port: 0 }, registryMirror: { url, registries: [{ host: NAME, url }] } }, ...SLOW };
}

async function assertRuns(node: Containerd, { content, prints }: RunnableImage): Promise<void> {
  assertEquals(await node.content(), content);
  const { stdout, stderr } = await node.run(REFERENCE);
  assertEquals(stdout.trim(), prints, stderr);
}

for (const signal of ["SIGKILL", "SIGTERM"] as const) {
  Deno.test({
    name: `containerd ends from the registry, and goes on where it was, when the daemon gets ${signal} in mid-pull`,
    ignore: problem !== null,
    async fn() {
      const image = await makeRunnableImage(SIZES);
      await using registry = await registryWithImage(image);
      await using daemon = await spawnDaemon({ config: proxyConfig(registry) });
      const hosts = { registry: NAME, server: registry.url, mirror: `http://${daemon.proxy}` };
      await using node = await Containerd.start(hosts);
      const pulling = node.pull(REFERENCE);
      await node.received(2 * MIB);
      await daemon.kill(signal);
      const { code, stderr } = await pulling;
      assertEquals(code, 0, stderr);
      await assertRuns(node, image);
      const own = (await registry.blobReads()).filter(({ userAgent }) => userAgent.startsWith("containerd/"));
      assert(own.some(({ status }) => status === 206), `containerd began anew: ${JSON.stringify(own)}`);
    },
  });
}

Deno.test({
  name: "a pull that was killed with its blobs half here ends through the daemon when it is begun again",
  ignore: problem !== null,
  async fn() {
    const image = await makeRunnableImage(SIZES);
    await using registry = await registryWithImage(image);
    await using daemon = await spawnDaemon({ config: proxyConfig(registry) });
    // Nobody is at the registry's own address.
    const hosts = { registry: NAME, server: "http://127.0.0.1:1", mirror: `http://${daemon.proxy}` };
    await using node = await Containerd.start(hosts);
    const own = ["--address", `${node.folder}/c.sock`];
    const killed = new Child([...own, "images", "pull", "--hosts-dir", `${node.folder}/certs.d`, REFERENCE], {
      command: "ctr",
    });
    await node.received(2 * MIB);
    killed.kill("SIGKILL");
    await killed.ended;
    assert((await node.content()).length < image.content.length, "it had ended before");
    const { code, stderr } = await node.pull(REFERENCE);
    assertEquals(code, 0, stderr);
    await assertRuns(node, image);
  },
});

Deno.test({
  name: "two containerds pull through their daemons to the end when the manager is killed in mid-pull",
  ignore: problem !== null,
  async fn() {
    const image = await makeRunnableImage(SIZES);
    await using registry = await registryWithImage(image);
    await using cluster = await startCluster({ daemons: 2, seeds: 1, daemon: { config: proxyConfig(registry) } });
    await using stack = new AsyncDisposableStack();
    const nodes = await Promise.all(cluster.daemons.map(async ({ proxy }) => {
      const hosts = { registry: NAME, server: registry.url, mirror: `http://${proxy}` };
      return stack.use(await Containerd.start(hosts));
    }));
    const pulls = nodes.map((node) => node.pull(REFERENCE));
    await Promise.all(nodes.map((node) => node.received(2 * MIB)));
    await cluster.manager.kill("SIGKILL");
    for (const { code, stderr } of await Promise.all(pulls)) assertEquals(code, 0, stderr);
    for (const node of nodes) await assertRuns(node, image);
    // Nor does a pull notice that begins when the manager is gone.
    const later = await makeRunnableImage([MIB], 2);
    await registry.push(later.image, { name: "lab/app", tag: "v2" });
    const { code, stderr } = await nodes[0]!.pull(`${NAME}/lab/app:v2`);
    assertEquals(code, 0, stderr);
    for (const { userAgent } of await registry.blobReads()) assertStringIncludes(userAgent, "lacewing/");
  },
});
