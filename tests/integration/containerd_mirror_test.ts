/** Real clients copy from Debian's registry through real daemons; more of containerd is in tests/e2e/containers_*. */
import { assert, assertEquals } from "@std/assert";
import { runBytes } from "../testutil/child.ts";
import { Containerd } from "../testutil/containerd.ts";
import { makeImage } from "../testutil/image.ts";
import { spawnDaemon } from "../testutil/process.ts";
import { hasTools, startRegistry, type TestRegistry } from "../testutil/registry.ts";

const hasRegistry = hasTools(["docker-registry", "skopeo"]);
const ignore = !hasRegistry || !hasTools(["containerd", "ctr"]) || Deno.uid() !== 0;
const IMAGE = makeImage({ scale: 4 });
const AMD64 = IMAGE.images.find(({ platform }) => platform === "linux/amd64")!;
const CONTENT = [IMAGE.index, AMD64.manifest, AMD64.config, ...AMD64.layers].map(({ digest }) => digest).sort();
const NAME = "registry.test";

/** A registry with the image, and the proxy's section that knows it by a name. */
async function registryAndProxy(options: Parameters<typeof startRegistry>[0] = {}) {
  const registry = await startRegistry(options);
  await registry.push(IMAGE, { name: "lab/app", tag: "v1" });
  const proxy = {
    tcpListen: { port: 0 },
    registryMirror: { url: registry.url, registries: [{ host: NAME, url: registry.url }] },
  };
  return { registry, config: { proxy } };
}

function blobReads(registry: TestRegistry): string[] {
  return registry.accessLog().filter((line) => / "GET \S+\/blobs\/sha256/.test(line));
}

Deno.test({
  name: "containerd pulls through the mirror, and again with no blob read from the registry",
  ignore,
  async fn() {
    const { registry, config } = await registryAndProxy();
    await using _registry = registry;
    await using daemon = await spawnDaemon({ config });
    const hosts = { registry: NAME, server: registry.url, mirror: `http://${daemon.proxy}` };
    {
      await using node = await Containerd.start(hosts);
      const pulled = await node.fetch(`${NAME}/lab/app:v1`);
      assertEquals(pulled.code, 0, pulled.stderr);
      assertEquals(await node.content(), CONTENT);
    }
    const reads = blobReads(registry).length;
    assert(reads > 0);
    // The second time by the file that stands for every registry.
    await using node = await Containerd.start({ ...hosts, hostsFolder: "_default" });
    const pulled = await node.fetch(`${NAME}/lab/app:v1`);
    assertEquals(pulled.code, 0, pulled.stderr);
    assertEquals(await node.content(), CONTENT);
    assertEquals(blobReads(registry).length, reads);
  },
});

for (const auth of ["plain", "htpasswd", "token"] as const) {
  Deno.test({
    name: `skopeo copies through the mirror of a registry with ${auth} access`,
    ignore: !hasRegistry,
    async fn() {
      const { registry, config } = await registryAndProxy({ auth });
      await using _registry = registry;
      await using daemon = await spawnDaemon({ config });
      const credentials = auth === "plain" ? [] : ["--src-creds", "user:pass"];
      for (const [index, path] of ["lab/app", `${NAME}/lab/app`].entries()) {
        const out = `${daemon.folder}/copy-${index}`;
        const copied = await skopeo(daemon.folder, [
          "copy",
          "--all",
          "--src-tls-verify=false",
          ...credentials,
          `docker://${daemon.proxy}/${path}:v1`,
          `dir:${out}`,
        ]);
        assertEquals(copied.code, 0, copied.stderr);
        for (const { digest, bytes } of IMAGE.blobs.values()) {
          assertEquals(await Deno.readFile(`${out}/${digest.slice("sha256:".length)}`), bytes);
        }
      }
      // By the second path the URLs, and so the tasks, are the same ones.
      const digests = blobReads(registry).filter((line) => / 20[06] /.test(line)).map((line) =>
        /sha256:\w+/.exec(line)?.[0]
      );
      assertEquals(new Set(digests).size, IMAGE.blobs.size);
    },
  });
}

Deno.test({
  name: "skopeo pulls from a registry under TLS whose authority only the daemon knows",
  ignore: !hasRegistry,
  async fn() {
    const registry = await startRegistry({ tls: true });
    await using _registry = registry;
    await registry.push(IMAGE, { name: "lab/app", tag: "v1" });
    const folder = await Deno.makeTempDir();
    try {
      await Deno.writeTextFile(`${folder}/ca.pem`, registry.ca ?? "");
      for (const trust of [{ certs: [`${folder}/ca.pem`] }, { insecure: true }]) {
        const config = { proxy: { tcpListen: { port: 0 }, registryMirror: { url: registry.url, ...trust } } };
        await using daemon = await spawnDaemon({ config });
        const args = ["--src-tls-verify=false", `docker://${daemon.proxy}/lab/app:v1`, `dir:${daemon.folder}/copy`];
        const copied = await skopeo(daemon.folder, ["copy", "--all", ...args]);
        assertEquals(copied.code, 0, copied.stderr + daemon.log());
      }
      await using strict = await spawnDaemon({
        config: { proxy: { tcpListen: { port: 0 }, registryMirror: { url: registry.url } } },
      });
      const args = ["--src-tls-verify=false", `docker://${strict.proxy}/lab/app:v1`, `dir:${strict.folder}/copy`];
      assert((await skopeo(strict.folder, ["copy", "--all", ...args])).code !== 0);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

Deno.test({
  name: "skopeo pulls by the registry's own name through a mirror of registries.conf, with the default mirror away",
  ignore: !hasRegistry,
  async fn() {
    const { registry, config } = await registryAndProxy();
    await using _registry = registry;
    const registryMirror = { ...config.proxy.registryMirror, url: "http://127.0.0.1:9" };
    await using daemon = await spawnDaemon({ config: { proxy: { ...config.proxy, registryMirror } } });
    const registries = `[[registry]]
location = "${NAME}"
  [[registry.mirror]]
  location = "${daemon.proxy}/${NAME}"
  insecure = true
`;
    const args = ["copy", "--all", `docker://${NAME}/lab/app:v1`, `dir:${daemon.folder}/copy`];
    const copied = await skopeo(daemon.folder, args, registries);
    assertEquals(copied.code, 0, copied.stderr + daemon.log());
    assertEquals(await Deno.readFile(`${daemon.folder}/copy/manifest.json`), IMAGE.index.bytes);
  },
});

async function skopeo(folder: string, args: readonly string[], registries = "") {
  await Deno.writeTextFile(`${folder}/policy.json`, `{"default":[{"type":"insecureAcceptAnything"}]}`);
  await Deno.writeTextFile(`${folder}/registries.conf`, registries);
  const own = ["--policy", `${folder}/policy.json`, "--registries-conf", `${folder}/registries.conf`];
  return await runBytes("skopeo", { args: [...own, "--tmpdir", folder, ...args] });
}
