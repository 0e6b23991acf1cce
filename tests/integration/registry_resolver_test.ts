/**
 * covers: manager/registry/resolver.ts
 * The resolver against docker-registry, filled by skopeo: every URL that it
 * gives is read with the headers that it gives, and has the digest that it promises.
 */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { LacewingError } from "../../peer/core/errors.ts";
import { silentLogger } from "../../peer/core/log.ts";
import { createGuardedFetch, type GuardedFetch } from "../../manager/registry/guarded_fetch.ts";
import { createResolver, type ResolvedItem, type ResolveRequest } from "../../manager/registry/resolver.ts";
import { sha256Hex } from "../../peer/core/digest.ts";
import { makeImage } from "../testutil/image.ts";
import { hasTools, type RegistryOptions, startRegistry, type TestRegistry } from "../testutil/registry.ts";

const ignore = !hasTools(["docker-registry", "skopeo", "openssl"]);
const IMAGE = makeImage({ scale: 0.05 });
const USER = { username: "user", password: "pass" };
const signal = new AbortController().signal;

function guarded(registry: TestRegistry): GuardedFetch {
  return createGuardedFetch({ allowPrivateNetworks: true, caCerts: registry.ca === null ? [] : [registry.ca] });
}

async function readAll(fetch: GuardedFetch, items: readonly ResolvedItem[]): Promise<void> {
  for (const { url, headers, digest, contentLength } of items) {
    const { status, bytes } = await fetch(url, { method: "GET", headers, signal, maxBytes: 64 * 1024 * 1024 });
    assertEquals([status, `sha256:${sha256Hex(bytes)}`, bytes.length], [200, digest, contentLength], url);
  }
}

const WAYS: [name: string, options: RegistryOptions, credentials: Partial<ResolveRequest>][] = [
  ["an open registry", {}, {}],
  ["Basic", { auth: "htpasswd" }, USER],
  ["a given Authorization header", { auth: "htpasswd" }, { headers: { Authorization: `Basic ${btoa("user:pass")}` } }],
  ["a token for a user", { auth: "token" }, USER],
  ["a token for anyone", { auth: "token", token: { anonymous: true } }, {}],
  ["a token by OAuth2 form alone", { auth: "token", token: { postOnly: true } }, USER],
  ["TLS of a private authority", { tls: true }, {}],
];

for (const [name, options, credentials] of WAYS) {
  Deno.test({
    name: `an image pushed as OCI and as Docker schema 2 resolves with ${name}, and every item can be read`,
    ignore,
    async fn() {
      await using registry = await startRegistry(options);
      const fetch = guarded(registry);
      const resolver = createResolver({ fetch, log: silentLogger });
      for (const format of ["oci", "v2s2"] as const) {
        // The OAuth2 form is for pulls: skopeo cannot push without GET.
        if (options.token?.postOnly) registry.tokens?.allowGet(true);
        await registry.push(IMAGE, { name: "lab/app", tag: format, format });
        if (options.token?.postOnly) registry.tokens?.allowGet(false);
        const request = { url: registry.manifestUrl("lab/app", format), headers: {}, ...credentials };
        const all = await resolver.resolve({ ...request, platforms: "all" }, { signal });
        await readAll(fetch, all.items);
        const kinds = Map.groupBy(all.items, ({ kind }) => kind);
        const counts = (["index", "manifest", "config", "layer"] as const).map((kind) => kinds.get(kind)?.length);
        assertEquals(counts, [2, 2, 2, 8]);
        const one = await resolver.resolve({ ...request, platforms: ["linux/arm64"] }, { signal });
        assertEquals(one.items.filter(({ kind }) => kind === "layer").length, 4);
        if (format === "oci") assertEquals(all.items[0]?.digest, IMAGE.index.digest);
        else assertStringIncludes(all.items[0]?.headers.accept ?? "", "manifest.list.v2+json");
      }
    },
  });
}

Deno.test({
  name: "a registry refuses, does not know, comes back: each is told with its URL",
  ignore,
  async fn() {
    await using registry = await startRegistry({ auth: "token" });
    await registry.push(IMAGE, { name: "lab/app", tag: "v1" });
    const fetch = guarded(registry);
    const waits: number[] = [];
    const clock = { nowMs: () => 0, sleep: (ms: number) => Promise.resolve(void waits.push(ms)) };
    const resolver = createResolver({ fetch, log: silentLogger, clock });
    const url = registry.manifestUrl("lab/app", "v1");
    const request: ResolveRequest = { url, headers: {}, platforms: "all", ...USER };
    const failure = async (changed: Partial<ResolveRequest>) => {
      const error = await assertRejects(() => resolver.resolve({ ...request, ...changed }, { signal }), LacewingError);
      assertStringIncludes(error.message, changed.url ?? url);
      return error;
    };
    assertEquals((await failure({ password: "wrong" })).code, "source_refused");
    assertEquals((await failure({ username: undefined, password: undefined })).code, "source_refused");
    const unknown = await failure({ url: registry.manifestUrl("lab/app", "v2") });
    assertEquals(unknown.code, "source_not_found");
    assertStringIncludes(unknown.message, "MANIFEST_UNKNOWN");
    await registry.stop();
    assertEquals([(await failure({})).code, waits.length], ["network", 3]);
    await registry.start();
    assertEquals(registry.manifestUrl("lab/app", "v1"), url);
    await readAll(fetch, (await resolver.resolve(request, { signal })).items);
    assert(registry.accessLog().some((line) => line.includes("GET /v2/lab/app/blobs/sha256:")));
  },
});

Deno.test({
  name: "refreshHeaders() of a real token registry brings headers that read a layer",
  ignore,
  async fn() {
    await using registry = await startRegistry({ auth: "token" });
    await registry.push(IMAGE, { name: "lab/app", tag: "v1" });
    const fetch = guarded(registry);
    const resolver = createResolver({ fetch, log: silentLogger });
    const url = registry.manifestUrl("lab/app", "v1");
    const request: ResolveRequest = { url, headers: {}, platforms: ["linux/amd64"], ...USER };
    const { items } = await resolver.resolve(request, { signal });
    const layer = items.find(({ kind }) => kind === "layer");
    assert(layer !== undefined);
    const headers = await createResolver({ fetch, log: silentLogger }).refreshHeaders(layer, request, { signal });
    await readAll(fetch, [{ ...layer, headers }]);
  },
});
