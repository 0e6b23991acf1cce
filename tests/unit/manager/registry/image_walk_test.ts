import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import type { Resolver, ResolveRequest } from "../../../../manager/registry/resolver.ts";
import { descriptorOf, DOCKER_TYPES, jsonBlob, OCI_TYPES, type TestBlob } from "../../../testutil/image.ts";
import { ask, digestsOf, EVERYTHING, IMAGE, NAME, setUpResolver } from "../../../testutil/registry_setup.ts";

const [AMD64, ARM64] = IMAGE.images;
const signal = new AbortController().signal;

async function failure(promise: Promise<unknown>): Promise<LacewingError> {
  return await assertRejects(() => promise, LacewingError);
}

async function resolved(resolver: Resolver, request: ResolveRequest): Promise<string[]> {
  const { items } = await resolver.resolve(request, { signal });
  return [...new Set(items.map(({ digest }) => digest ?? ""))].sort();
}

Deno.test("resolve() of all platforms gives each manifest, config and layer once, the tag twice", async () => {
  await using set = setUpResolver();
  const { items, skipped } = await set.resolver.resolve(ask(set.registry), { signal });
  assertEquals(digestsOf(...items.map(({ digest }) => ({ digest: digest ?? "" }))), EVERYTHING);
  assertEquals(new Set(items.map(({ url }) => url)).size, items.length);
  assertEquals(items.length, EVERYTHING.length + 1);
  assertEquals(items.slice(0, 2).map(({ url, digest, kind }) => [url, digest, kind]), [
    [set.registry.manifestUrl(NAME, "v1"), IMAGE.index.digest, "index"],
    [set.registry.manifestUrl(NAME, IMAGE.index.digest), IMAGE.index.digest, "index"],
  ]);
  assertEquals(skipped, []);
});

Deno.test("resolve() names the platform of what belongs to one, and none for what is shared", async () => {
  await using set = setUpResolver();
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
    await using set = setUpResolver();
    const wanted = images.flatMap((one) => [one?.manifest, one?.config, one?.layers]);
    assertEquals(await resolved(set.resolver, ask(set.registry, { platforms })), digestsOf(IMAGE.index, ...wanted));
  });
}

Deno.test("resolve() of a platform that is missing names those there are", async () => {
  await using set = setUpResolver();
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
  await using set = setUpResolver();
  const some = ask(set.registry, { platforms: ["linux/amd64", "linux/s390x"], require: "any" });
  const { items, skipped } = await set.resolver.resolve(some, { signal });
  assert(items.length > 3);
  assertStringIncludes(skipped[0]?.reason ?? "", "linux/s390x");
  const none = ask(set.registry, { platforms: ["linux/s390x"], require: "any" });
  assertEquals((await failure(set.resolver.resolve(none, { signal }))).code, "source_not_found");
});

for (const platforms of [[], [""], ["linux"], ["linux/amd64", "x86 64"]]) {
  Deno.test(`resolve() refuses the platforms ${JSON.stringify(platforms)} before it asks anyone`, async () => {
    await using set = setUpResolver();
    const error = await failure(set.resolver.resolve(ask(set.registry, { platforms }), { signal }));
    assertEquals([error.code, set.registry.requests.length], ["invalid", 0]);
  });
}

Deno.test("resolve() reads a Docker manifest list with schema 2 manifests", async () => {
  await using set = setUpResolver({ image: { format: "docker" } });
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
  await using set = setUpResolver();
  const request = ask(set.registry, { url: set.registry.manifestUrl(NAME, IMAGE.index.digest) });
  const { items } = await set.resolver.resolve(request, { signal });
  assertEquals(items.length, EVERYTHING.length);
});

Deno.test("resolve() of a tag that is one manifest gives it for any platform", async () => {
  await using set = setUpResolver();
  if (AMD64 !== undefined) set.registry.addManifest(NAME, AMD64.manifest, "one");
  const request = ask(set.registry, { url: set.registry.manifestUrl(NAME, "one"), platforms: ["linux/arm64"] });
  assertEquals(await resolved(set.resolver, request), digestsOf(AMD64?.manifest, AMD64?.config, AMD64?.layers));
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
  await using set = setUpResolver();
  const inner = indexOf([entryOf(ARM64?.manifest, "linux/arm64/v8")]);
  const outer = indexOf([entryOf(AMD64?.manifest, "linux/amd64"), entryOf(inner), entryOf(IMAGE.index)]);
  set.registry.addManifest(NAME, inner);
  set.registry.addManifest(NAME, outer, "nested");
  const url = set.registry.manifestUrl(NAME, "nested");
  assertEquals(
    await resolved(set.resolver, ask(set.registry, { url, platforms: ["linux/arm64"] })),
    digestsOf(outer, inner, IMAGE.index, ARM64?.manifest, ARM64?.config, ARM64?.layers),
  );
  const missing = ask(set.registry, { url, platforms: ["linux/386"] });
  assertStringIncludes(
    (await failure(set.resolver.resolve(missing, { signal }))).message,
    "linux/amd64, linux/arm64/v8",
  );
});

Deno.test("resolve() takes 4 levels of index below the tag and refuses the 5th", async () => {
  await using set = setUpResolver();
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
  await using set = setUpResolver();
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
  const one = await resolved(set.resolver, ask(set.registry, { url, platforms: ["linux/amd64"] }));
  assert(!one.includes(attestation.digest));
  const all = await resolved(set.resolver, ask(set.registry, { url }));
  assertEquals([attestation, config, layer].map(({ digest }) => all.includes(digest)), [true, true, true]);
  const error = await failure(set.resolver.resolve(ask(set.registry, { url, platforms: ["linux/386"] }), { signal }));
  assert(!error.message.includes("unknown/unknown"));
});

Deno.test("resolve() includes entries without platform, and takes them for any", async () => {
  await using set = setUpResolver();
  const index = indexOf([entryOf(AMD64?.manifest), entryOf(ARM64?.manifest, "linux/arm64/v8")]);
  set.registry.addManifest(NAME, index, "unnamed");
  const url = set.registry.manifestUrl(NAME, "unnamed");
  assertEquals(
    await resolved(set.resolver, ask(set.registry, { url, platforms: ["linux/386"] })),
    digestsOf(index, AMD64?.manifest, AMD64?.config, AMD64?.layers),
  );
});

Deno.test("resolve() skips foreign layers and strange entries, and says so", async () => {
  await using set = setUpResolver();
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

Deno.test("resolve() refuses a manifest of another size than its index says", async () => {
  await using set = setUpResolver();
  const index = indexOf([{ ...entryOf(AMD64?.manifest, "linux/amd64"), size: 7 }]);
  set.registry.addManifest(NAME, index, "odd");
  const url = set.registry.manifestUrl(NAME, "odd");
  assertEquals((await failure(set.resolver.resolve(ask(set.registry, { url }), { signal }))).code, "protocol");
});
