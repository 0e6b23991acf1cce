// covers: peer/proxy/access.ts
/**
 * Private images by real runtimes: the registry wants a password or a token
 * and speaks TLS with a certificate of an authority that only the daemon
 * knows. Who has rights pulls through the mirror; who has none gets nothing.
 */
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { jobEnded, startCluster } from "../testutil/cluster.ts";
import { Containerd, type ContainerdOptions, containerProblem } from "../testutil/containerd.ts";
import { podmanPull } from "../testutil/podman.ts";
import { type DaemonProcess, spawnDaemon } from "../testutil/process.ts";
import { hasTools, type RegistryOptions, startRegistry, type TestRegistry } from "../testutil/registry.ts";
import { makeRunnableImage, type RunnableImage } from "../testutil/runnable_image.ts";

const problem = containerProblem();
if (problem !== null) console.log(`containers_private_test: skipped, ${problem}`);
const hasPodman = hasTools(["podman"]);
if (!hasPodman) console.log("containers_private_test: podman's part is skipped, it is not installed");

const NAME = "registry.test";
const REFERENCE = `${NAME}/lab/app:v1`;
const USER = { username: "user", password: "pass" };

/** A registry with a private image, and the proxy's configuration that knows it by a name and trusts its authority. */
interface Private {
  readonly registry: TestRegistry;
  readonly image: RunnableImage;
  /** Null without TLS. */
  readonly caPath: string | null;
  readonly config: Record<string, unknown>;
}

async function privateRegistry(options: RegistryOptions, stack: AsyncDisposableStack): Promise<Private> {
  const image = await makeRunnableImage([1_500_000, 600_000, 300]);
  const registry = stack.use(await startRegistry(options));
  // skopeo, which pushes, asks for its token by GET.
  registry.tokens?.allowGet(true);
  await registry.push(image.image, { name: "lab/app", tag: "v1" });
  registry.tokens?.allowGet(options.token?.postOnly !== true);
  const caPath = registry.ca === null ? null : await Deno.makeTempFile({ suffix: ".pem" });
  if (caPath !== null) {
    stack.defer(() => Deno.remove(caPath));
    await Deno.writeTextFile(caPath, registry.ca ?? "");
  }
  const { url } = registry;
  const registryMirror = { url, certs: caPath === null ? [] : [caPath], registries: [{ host: NAME, url }] };
  return { registry, image, caPath, config: { proxy: { tcpListen: { port: 0 }, registryMirror } } };
}

function hostsOf({ registry, caPath }: Private, { proxy }: DaemonProcess): ContainerdOptions {
  const trust = caPath === null ? {} : { serverCa: caPath };
  return { registry: NAME, server: registry.url, ...trust, mirror: `http://${proxy}` };
}

/** How many bytes of blobs the registry has sent, and how many of them to somebody else than the daemon. */
async function sent({ registry }: Private): Promise<{ all: number; pastDaemon: number }> {
  const reads = await registry.blobReads();
  const sum = (list: typeof reads) => list.filter(({ status }) => status < 300).reduce((all, it) => all + it.bytes, 0);
  return { all: sum(reads), pastDaemon: sum(reads.filter(({ userAgent }) => !userAgent.startsWith("lacewing/"))) };
}

const WAYS: RegistryOptions[] = [{ auth: "htpasswd" }, { auth: "token" }, { auth: "token", token: { postOnly: true } }];

for (const options of WAYS) {
  const { auth, token } = options;
  Deno.test({
    name: `a private image behind TLS and ${auth}${
      token ? " by POST alone" : ""
    } is pulled with the user's credentials`,
    ignore: problem !== null,
    async fn(test) {
      await using stack = new AsyncDisposableStack();
      const origin = await privateRegistry({ ...options, tls: true }, stack);
      const daemon = stack.use(await spawnDaemon({ config: origin.config }));
      const { content, prints, blobBytes, image } = origin.image;
      await test.step("by ctr --user, which runs it", async () => {
        await using node = await Containerd.start(hostsOf(origin, daemon));
        const { code, stderr } = await node.pull(REFERENCE, "--user", "user:pass");
        assertEquals(code, 0, stderr + daemon.log());
        assertEquals(await node.content(), content);
        assertEquals((await node.run(REFERENCE)).stdout.trim(), prints);
      });
      const once = { all: blobBytes, pastDaemon: 0 };
      assertEquals(await sent(origin), once);
      await test.step("not by ctr with a wrong password, or with none", async () => {
        await using node = await Containerd.start(hostsOf(origin, daemon));
        for (const user of [["--user", "user:wrong"], []]) {
          assertNotEquals((await node.pull(REFERENCE, ...user)).code, 0);
          assertEquals(await node.content(), []);
        }
      });
      await test.step("by CRI with credentials, from the daemon's cache", async () => {
        await using node = await Containerd.start(hostsOf(origin, daemon));
        await using cri = node.cri();
        const denied = await cri.pullImage(REFERENCE, { ...USER, password: "wrong" });
        assertNotEquals(denied.code, 0);
        assertEquals(await node.content(), []);
        const { code, message, imageRef } = await cri.pullImage(REFERENCE, USER);
        assertEquals([code, imageRef], [0, image.images[0]!.config.digest], message);
        assertEquals(await node.content(), content);
        assertEquals(await sent(origin), once);
      });
      if (hasPodman && token === undefined) {
        await test.step("by podman with an authfile for the mirror, from the daemon's cache", async () => {
          const folder = `${daemon.folder}/podman`;
          await Deno.mkdir(folder);
          const mirror = `[[registry.mirror]]\nlocation = "${daemon.proxy}/${NAME}"\ninsecure = true\n`;
          const registries = `[[registry]]\nlocation = "${NAME}"\n${mirror}`;
          const pull = (credentials: Record<string, string>) =>
            podmanPull(REFERENCE, { folder, registries, credentials });
          assertNotEquals((await pull({ [daemon.proxy!]: "user:wrong" })).code, 0);
          const { code, stdout, stderr } = await pull({ [daemon.proxy!]: "user:pass" });
          assertEquals([code, `sha256:${stdout.trim()}`], [0, image.images[0]!.config.digest], stderr);
          assertEquals(await sent(origin), once);
        });
      }
      // Credentials that name the registry's own address are for it alone: containerd gives the mirror nothing.
      await test.step("by CRI with credentials for the registry's address, from the registry itself", async () => {
        await using node = await Containerd.start(hostsOf(origin, daemon));
        await using cri = node.cri();
        const serverAddress = origin.registry.url;
        const { code, message } = await cri.pullImage(REFERENCE, { ...USER, serverAddress });
        assertEquals(code, 0, message);
        assertEquals(await node.content(), content);
        assertEquals(await sent(origin), { all: 2 * blobBytes, pastDaemon: blobBytes });
      });
    },
  });
}

Deno.test({
  name: "a second user without rights gets no byte of private images that a pull and a preheat have brought",
  ignore: problem !== null,
  async fn() {
    await using stack = new AsyncDisposableStack();
    const strangers = { stranger: "word" };
    // Without TLS: the manager gives no password to a token server in clear text when the registry has TLS.
    const origin = await privateRegistry({ auth: "token", token: { strangers } }, stack);
    const { registry, config } = origin;
    const preheated = await makeRunnableImage([400_000, 300], 2);
    await registry.push(preheated.image, { name: "lab/app", tag: "v2" });
    const cluster = stack.use(await startCluster({ daemons: 2, daemon: { config } }));
    const args = { type: "image", url: registry.manifestUrl("lab/app", "v2"), scope: "all_peers", ...USER };
    const created = await cluster.manager.api("POST", "/api/v1/jobs", { type: "preheat", args });
    const job = await jobEnded(cluster.manager, created.body.id);
    assertEquals(job.status, "SUCCESS", JSON.stringify(job.result));
    const images = new Map([[REFERENCE, origin.image], [`${NAME}/lab/app:v2`, preheated]]);
    for (const [reference, { content }] of images) {
      await using node = await Containerd.start(hostsOf(origin, cluster.daemons[0]!));
      const { code, stderr } = await node.pull(reference, "--user", "user:pass");
      assertEquals(code, 0, stderr);
      assertEquals(await node.content(), content);
    }
    // The two images share busybox's layer; each way brought what it brought once.
    const before = await sent(origin);
    assertEquals(before.pastDaemon, 0);
    assert(before.all <= origin.image.blobBytes + preheated.blobBytes, `the registry sent ${before.all} B`);
    const bearer = await strangersToken(registry);
    for (const daemon of cluster.daemons) {
      await using node = await Containerd.start(hostsOf(origin, daemon));
      for (const [reference, { image }] of images) {
        for (const wanted of [reference, `${NAME}/lab/app@${image.index.digest}`]) {
          assertNotEquals((await node.pull(wanted, "--user", "stranger:word")).code, 0);
        }
        for (const digest of image.blobs.keys()) await assertDenied(daemon, digest, bearer);
      }
      assertEquals(await node.content(), []);
    }
    assertEquals(await sent(origin), before);
    assert(registry.tokens!.requests.some(({ method }) => method === "POST"), "containerd asks by POST");
  },
});

/** Who knows a digest and asks for the blob alone, whole or in parts, is not better off. */
async function assertDenied(daemon: DaemonProcess, digest: string, bearer: string): Promise<void> {
  const url = `http://${daemon.proxy}/v2/lab/app/blobs/${digest}?ns=${NAME}`;
  for (const range of ["bytes=0-", "bytes=1-", "none"]) {
    const response = await fetch(url, { headers: { authorization: `Bearer ${bearer}`, range } });
    assertEquals([response.status, (await response.json()).errors[0].code], [401, "UNAUTHORIZED"]);
  }
}

/** A token that the registry trusts, and that grants nothing. */
async function strangersToken({ tokens }: TestRegistry): Promise<string> {
  const headers = { authorization: `Basic ${btoa("stranger:word")}` };
  const response = await fetch(`${tokens!.realm}?service=test-registry&scope=repository:lab/app:pull`, { headers });
  return (await response.json()).token;
}
