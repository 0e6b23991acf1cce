// covers: peer/proxy/anonymous_token.ts
/** A token that runs out in mid-blob: behind Debian's registry with a token server. */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createHash } from "node:crypto";
import { FaultyRegistry } from "../testutil/faulty_registry.ts";
import { makeImage } from "../testutil/image.ts";
import { spawnDaemon } from "../testutil/process.ts";
import { hasTools, startRegistry, type TestRegistry } from "../testutil/registry.ts";
import { TOKEN_SERVICE } from "../testutil/token_server.ts";

const hasRegistry = hasTools(["docker-registry", "skopeo"]);
if (!hasRegistry) console.log("proxy_token_test: skipped, docker-registry or skopeo is not installed");

const IMAGE = makeImage({ scale: 2 });
const LAYER = IMAGE.images[0]!.layers.reduce((a, b) => a.bytes.length > b.bytes.length ? a : b);
const SCOPE = "repository:lab/app:pull";

async function tokenOf({ tokens }: TestRegistry, authorization: string | null): Promise<string> {
  const url = `${tokens!.realm}?${new URLSearchParams({ service: TOKEN_SERVICE, scope: SCOPE })}`;
  const response = await fetch(url, { headers: authorization === null ? {} : { authorization } });
  return `Bearer ${(await response.json()).token}`;
}

/** A registry, one in front of it that stalls in every blob, and a daemon that knows the latter. */
async function stage(anonymous: boolean, stack: AsyncDisposableStack) {
  const registry = stack.use(await startRegistry({ auth: "token", token: { anonymous } }));
  await registry.push(IMAGE, { name: "lab/app", tag: "v1" });
  const faulty = stack.use(new FaultyRegistry(registry.url));
  faulty.set("lab/app", { on: "blob", fault: { act: "stall", after: 1_000_000 } });
  const config = {
    download: { source: { maxConnections: 1 } },
    proxy: { tcpListen: { port: 0 }, registryMirror: { url: faulty.url } },
  };
  const daemon = stack.use(await spawnDaemon({ config }));
  const ask = (authorization: string) =>
    fetch(`http://${daemon.proxy}/v2/lab/app/blobs/${LAYER.digest}`, { headers: { authorization } });
  /** Asks for the blob; the token runs out when the answer has begun. */
  const askUntilExpired = async (authorization: string) => {
    const response = await ask(authorization);
    const reader = response.body!.getReader();
    const parts = [(await reader.read()).value!.slice()];
    faulty.set("lab/app", null);
    faulty.expire(authorization);
    const rest = async () => {
      for (let read = await reader.read(); !read.done; read = await reader.read()) parts.push(read.value.slice());
      return new Uint8Array(await new Blob(parts).arrayBuffer());
    };
    return { status: response.status, rest };
  };
  return { registry, daemon, ask, askUntilExpired };
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

Deno.test({
  name: "a token that runs out in mid-blob is made good by the realm's token for everyone",
  ignore: !hasRegistry,
  async fn() {
    await using stack = new AsyncDisposableStack();
    const { registry, daemon, askUntilExpired } = await stage(true, stack);
    const token = await tokenOf(registry, null);
    const before = registry.tokens!.requests.length;
    const { status, rest } = await askUntilExpired(token);
    assertEquals([status, digestOf(await rest())], [200, LAYER.digest]);
    const asked = registry.tokens!.requests.slice(before);
    assert(asked.length > 0, "nobody asked for another token");
    for (const { method, authorization, url } of asked) {
      assertEquals([method, authorization], ["GET", null]);
      assertEquals(new URL(url, "http://t").searchParams.get("scope"), SCOPE);
    }
    assert(!daemon.log().includes(token.slice(-40)), "the token stands in the log");
  },
});

Deno.test({
  name: "a token that was the only right ends the answer, never as a whole one; with a new one the rest is read",
  ignore: !hasRegistry,
  async fn() {
    await using stack = new AsyncDisposableStack();
    const { registry, daemon, ask, askUntilExpired } = await stage(false, stack);
    const basic = `Basic ${btoa("user:pass")}`;
    const token = await tokenOf(registry, basic);
    const before = registry.tokens!.requests.length;
    const { status, rest } = await askUntilExpired(token);
    assertEquals(status, 200);
    await assertRejects(rest);
    assertStringIncludes(await daemon.logged("a request failed"), "ran out");
    // Who asks for a token without a name is refused; the client's own credentials went nowhere.
    for (const { authorization } of registry.tokens!.requests.slice(before)) assertEquals(authorization, null);
    const late = await ask(token);
    assertEquals([late.status, await late.text().then((text) => text.length < 1000)], [401, true]);
    const again = await ask(await tokenOf(registry, basic));
    assertEquals([again.status, digestOf(await again.bytes())], [200, LAYER.digest]);
  },
});
