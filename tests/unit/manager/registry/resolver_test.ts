// covers: manager/registry/registry_client.ts, manager/registry/image_walk.ts
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { type Clock, systemClock } from "../../../../peer/core/clock.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { createGuardedFetch, type GuardedFetch } from "../../../../manager/registry/guarded_fetch.ts";
import { createResolver, type Resolver, type ResolveRequest } from "../../../../manager/registry/resolver.ts";
import {
  descriptorOf,
  DOCKER_TYPES,
  type ImageOptions,
  jsonBlob,
  makeImage,
  OCI_TYPES,
  type TestBlob,
} from "../../../testutil/image.ts";
import { type SmallRegistry, type SmallRegistryOptions, startSmallRegistry } from "../../../testutil/small_registry.ts";
import { basicCredentials } from "../../../testutil/token_server.ts";

const NAME = "lab/app";
const IMAGE = makeImage({ scale: 0.01 });
const [AMD64, ARM64] = IMAGE.images;
const signal = new AbortController().signal;

/** A clock that does not wait, but remembers for how long it should have. */
function noWait(): Clock & { waits: number[]; aheadMs: number } {
  const clock = {
    waits: [] as number[],
    aheadMs: 0,
    nowMs: (): number => systemClock.nowMs() + clock.aheadMs,
    sleep: (ms: number) => {
      clock.waits.push(ms);
      return Promise.resolve();
    },
  };
  return clock;
}

function setUp(options: SmallRegistryOptions & { image?: ImageOptions } = {}) {
  const registry = startSmallRegistry(options);
  const image = options.image === undefined ? IMAGE : makeImage({ scale: 0.01, ...options.image });
  registry.add(image, { name: NAME, tag: "v1" });
  const clock = noWait();
  const fetch = createGuardedFetch({ allowPrivateNetworks: true, caCerts: [] });
  const resolver = createResolver({ fetch, log: silentLogger, clock });
  return { registry, image, clock, resolver, [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose]() };
}

function ask(registry: SmallRegistry, rest: Partial<ResolveRequest> = {}): ResolveRequest {
  return { url: registry.manifestUrl(NAME, "v1"), headers: {}, platforms: "all", ...rest };
}

async function failure(promise: Promise<unknown>): Promise<LacewingError> {
  return await assertRejects(() => promise, LacewingError);
}

async function digestsOf(resolver: Resolver, request: ResolveRequest): Promise<string[]> {
  const { items } = await resolver.resolve(request, { signal });
  return [...new Set(items.map(({ digest }) => digest ?? ""))].sort();
}

const digests = (...blobs: (TestBlob | readonly TestBlob[] | undefined)[]) =>
  [...new Set(blobs.flat().flatMap((blob) => blob === undefined ? [] : [blob.digest]))].sort();

const EVERYTHING = digests(IMAGE.index, ...IMAGE.images.flatMap((one) => [one.manifest, one.config, one.layers]));

Deno.test("resolve() of all platforms gives each manifest, config and layer once, the tag twice", async () => {
  await using set = setUp();
  const { items, skipped } = await set.resolver.resolve(ask(set.registry), { signal });
  assertEquals(digests(...items.map(({ digest }) => ({ digest } as TestBlob))), EVERYTHING);
  assertEquals(new Set(items.map(({ url }) => url)).size, items.length);
  assertEquals(items.length, EVERYTHING.length + 1);
  assertEquals(items.slice(0, 2).map(({ url, digest, kind }) => [url, digest, kind]), [
    [set.registry.manifestUrl(NAME, "v1"), IMAGE.index.digest, "index"],
    [set.registry.manifestUrl(NAME, IMAGE.index.digest), IMAGE.index.digest, "index"],
  ]);
  assertEquals(skipped, []);
});

Deno.test("resolve() gives URLs, lengths and headers with which every item can be read", async () => {
  for (const auth of ["none", "basic", "token"] as const) {
    await using set = setUp({ auth });
    const { items } = await set.resolver.resolve(ask(set.registry, { username: "user", password: "pass" }), { signal });
    for (const { url, headers, contentLength } of items) {
      const response = await fetch(url, { headers });
      assertEquals([response.status, (await response.bytes()).length], [200, contentLength], `${auth} ${url}`);
    }
  }
});

Deno.test("resolve() asks for manifests alone, and for no blob", async () => {
  await using set = setUp();
  await set.resolver.resolve(ask(set.registry), { signal });
  assertEquals(set.registry.requests.filter(({ path }) => path.includes("/blobs/")), []);
  assertEquals(set.registry.requests.length, 3);
});

Deno.test("resolve() names the platform of what belongs to one, and none for what is shared", async () => {
  await using set = setUp();
  const { items } = await set.resolver.resolve(ask(set.registry), { signal });
  const platformOf = (blob: TestBlob | undefined) => items.find(({ digest }) => digest === blob?.digest)?.platform;
  assertEquals(platformOf(AMD64?.manifest), "linux/amd64");
  assertEquals(platformOf(ARM64?.config), "linux/arm64/v8");
  assertEquals(platformOf(IMAGE.index), null);
  const shared = AMD64?.layers.filter(({ digest }) => ARM64?.layers.some((layer) => layer.digest === digest)) ?? [];
  assertEquals(shared.map(platformOf), [null, null]);
});

for (
  const [platforms, images] of [
    [["linux/amd64"], [AMD64]],
    [["linux/arm64"], [ARM64]],
    [["linux/arm64/v8"], [ARM64]],
    [["linux/arm64", "linux/amd64", "linux/amd64"], [AMD64, ARM64]],
  ] as const
) {
  Deno.test(`resolve() of ${platforms.join(" and ")} gives those alone`, async () => {
    await using set = setUp();
    const wanted = images.flatMap((one) => [one?.manifest, one?.config, one?.layers]);
    assertEquals(await digestsOf(set.resolver, ask(set.registry, { platforms })), digests(IMAGE.index, ...wanted));
  });
}

Deno.test("resolve() of a platform that is missing names those there are", async () => {
  await using set = setUp();
  const error = await failure(
    set.resolver.resolve(ask(set.registry, { platforms: ["linux/amd64", "linux/s390x"] }), { signal }),
  );
  assertEquals(error.code, "source_not_found");
  assertStringIncludes(
    error.message,
    "no manifest for platform linux/s390x; the image has linux/amd64, linux/arm64/v8",
  );
  assertStringIncludes(error.message, set.registry.manifestUrl(NAME, "v1"));
});

Deno.test("resolve() with require any reports the missing platform and goes on, unless none is there", async () => {
  await using set = setUp();
  const some = ask(set.registry, { platforms: ["linux/amd64", "linux/s390x"], require: "any" });
  const { items, skipped } = await set.resolver.resolve(some, { signal });
  assert(items.length > 3);
  assertStringIncludes(skipped[0]?.reason ?? "", "linux/s390x");
  const none = ask(set.registry, { platforms: ["linux/s390x"], require: "any" });
  assertEquals((await failure(set.resolver.resolve(none, { signal }))).code, "source_not_found");
});

for (const platforms of [[], [""], ["linux"], ["linux/amd64", "x86 64"]]) {
  Deno.test(`resolve() refuses the platforms ${JSON.stringify(platforms)} before it asks anyone`, async () => {
    await using set = setUp();
    const error = await failure(set.resolver.resolve(ask(set.registry, { platforms }), { signal }));
    assertEquals([error.code, set.registry.requests.length], ["invalid", 0]);
  });
}

Deno.test("resolve() reads a Docker manifest list with schema 2 manifests", async () => {
  await using set = setUp({ image: { format: "docker" } });
  const request = ask(set.registry, { platforms: ["linux/arm64"] });
  const { items } = await set.resolver.resolve(request, { signal });
  assertEquals(items.map(({ kind }) => kind), [
    "index",
    "index",
    "manifest",
    "config",
    "layer",
    "layer",
    "layer",
    "layer",
  ]);
});

Deno.test("resolve() of a digest gives the index once", async () => {
  await using set = setUp();
  const request = ask(set.registry, { url: set.registry.manifestUrl(NAME, IMAGE.index.digest) });
  const { items } = await set.resolver.resolve(request, { signal });
  assertEquals(items.length, EVERYTHING.length);
});

Deno.test("resolve() of a tag that is one manifest gives it for any platform", async () => {
  await using set = setUp();
  if (AMD64 !== undefined) set.registry.addManifest(NAME, AMD64.manifest, "one");
  const request = ask(set.registry, { url: set.registry.manifestUrl(NAME, "one"), platforms: ["linux/arm64"] });
  assertEquals(await digestsOf(set.resolver, request), digests(AMD64?.manifest, AMD64?.config, AMD64?.layers));
});

function indexOf(entries: unknown[], type = OCI_TYPES.index): TestBlob {
  return jsonBlob({ schemaVersion: 2, mediaType: type, manifests: entries }, type);
}

function entryOf(blob: TestBlob | undefined, platform?: string): Record<string, unknown> {
  assert(blob !== undefined);
  const [os, architecture, variant] = platform?.split("/") ?? [];
  return { ...descriptorOf(blob), ...(platform === undefined ? {} : { platform: { os, architecture, variant } }) };
}

Deno.test("resolve() goes through an index of index, and looks for platforms in all of it", async () => {
  await using set = setUp();
  const inner = indexOf([entryOf(ARM64?.manifest, "linux/arm64/v8")]);
  const outer = indexOf([entryOf(AMD64?.manifest, "linux/amd64"), entryOf(inner), entryOf(IMAGE.index)]);
  set.registry.addManifest(NAME, inner);
  set.registry.addManifest(NAME, outer, "nested");
  const url = set.registry.manifestUrl(NAME, "nested");
  assertEquals(
    await digestsOf(set.resolver, ask(set.registry, { url, platforms: ["linux/arm64"] })),
    digests(outer, inner, IMAGE.index, ARM64?.manifest, ARM64?.config, ARM64?.layers),
  );
  const missing = ask(set.registry, { url, platforms: ["linux/386"] });
  assertStringIncludes(
    (await failure(set.resolver.resolve(missing, { signal }))).message,
    "linux/amd64, linux/arm64/v8",
  );
});

Deno.test("resolve() takes 4 levels of index below the tag and refuses the 5th", async () => {
  await using set = setUp();
  let below = entryOf(AMD64?.manifest, "linux/amd64");
  for (let level = 1; level <= 5; level++) {
    const index = indexOf([below]);
    set.registry.addManifest(NAME, index, `level${level}`);
    below = entryOf(index);
  }
  const at = (level: number) => ask(set.registry, { url: set.registry.manifestUrl(NAME, `level${level}`) });
  assertEquals((await set.resolver.resolve(at(4), { signal })).items.filter(({ kind }) => kind === "layer").length, 6);
  const error = await failure(set.resolver.resolve(at(5), { signal }));
  assertEquals(error.code, "too_large");
});

Deno.test("resolve() leaves attestations out unless all is asked for", async () => {
  await using set = setUp();
  const layer = jsonBlob({ predicate: {} }, "application/vnd.in-toto+json");
  const config = jsonBlob({ os: "unknown" }, OCI_TYPES.config);
  const attestation = jsonBlob({
    schemaVersion: 2,
    mediaType: OCI_TYPES.manifest,
    config: descriptorOf(config),
    layers: [descriptorOf(layer)],
  }, OCI_TYPES.manifest);
  const index = indexOf([entryOf(AMD64?.manifest, "linux/amd64"), entryOf(attestation, "unknown/unknown")]);
  set.registry.addManifest(NAME, attestation);
  set.registry.addManifest(NAME, index, "signed");
  const url = set.registry.manifestUrl(NAME, "signed");
  const one = await digestsOf(set.resolver, ask(set.registry, { url, platforms: ["linux/amd64"] }));
  assert(!one.includes(attestation.digest));
  const all = await digestsOf(set.resolver, ask(set.registry, { url }));
  assertEquals([attestation, config, layer].map(({ digest }) => all.includes(digest)), [true, true, true]);
  const error = await failure(set.resolver.resolve(ask(set.registry, { url, platforms: ["linux/386"] }), { signal }));
  assert(!error.message.includes("unknown/unknown"));
});

Deno.test("resolve() includes entries without platform, and takes them for any", async () => {
  await using set = setUp();
  const index = indexOf([entryOf(AMD64?.manifest), entryOf(ARM64?.manifest, "linux/arm64/v8")]);
  set.registry.addManifest(NAME, index, "unnamed");
  const url = set.registry.manifestUrl(NAME, "unnamed");
  assertEquals(
    await digestsOf(set.resolver, ask(set.registry, { url, platforms: ["linux/386"] })),
    digests(index, AMD64?.manifest, AMD64?.config, AMD64?.layers),
  );
});

Deno.test("resolve() skips foreign layers and strange entries, and says so", async () => {
  await using set = setUp();
  const foreign = {
    ...descriptorOf(IMAGE.index),
    mediaType: "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
  };
  const manifest = jsonBlob({
    schemaVersion: 2,
    mediaType: DOCKER_TYPES.manifest,
    config: entryOf(AMD64?.config),
    layers: [foreign, entryOf(AMD64?.layers[0])],
  }, DOCKER_TYPES.manifest);
  const strange = { ...descriptorOf(IMAGE.index), mediaType: "application/vnd.example.thing" };
  const index = indexOf([entryOf(manifest, "windows/amd64"), strange], DOCKER_TYPES.index);
  set.registry.addManifest(NAME, manifest);
  set.registry.addManifest(NAME, index, "win");
  const request = ask(set.registry, { url: set.registry.manifestUrl(NAME, "win"), platforms: ["windows/amd64"] });
  const { items, skipped } = await set.resolver.resolve(request, { signal });
  assertEquals(items.map(({ kind }) => kind), ["index", "index", "manifest", "config", "layer"]);
  assertEquals(skipped.map(({ url }) => url), [
    set.registry.manifestUrl(NAME, IMAGE.index.digest),
    set.registry.blobUrl(NAME, IMAGE.index.digest),
  ]);
  assertStringIncludes(skipped[1]?.reason ?? "", "foreign layer");
});

Deno.test("resolve() of an unknown tag or repository is source_not_found and names the URL", async () => {
  await using set = setUp();
  for (const url of [set.registry.manifestUrl(NAME, "v2"), set.registry.manifestUrl("lab/none", "v1")]) {
    const error = await failure(set.resolver.resolve(ask(set.registry, { url }), { signal }));
    assertEquals(error.code, "source_not_found");
    assertStringIncludes(error.message, `Cannot read ${url}: it answered 404 (`);
  }
  assertEquals(set.clock.waits, []);
});

Deno.test("resolve() of a registry that is down is network, after 3 more tries", async () => {
  await using set = setUp();
  await set.registry.stop();
  const error = await failure(set.resolver.resolve(ask(set.registry), { signal }));
  assertEquals([error.code, set.clock.waits.length], ["network", 3]);
  assertStringIncludes(error.message, set.registry.manifestUrl(NAME, "v1"));
  assertStringIncludes(error.message, "refused");
});

Deno.test("resolve() asks a failing registry 3 times more, then says what it answered", async () => {
  await using set = setUp();
  set.registry.fault("v1", { status: 503, headers: { "retry-after": "7" } });
  const error = await failure(set.resolver.resolve(ask(set.registry), { signal }));
  assertEquals([error.code, set.registry.requests.length], ["source_failed", 4]);
  assertEquals(set.clock.waits, [7000, 7000, 7000]);
  assertStringIncludes(error.message, "503");
});

Deno.test("resolve() gets over failures that pass, of tag, manifest and token server", async () => {
  await using set = setUp({ auth: "token" });
  set.registry.fault("v1", { status: 502, times: 2 });
  set.registry.fault(AMD64?.manifest.digest ?? "", { status: 429, times: 3 });
  set.registry.fault("/token", { status: 500, times: 1 });
  const request = ask(set.registry, { username: "user", password: "pass" });
  assertEquals(await digestsOf(set.resolver, request), EVERYTHING);
});

Deno.test("resolve() names the platform manifest that fails", async () => {
  await using set = setUp();
  set.registry.fault(ARM64?.manifest.digest ?? "", { status: 500 });
  const error = await failure(set.resolver.resolve(ask(set.registry), { signal }));
  assertEquals(error.code, "source_failed");
  assertStringIncludes(error.message, set.registry.manifestUrl(NAME, ARM64?.manifest.digest ?? ""));
  const other = ask(set.registry, { platforms: ["linux/amd64"] });
  assert((await set.resolver.resolve(other, { signal })).items.length > 0);
});

Deno.test("resolve() is not hindered by a layer that answers 500: its host will be", async () => {
  await using set = setUp();
  set.registry.fault(AMD64?.layers[0]?.digest ?? "", { status: 500 });
  assertEquals(await digestsOf(set.resolver, ask(set.registry)), EVERYTHING);
});

for (const auth of ["basic", "token"] as const) {
  Deno.test(`resolve() with a wrong ${auth} password says which user was refused where`, async () => {
    await using set = setUp({ auth });
    const request = ask(set.registry, { username: "user", password: "hunter2" });
    const error = await failure(set.resolver.resolve(request, { signal }));
    assertEquals(error.code, "source_refused");
    assertStringIncludes(error.message, set.registry.manifestUrl(NAME, "v1"));
    assertStringIncludes(error.message, `refused user "user" for repository "lab/app"`);
    assert(!error.message.includes("hunter2"));
    assertEquals(set.registry.requests.length, 2);
  });
  Deno.test(`resolve() without ${auth} credentials says that anonymous access was refused`, async () => {
    await using set = setUp({ auth });
    const error = await failure(set.resolver.resolve(ask(set.registry), { signal }));
    assertEquals(error.code, "source_refused");
    assertStringIncludes(error.message, "anonymous access");
  });
}

Deno.test("resolve() signs in once for all manifests, and again not at all while the token lives", async () => {
  await using set = setUp({ auth: "token", anonymous: true });
  await set.resolver.resolve(ask(set.registry), { signal });
  await set.resolver.resolve(ask(set.registry), { signal });
  assertEquals(set.registry.requests.filter(({ path }) => path.startsWith("/token")).length, 1);
});

Deno.test("resolve() gets a new token when one from before is no longer accepted", async () => {
  await using set = setUp({ auth: "token", anonymous: true });
  await set.resolver.resolve(ask(set.registry), { signal });
  set.registry.revokeTokens();
  set.clock.aheadMs += 6000;
  assertEquals(await digestsOf(set.resolver, ask(set.registry)), EVERYTHING);
});

Deno.test("resolve() sends the given Authorization as it is and asks for no token", async () => {
  await using set = setUp({ auth: "basic" });
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
  await using set = setUp();
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
    await using set = setUp();
    const error = await failure(set.resolver.resolve(ask(set.registry, { headers }), { signal }));
    assertEquals([error.code, set.registry.requests.length], ["invalid", 0]);
  });
}

Deno.test("resolve() refuses bytes that do not have the digest asked by or announced", async () => {
  await using set = setUp();
  const other = jsonBlob({ schemaVersion: 2, manifests: [] }, OCI_TYPES.index);
  set.registry.addManifest(NAME, { ...other, digest: IMAGE.index.digest });
  for (const reference of ["v1", IMAGE.index.digest]) {
    const url = set.registry.manifestUrl(NAME, reference);
    const error = await failure(set.resolver.resolve(ask(set.registry, { url }), { signal }));
    assertEquals(error.code, "digest_mismatch");
    assertStringIncludes(error.message, `its digest is ${other.digest}, expected ${IMAGE.index.digest}`);
  }
});

Deno.test("resolve() refuses a manifest of another size than its index says", async () => {
  await using set = setUp();
  const index = indexOf([{ ...entryOf(AMD64?.manifest, "linux/amd64"), size: 7 }]);
  set.registry.addManifest(NAME, index, "odd");
  const url = set.registry.manifestUrl(NAME, "odd");
  assertEquals((await failure(set.resolver.resolve(ask(set.registry, { url }), { signal }))).code, "protocol");
});

Deno.test("resolve() names the URL of a manifest that cannot be read", async () => {
  await using set = setUp();
  set.registry.addManifest(NAME, jsonBlob({ schemaVersion: 1, fsLayers: [] }, OCI_TYPES.manifest), "old");
  const url = set.registry.manifestUrl(NAME, "old");
  const error = await failure(set.resolver.resolve(ask(set.registry, { url }), { signal }));
  assertEquals(error.code, "protocol");
  assertStringIncludes(error.message, url);
  assertStringIncludes(error.message, "schema 1");
});

Deno.test("resolve() reads the digest of a registry that announces none", async () => {
  await using set = setUp();
  const bare = createGuardedFetch({ allowPrivateNetworks: true, caCerts: [] });
  const fetch: GuardedFetch = async (url, init) => {
    const response = await bare(url, init);
    response.headers.delete("docker-content-digest");
    return response;
  };
  assertEquals(await digestsOf(createResolver({ fetch, log: silentLogger }), ask(set.registry)), EVERYTHING);
});

Deno.test("resolve() ends with the caller's reason", async () => {
  await using set = setUp();
  const abort = new AbortController();
  abort.abort(new RangeError("enough"));
  await assertRejects(() => set.resolver.resolve(ask(set.registry), { signal: abort.signal }), RangeError, "enough");
});

Deno.test("refreshHeaders() brings a token that works after the old one was withdrawn", async () => {
  await using set = setUp({ auth: "token" });
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
  await using set = setUp();
  const request = ask(set.registry, { headers: { "X-Team": "a", authorization: "Bearer given" } });
  const forIndex = await set.resolver.refreshHeaders({ kind: "index" }, request, { signal });
  const forLayer = await set.resolver.refreshHeaders({ kind: "layer" }, request, { signal });
  assertStringIncludes(forIndex.accept ?? "", OCI_TYPES.index);
  assertEquals(forLayer, { "x-team": "a", authorization: "Bearer given" });
});

Deno.test("refreshHeaders() of an image that is gone says so", async () => {
  await using set = setUp();
  const request = ask(set.registry, { url: set.registry.manifestUrl(NAME, "v2") });
  const error = await failure(set.resolver.refreshHeaders({ kind: "layer" }, request, { signal }));
  assertEquals(error.code, "source_not_found");
});
