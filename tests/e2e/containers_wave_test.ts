// covers: peer/proxy/proxy.ts
/** A wave of container hosts: four containerds in network namespaces, each with its own daemon, pull one image at once. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { BenchNetwork } from "../bench/network.ts";
import { joined } from "../testutil/cluster.ts";
import { Containerd, containerProblem, namespaceProblem } from "../testutil/containerd.ts";
import { spawnManager } from "../testutil/process.ts";
import { startRegistry } from "../testutil/registry.ts";
import { makeRunnableImage } from "../testutil/runnable_image.ts";

const problem = containerProblem() ?? namespaceProblem();
if (problem !== null) console.log(`containers_wave_test: skipped, ${problem}`);

const MIB = 1024 * 1024;
const REFERENCE = "registry.test/lab/app:v1";
const NODES = ["n1", "n2", "n3", "n4"];

Deno.test({
  name: "four containerds that pull at once get the image right and run it, and the registry sends it about once",
  ignore: problem !== null,
  async fn() {
    const hosts = ["origin", "seed", ...NODES].map((name) => ({ name, up: 0, down: 0 }));
    await using network = await BenchNetwork.create({ hosts });
    const origin = { address: network.address("origin"), within: network.on("origin", []) };
    const { image, content, prints, blobBytes } = await makeRunnableImage([8 * MIB, 6 * MIB, 4 * MIB, MIB, 1000]);
    await using registry = await startRegistry({ place: origin });
    await registry.push(image, { name: "lab/app", tag: "v1" });
    await using stack = new AsyncDisposableStack();
    const manager = stack.use(
      await spawnManager({
        within: origin.within,
        listen: `${origin.address}:8080`,
        config: { auth: { disabled: true } },
      }),
    );
    const join = async (name: string, seed: boolean) => {
      const address = network.address(name);
      const host = { advertiseIP: address, listenIP: address };
      const registryMirror = { url: registry.url, registries: [{ host: "registry.test", url: registry.url }] };
      const config = { host, proxy: { tcpListen: { port: 0 }, registryMirror } };
      return stack.use(await joined(manager, { within: network.on(name, []), hostname: name, seed, config }));
    };
    await join("seed", true);
    const nodes = await Promise.all(NODES.map(async (name) => {
      const mirror = `http://${(await join(name, false)).proxy}`;
      const node = { registry: "registry.test", server: registry.url, mirror, within: network.on(name, []) };
      return stack.use(await Containerd.start(node));
    }));

    const pulls = await Promise.all(nodes.map((node) => node.pull(REFERENCE)));

    for (const [index, { code, stderr }] of pulls.entries()) assertEquals(code, 0, `${NODES[index]}: ${stderr}`);
    for (const node of nodes) {
      assertEquals(await node.content(), content);
      const { code, stdout, stderr } = await node.run(REFERENCE);
      assertEquals([code, stdout.trim()], [0, prints], stderr);
    }
    const reads = await registry.blobReads();
    const sent = reads.reduce((sum, { bytes }) => sum + bytes, 0);
    assert(sent <= 1.1 * blobBytes, `the registry sent ${(sent / blobBytes).toFixed(3)} times the image's blobs`);
    assert(sent >= blobBytes, `the access log has ${sent} B, the blobs are ${blobBytes} B`);
    for (const { userAgent } of reads) assertStringIncludes(userAgent, "lacewing");
  },
});
