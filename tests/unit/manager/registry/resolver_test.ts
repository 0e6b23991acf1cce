// covers: manager/registry/registry_client.ts
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { createGuardedFetch, type GuardedFetch } from "../../../../manager/registry/guarded_fetch.ts";
import { createResolver, type Resolver, type ResolveRequest } from "../../../../manager/registry/resolver.ts";
import { jsonBlob, OCI_TYPES } from "../../../testutil/image.ts";
import { ask, EVERYTHING, IMAGE, NAME, noWait, setUpResolver } from "../../../testutil/registry_setup.ts";
import { basicCredentials } from "../../../testutil/token_server.ts";

const [AMD64, ARM64] = IMAGE.images;
const signal = new AbortController().signal;

async function failure(promise: Promise<unknown>): Promise<LacewingError> {
  return await assertRejects(() => promise, LacewingError);
}

async function resolved(resolver: Resolver, request: ResolveRequest): Promise<string[]> {
  const { items } = await resolver.resolve(request, { signal });
  return [...new Set(items.map(({ digest }) => digest ?? ""))].sort();
}

Deno.test("resolve() gives URLs, lengths and headers with which every item can be read", async () => {
  for (const auth of ["none", "basic", "token"] as const) {
    await using set = setUpResolver({ auth });
    const { items } = await set.resolver.resolve(ask(set.registry, { username: "user", password: "pass" }), { signal });
    for (const { url, headers, contentLength } of items) {
      const response = await fetch(url, { headers });
      assertEquals([response.status, (await response.bytes()).length], [200, contentLength], `${auth} ${url}`);
    }
  }
});

Deno.test("resolve() asks for manifests alone, and for no blob", async () => {
  await using set = setUpResolver();
  await set.resolver.resolve(ask(set.registry), { signal });
  assertEquals(set.registry.requests.filter(({ path }) => path.includes("/blobs/")), []);
  assertEquals(set.registry.requests.length, 3);
});

Deno.test("resolve() of an unknown tag or repository is source_not_found and names the URL", async () => {
  await using set = setUpResolver();
  for (const url of [set.registry.manifestUrl(NAME, "v2"), set.registry.manifestUrl("lab/none", "v1")]) {
    const error = await failure(set.resolver.resolve(ask(set.registry, { url }), { signal }));
    assertEquals(error.code, "source_not_found");
    assertStringIncludes(error.message, `Cannot read ${url}: it answered 404 (`);
  }
  assertEquals(set.clock.waits, []);
});

Deno.test("resolve() of a registry that is down is network, after 3 more tries", async () => {
  await using set = setUpResolver();
  await set.registry.stop();
  const error = await failure(set.resolver.resolve(ask(set.registry), { signal }));
  assertEquals([error.code, set.clock.waits.length], ["network", 3]);
  assertStringIncludes(error.message, set.registry.manifestUrl(NAME, "v1"));
  assertStringIncludes(error.message, "refused");
});

Deno.test("resolve() asks a failing registry 3 times more, then says what it answered", async () => {
  await using set = setUpResolver();
  set.registry.fault("v1", { status: 503, headers: { "retry-after": "7" } });
  const error = await failure(set.resolver.resolve(ask(set.registry), { signal }));
  assertEquals([error.code, set.registry.requests.length], ["source_failed", 4]);
  assertEquals(set.clock.waits, [7000, 7000, 7000]);
  assertStringIncludes(error.message, "503");
});

Deno.test("resolve() gets over failures that pass, of tag, manifest and token server", async () => {
  await using set = setUpResolver({ auth: "token" });
  set.registry.fault("v1", { status: 502, times: 2 });
  set.registry.fault(AMD64?.manifest.digest ?? "", { status: 429, times: 3 });
  set.registry.fault("/token", { status: 500, times: 1 });
  const request = ask(set.registry, { username: "user", password: "pass" });
  assertEquals(await resolved(set.resolver, request), EVERYTHING);
});

Deno.test("resolve() names the platform manifest that fails", async () => {
  await using set = setUpResolver();
  set.registry.fault(ARM64?.manifest.digest ?? "", { status: 500 });
  const error = await failure(set.resolver.resolve(ask(set.registry), { signal }));
  assertEquals(error.code, "source_failed");
  assertStringIncludes(error.message, set.registry.manifestUrl(NAME, ARM64?.manifest.digest ?? ""));
  const other = ask(set.registry, { platforms: ["linux/amd64"] });
  assert((await set.resolver.resolve(other, { signal })).items.length > 0);
});

Deno.test("resolve() is not hindered by a layer that answers 500: its host will be", async () => {
  await using set = setUpResolver();
  set.registry.fault(AMD64?.layers[0]?.digest ?? "", { status: 500 });
  assertEquals(await resolved(set.resolver, ask(set.registry)), EVERYTHING);
});

for (const auth of ["basic", "token"] as const) {
  Deno.test(`resolve() with a wrong ${auth} password says which user was refused where`, async () => {
    await using set = setUpResolver({ auth });
    const request = ask(set.registry, { username: "user", password: "hunter2" });
    const error = await failure(set.resolver.resolve(request, { signal }));
    assertEquals(error.code, "source_refused");
    assertStringIncludes(error.message, set.registry.manifestUrl(NAME, "v1"));
    assertStringIncludes(error.message, `refused user "user" for repository "lab/app"`);
    assert(!error.message.includes("hunter2"));
    assertEquals(set.registry.requests.length, 2);
  });
  Deno.test(`resolve() without ${auth} credentials says that anonymous access was refused`, async () => {
    await using set = setUpResolver({ auth });
    const error = await failure(set.resolver.resolve(ask(set.registry), { signal }));
    assertEquals(error.code, "source_refused");
    assertStringIncludes(error.message, "anonymous access");
  });
}

Deno.test("resolve() signs in once for all manifests, and again not at all while the token lives", async () => {
  await using set = setUpResolver({ auth: "token", anonymous: true });
  await set.resolver.resolve(ask(set.registry), { signal });
  await set.resolver.resolve(ask(set.registry), { signal });
  assertEquals(set.registry.requests.filter(({ path }) => path.startsWith("/token")).length, 1);
});

Deno.test("resolve() gets a new token when one from before is no longer accepted", async () => {
  await using set = setUpResolver({ auth: "token", anonymous: true });
  await set.resolver.resolve(ask(set.registry), { signal });
  set.registry.revokeTokens();
  set.clock.aheadMs += 6000;
  assertEquals(await resolved(set.resolver, ask(set.registry)), EVERYTHING);
});

Deno.test("resolve() sends the given Authorization as it is and asks for no token", async () => {
  await using set = setUpResolver({ auth: "basic" });
  const right = { Authorization: `Basic ${btoa("user:pass")}`, "X-Team": "a" };
  const request = ask(set.registry, { headers: right, username: "other", password: "other" });
  const { items } = await set.resolver.resolve(request, { signal });
  assertEquals(basicCredentials(items.at(-1)?.headers.authorization ?? null), ["user", "pass"]);
  assertEquals(items.at(-1)?.headers["x-team"], "a");
  const wrong = ask(set.registry, { headers: { authorization: "Bearer no" }, username: "user", password: "pass" });
  const error = await failure(set.resolver.resolve(wrong, { signal }));
  assertEquals(error.code, "source_refused");
  assertStringIncludes(error.message, "Authorization header given");
});

Deno.test("resolve() puts its own Accept on manifests and leaves the caller's on blobs", async () => {
  await using set = setUpResolver();
  const { items } = await set.resolver.resolve(ask(set.registry, { headers: { accept: "x/y" } }), { signal });
  for (const { kind, headers } of items) {
    const isBlob = kind === "config" || kind === "layer";
    assertEquals(headers.accept === "x/y", isBlob);
  }
});

const BAD_HEADERS: Record<string, string>[] = [
  { Range: "bytes=0-1" },
  { host: "h" },
  { "Content-Length": "1" },
  { "a b": "c" },
  { a: "b\r\nc: d" },
];

for (const headers of BAD_HEADERS) {
  Deno.test(`resolve() refuses the header ${JSON.stringify(headers)}`, async () => {
    await using set = setUpResolver();
    const error = await failure(set.resolver.resolve(ask(set.registry, { headers }), { signal }));
    assertEquals([error.code, set.registry.requests.length], ["invalid", 0]);
  });
}

Deno.test("resolve() refuses bytes that do not have the digest asked by or announced", async () => {
  await using set = setUpResolver();
  const other = jsonBlob({ schemaVersion: 2, manifests: [] }, OCI_TYPES.index);
  set.registry.addManifest(NAME, { ...other, digest: IMAGE.index.digest });
  for (const reference of ["v1", IMAGE.index.digest]) {
    const url = set.registry.manifestUrl(NAME, reference);
    const error = await failure(set.resolver.resolve(ask(set.registry, { url }), { signal }));
    assertEquals(error.code, "digest_mismatch");
    assertStringIncludes(error.message, `its digest is ${other.digest}, expected ${IMAGE.index.digest}`);
  }
});

Deno.test("resolve() names the URL of a manifest that cannot be read", async () => {
  await using set = setUpResolver();
  set.registry.addManifest(NAME, jsonBlob({ schemaVersion: 1, fsLayers: [] }, OCI_TYPES.manifest), "old");
  const url = set.registry.manifestUrl(NAME, "old");
  const error = await failure(set.resolver.resolve(ask(set.registry, { url }), { signal }));
  assertEquals(error.code, "protocol");
  assertStringIncludes(error.message, url);
  assertStringIncludes(error.message, "schema 1");
});

Deno.test("resolve() reads the digest of a registry that announces none", async () => {
  await using set = setUpResolver();
  const bare = createGuardedFetch({ allowPrivateNetworks: true, caCerts: [] });
  const fetch: GuardedFetch = async (url, init) => {
    const response = await bare(url, init);
    response.headers.delete("docker-content-digest");
    return response;
  };
  assertEquals(await resolved(createResolver({ fetch, log: silentLogger }), ask(set.registry)), EVERYTHING);
});

Deno.test("resolve() ends with the caller's reason", async () => {
  await using set = setUpResolver();
  const abort = new AbortController();
  abort.abort(new RangeError("enough"));
  await assertRejects(() => set.resolver.resolve(ask(set.registry), { signal: abort.signal }), RangeError, "enough");
});

Deno.test("refreshHeaders() brings a token that works after the old one was withdrawn", async () => {
  await using set = setUpResolver({ auth: "token" });
  const request = ask(set.registry, { username: "user", password: "pass" });
  const { items } = await set.resolver.resolve(request, { signal });
  const layer = items.at(-1);
  assert(layer !== undefined);
  set.registry.revokeTokens();
  const refused = await fetch(layer.url, { headers: layer.headers });
  await refused.body?.cancel();
  assertEquals(refused.status, 401);
  set.clock.aheadMs += 6000;
  const headers = await set.resolver.refreshHeaders(layer, request, { signal });
  const response = await fetch(layer.url, { headers });
  await response.body?.cancel();
  assertEquals(response.status, 200);
});

Deno.test("refreshHeaders() keeps given headers, and gives the manifests' Accept to manifests alone", async () => {
  await using set = setUpResolver();
  const request = ask(set.registry, { headers: { "X-Team": "a", authorization: "Bearer given" } });
  const forIndex = await set.resolver.refreshHeaders({ kind: "index" }, request, { signal });
  const forLayer = await set.resolver.refreshHeaders({ kind: "layer" }, request, { signal });
  assertStringIncludes(forIndex.accept ?? "", OCI_TYPES.index);
  assertEquals(forLayer, { "x-team": "a", authorization: "Bearer given" });
});

Deno.test("refreshHeaders() of an image that is gone says so", async () => {
  await using set = setUpResolver();
  const request = ask(set.registry, { url: set.registry.manifestUrl(NAME, "v2") });
  const error = await failure(set.resolver.refreshHeaders({ kind: "layer" }, request, { signal }));
  assertEquals(error.code, "source_not_found");
});

Deno.test("resolve() signs in once when a token ends between the index and several manifests", async () => {
  await using set = setUpResolver({ auth: "token", anonymous: true });
  const bare = createGuardedFetch({ allowPrivateNetworks: true, caCerts: [] });
  const clock = noWait();
  const fetch: GuardedFetch = async (url, init) => {
    const response = await bare(url, init);
    if (url.endsWith("/v1") && response.status === 200) {
      set.registry.revokeTokens();
      clock.aheadMs += 6000;
    }
    return response;
  };
  const resolver = createResolver({ fetch, log: silentLogger, clock });
  assertEquals(await resolved(resolver, ask(set.registry)), EVERYTHING);
  assertEquals(set.registry.requests.filter(({ path }) => path.startsWith("/token")).length, 2);
});
