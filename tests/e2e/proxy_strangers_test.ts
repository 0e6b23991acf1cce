// covers: peer/proxy/strangers.ts
/**
 * Several registries through one mirror, each behind tokens of its own realm,
 * for clients that name the registry in the path and sign in at the configured
 * one: podman, skopeo, buildah and CRI-O.
 */
import { assert, assertEquals } from "@std/assert";
import { makeImage } from "../testutil/image.ts";
import { podmanPull } from "../testutil/podman.ts";
import { type DaemonProcess, spawnDaemon } from "../testutil/process.ts";
import { hasTools, startRegistry, type TestRegistry } from "../testutil/registry.ts";
import { TOKEN_SERVICE } from "../testutil/token_server.ts";

const hasRegistry = hasTools(["docker-registry", "skopeo"]);
if (!hasRegistry) console.log("proxy_strangers_test: skipped, docker-registry or skopeo is not installed");
const hasPodman = hasTools(["podman"]);
if (!hasPodman) console.log("proxy_strangers_test: podman's part is skipped, it is not installed");

const IMAGE = makeImage({ scale: 0.01 });
const NAME = "other.test";
const LAYER = IMAGE.images[0]!.layers[0]!;

/** The configured registry, another one that goes by a name, and a daemon that knows both. */
async function stage(anonymous: boolean, stack: AsyncDisposableStack) {
  const start = async (isOpen: boolean): Promise<TestRegistry> => {
    const registry = stack.use(await startRegistry({ auth: "token", token: { anonymous: isOpen } }));
    await registry.push(IMAGE, { name: "lab/app", tag: "v1" });
    return registry;
  };
  const [own, other] = [await start(true), await start(anonymous)];
  const registryMirror = { url: own.url, registries: [{ host: NAME, url: other.url }] };
  const daemon = stack.use(await spawnDaemon({ config: { proxy: { tcpListen: { port: 0 }, registryMirror } } }));
  return { own, other, daemon };
}

async function tokenOf({ tokens }: TestRegistry, name: string): Promise<string> {
  const url = `${tokens!.realm}?${new URLSearchParams({ service: TOKEN_SERVICE, scope: `repository:${name}:pull` })}`;
  return `Bearer ${(await (await fetch(url)).json()).token}`;
}

async function ask({ proxy }: DaemonProcess, path: string, headers: Record<string, string>) {
  const response = await fetch(`http://${proxy}/v2/${path}`, { headers });
  return { status: response.status, headers: response.headers, bytes: await response.bytes() };
}

const ACCEPT = { accept: IMAGE.index.mediaType };

for (const credentials of ["the configured registry's token", "none"]) {
  Deno.test({
    name: `public content of another registry is given to a client with ${credentials}`,
    ignore: !hasRegistry,
    async fn() {
      await using stack = new AsyncDisposableStack();
      const { own, other, daemon } = await stage(true, stack);
      const before = other.tokens!.requests.length;
      const token: Record<string, string> = credentials === "none"
        ? {}
        : { authorization: await tokenOf(own, `${NAME}/lab/app`) };
      // A blob first: nothing is known of the registry yet.
      const blob = await ask(daemon, `${NAME}/lab/app/blobs/${LAYER.digest}`, token);
      assertEquals([blob.status, blob.headers.get("x-lacewing-source"), blob.bytes], [200, "origin", LAYER.bytes]);
      const manifest = await ask(daemon, `${NAME}/lab/app/manifests/v1`, { ...token, ...ACCEPT });
      assertEquals([manifest.status, manifest.bytes], [200, IMAGE.index.bytes]);
      const again = await ask(daemon, `${NAME}/lab/app/blobs/${LAYER.digest}`, token);
      assertEquals([again.status, again.headers.get("x-lacewing-source")], [200, "local"]);
      const asked = other.tokens!.requests.slice(before);
      assert(asked.length > 0 && asked.every(({ authorization }) => authorization === null), JSON.stringify(asked));
    },
  });
}

Deno.test({
  name: "what another registry gives no stranger stays refused in its own words",
  ignore: !hasRegistry,
  async fn() {
    await using stack = new AsyncDisposableStack();
    const { own, other, daemon } = await stage(false, stack);
    const token = { authorization: await tokenOf(own, `${NAME}/lab/app`) };
    for (const path of [`${NAME}/lab/app/blobs/${LAYER.digest}`, `${NAME}/lab/app/manifests/v1`]) {
      const { status, headers } = await ask(daemon, path, { ...token, ...ACCEPT });
      assertEquals(status, 401);
      assert(headers.get("www-authenticate")?.includes(other.tokens!.realm));
    }
  },
});

Deno.test({
  name: "podman pulls public images of two registries with realms of their own through one mirror",
  ignore: !hasRegistry || !hasPodman,
  async fn() {
    await using stack = new AsyncDisposableStack();
    const { own, other, daemon } = await stage(true, stack);
    const names = new Map([[own.url.replace("http://", ""), own], [NAME, other]]);
    const registries = [...names.keys()].map((name) =>
      `[[registry]]\nlocation = "${name}"\n[[registry.mirror]]\nlocation = "${daemon.proxy}/${
        name.replace(":", "__")
      }"\ninsecure = true\n`
    ).join("");
    for (const [name, registry] of names) {
      const folder = await Deno.makeTempDir({ prefix: "lacewing-podman-" });
      stack.defer(() => Deno.remove(folder, { recursive: true }));
      const { code, stderr } = await podmanPull(`${name}/lab/app:v1`, { folder, registries, credentials: {} });
      assertEquals(code, 0, stderr + daemon.log());
      const reads = await registry.blobReads();
      assert(
        reads.length > 0 && reads.every(({ userAgent }) => userAgent.startsWith("lacewing/")),
        JSON.stringify(reads),
      );
    }
  },
});
