// covers: peer/proxy/registry_mirror.ts
/** What a preheat job has brought is hit by containerd's first pull, which adds `ns` to every URL. */
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { taskId } from "../../peer/core/task_id.ts";
import { type Cluster, jobEnded, joined, startCluster } from "../testutil/cluster.ts";
import { Containerd, containerProblem } from "../testutil/containerd.ts";
import { type DaemonProcess, runClient } from "../testutil/process.ts";
import { startRegistry, type TestRegistry } from "../testutil/registry.ts";
import { makeRunnableImage, type RunnableImage } from "../testutil/runnable_image.ts";

const problem = containerProblem();
if (problem !== null) console.log(`containers_preheat_test: skipped, ${problem}`);

const NAME = "registry.test";
const SEED_FILTER = "Expires&Signature&ns";

interface Preheated {
  readonly runnable: RunnableImage;
  /** By digest. */
  readonly taskIds: ReadonlyMap<string, string>;
}

function proxyConfig(registry: TestRegistry, proxy: Record<string, unknown> = {}) {
  const registryMirror = { url: registry.url, registries: [{ host: NAME, url: registry.url }] };
  return { proxy: { tcpListen: { port: 0 }, registryMirror, ...proxy } };
}

/** Pushes a new image under a tag, and preheats it onto the seed peer. */
async function preheated(
  { registry, cluster, tag, seed }: { registry: TestRegistry; cluster: Cluster; tag: string; seed: number },
  args: Record<string, unknown>,
): Promise<Preheated> {
  const runnable = await makeRunnableImage([2_000_000, 700_000, 300], seed);
  await registry.push(runnable.image, { name: "lab/app", tag });
  const url = registry.manifestUrl("lab/app", tag);
  const body = { type: "preheat", args: { type: "image", url, ...args } };
  const created = await cluster.manager.api("POST", "/api/v1/jobs", body);
  assertEquals(created.status, 200, JSON.stringify(created.body));
  const job = await jobEnded(cluster.manager, created.body.id);
  assertEquals(job.status, "SUCCESS", JSON.stringify(job.result));
  const tasks: { digest: string; task_id: string }[] = job.result.clusters[0].tasks;
  return { runnable, taskIds: new Map(tasks.map(({ digest, task_id }) => [digest, task_id])) };
}

/** Pulls and runs the image on a fresh host. @returns bytes of blobs that the registry sent meanwhile */
async function pulled(registry: TestRegistry, daemon: DaemonProcess, tag: string, { runnable }: Preheated) {
  const before = (await registry.blobReads()).length;
  await using node = await Containerd.start({
    registry: NAME,
    server: registry.url,
    mirror: `http://${daemon.proxy}`,
  });
  const reference = `${NAME}/lab/app:${tag}`;
  const { code, stderr } = await node.pull(reference);
  assertEquals(code, 0, stderr);
  assertEquals(await node.content(), runnable.content);
  assertEquals((await node.run(reference)).stdout.trim(), runnable.prints);
  return (await registry.blobReads()).slice(before).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** The id of the task that a GET of this blob as containerd asks it leads to. */
async function taskOf(daemon: DaemonProcess, digest: string): Promise<string | null> {
  const response = await fetch(`http://${daemon.proxy}/v2/lab/app/blobs/${digest}?ns=${NAME}`);
  await response.body?.cancel();
  return response.headers.get("x-lacewing-task");
}

interface Explanation {
  readonly task_id: string;
  readonly found: { readonly jobs: readonly { state: string }[] };
  readonly proxy: readonly { ways: readonly string[]; task_id: string; differs: readonly string[] }[];
}

/** What `lacewing task explain` says of a URL. */
async function explained(daemon: DaemonProcess, url: string): Promise<Explanation> {
  const { code, stdout, stderr } = await runClient(["task", "explain", "--daemon-sock", daemon.socket, "--json", url]);
  assertEquals(code, 0, stderr);
  return JSON.parse(stdout);
}

Deno.test({
  name: "containerd pulls a preheated image with no blob byte from the registry, unless the daemon's filter keeps ns",
  ignore: problem !== null,
  async fn(test) {
    await using registry = await startRegistry();
    await using cluster = await startCluster({ daemons: 1, seeds: 1, daemon: { config: proxyConfig(registry) } });
    const [daemon] = cluster.daemons;
    const rows: [claim: string, tag: string, args: Record<string, unknown>][] = [
      [`preheated with filter ${SEED_FILTER}`, "filtered", { filter: SEED_FILTER }],
      ["preheated by default", "default", {}],
    ];
    for (const [index, [claim, tag, args]] of rows.entries()) {
      await test.step(claim, async () => {
        const image = await preheated({ registry, cluster, tag, seed: index + 1 }, args);
        assertEquals(await pulled(registry, daemon!, tag, image), 0);
        for (const digest of image.runnable.image.blobs.keys()) {
          assertEquals(await taskOf(daemon!, digest), image.taskIds.get(digest));
        }
      });
    }
    await test.step("with defaultFilter Expires&Signature ns stays in the id, and the registry is read", async () => {
      const config = proxyConfig(registry, { defaultFilter: "Expires&Signature" });
      await using other = await joined(cluster.manager, { config });
      const image = await preheated({ registry, cluster, tag: "kept", seed: 3 }, { filter: SEED_FILTER });
      const sent = await pulled(registry, other, "kept", image);
      assert(sent >= image.runnable.blobBytes, `the registry sent ${sent} of ${image.runnable.blobBytes} B`);
      for (const digest of image.runnable.image.blobs.keys()) {
        const url = `${registry.url}/v2/lab/app/blobs/${digest}?ns=${NAME}`;
        assertEquals(await taskOf(other, digest), taskId(url, { filter: "Expires&Signature" }));
        assertNotEquals(await taskOf(other, digest), image.taskIds.get(digest));
        assertEquals(await taskOf(daemon!, digest), image.taskIds.get(digest));
      }
      const [digest = ""] = image.runnable.image.blobs.keys();
      const blob = { url: `${registry.url}/v2/lab/app/blobs/${digest}`, task: image.taskIds.get(digest) };
      const why = `ns=${NAME} stays in the proxy's URL: proxy.defaultFilter is "Expires&Signature"`;
      for (const [asked, differs] of [[daemon!, []], [other, [why]]] as const) {
        const { task_id, found, proxy } = await explained(asked, blob.url);
        assertEquals([task_id, found.jobs[0]?.state], [blob.task, "SUCCESS"]);
        const byContainerd = proxy.find(({ ways }) => ways.includes("containerd"));
        assertEquals([byContainerd?.task_id, byContainerd?.differs], [await taskOf(asked, digest), differs]);
      }
    });
  },
});
