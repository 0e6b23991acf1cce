import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import {
  isAttestation,
  MANIFEST_LENGTH_MAX,
  matchesPlatform,
  parseManifest,
  parsePlatform,
} from "../../../../manager/registry/manifest.ts";
import { DOCKER_TYPES, OCI_TYPES } from "../../../testutil/image.ts";

const DIGEST = `sha256:${"0a".repeat(32)}`;
const CONFIG = { mediaType: OCI_TYPES.config, digest: DIGEST, size: 10 };
const LAYER = { mediaType: OCI_TYPES.layer, digest: DIGEST, size: 20 };
const MANIFEST = { schemaVersion: 2, config: CONFIG, layers: [LAYER] };
const ENTRY = { mediaType: OCI_TYPES.manifest, digest: DIGEST, size: 30 };
const INDEX = { schemaVersion: 2, manifests: [ENTRY] };

function parse(body: unknown, contentType: string | null = null) {
  return parseManifest(new TextEncoder().encode(JSON.stringify(body)), contentType);
}

for (const [name, { index, manifest }] of [["OCI", OCI_TYPES], ["Docker", DOCKER_TYPES]] as const) {
  Deno.test(`parseManifest() reads an ${name} index by its Content-Type`, () => {
    assertEquals(parse(INDEX, index).kind, "index");
    assertEquals(parse(INDEX, `${index.toUpperCase()}; charset=utf-8`).kind, "index");
    assertEquals(parse({ ...INDEX, mediaType: index }).kind, "index");
  });
  Deno.test(`parseManifest() reads an ${name} manifest by its Content-Type`, () => {
    assertEquals(parse(MANIFEST, manifest).kind, "manifest");
    assertEquals(parse({ ...MANIFEST, mediaType: manifest }, "application/json").kind, "manifest");
  });
}

Deno.test("parseManifest() reads by content where no type is given", () => {
  assertEquals(parse(INDEX).kind, "index");
  assertEquals(parse(MANIFEST, "application/octet-stream").kind, "manifest");
});

Deno.test("parseManifest() gives config and layers with sizes, foreign layers marked", () => {
  const foreign = [
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
  ].map((mediaType) => ({ ...LAYER, mediaType }));
  const manifest = parse({ ...MANIFEST, layers: [LAYER, ...foreign] });
  assert(manifest.kind === "manifest");
  assertEquals(manifest.config, CONFIG);
  assertEquals(manifest.layers.map(({ size, isForeign }) => [size, isForeign]), [[20, false], [20, true], [20, true]]);
});

Deno.test("parseManifest() tells nested index, manifest and other entries apart", () => {
  const manifests = [
    { ...ENTRY, platform: { os: "linux", architecture: "arm64", variant: "v8" } },
    { ...ENTRY, mediaType: OCI_TYPES.index, platform: null },
    { ...ENTRY, mediaType: "application/vnd.example" },
  ];
  const index = parse({ ...INDEX, manifests });
  assert(index.kind === "index");
  assertEquals(index.entries.map(({ kind }) => kind), ["manifest", "index", "other"]);
  assertEquals(index.entries[0]?.platform, { os: "linux", architecture: "arm64", variant: "v8" });
  assertEquals(index.entries[1]?.platform, null);
});

Deno.test("parseManifest() takes an index and a manifest without entries", () => {
  assertEquals(parse({ schemaVersion: 2, manifests: [] }), { kind: "index", entries: [] });
  assertEquals(parse({ ...MANIFEST, layers: [] }).kind, "manifest");
});

const BAD: [why: string, body: unknown, contentType: string | null, reason: string][] = [
  ["a list", [], null, "want an object"],
  ["null", null, null, "want an object"],
  ["an empty object", {}, null, "schemaVersion"],
  ["schema 1 by version", { schemaVersion: 1, fsLayers: [] }, null, "schema 1"],
  ["schema 1 by type", MANIFEST, "application/vnd.docker.distribution.manifest.v1+prettyjws", "schema 1"],
  ["schema 3", { ...MANIFEST, schemaVersion: 3 }, null, "schemaVersion is 3"],
  ["neither kind", { schemaVersion: 2 }, null, "neither manifests nor layers"],
  ["both kinds", { ...MANIFEST, ...INDEX }, null, "both manifests and layers"],
  ["an index called manifest", INDEX, OCI_TYPES.manifest, "contradict"],
  ["a manifest called index in its body", { ...MANIFEST, mediaType: OCI_TYPES.index }, null, "contradict"],
  ["an unknown kind in its body", { ...MANIFEST, mediaType: "application/vnd.example" }, null, "not supported"],
  ["manifests as object", { schemaVersion: 2, manifests: {} }, null, "want a list"],
  ["an entry that is text", { ...INDEX, manifests: ["x"] }, null, "manifests[0]"],
  ["a layer without digest", { ...MANIFEST, layers: [{ ...LAYER, digest: undefined }] }, null, "layers[0].digest"],
  ["a short digest", { ...MANIFEST, layers: [LAYER, { ...LAYER, digest: "sha256:00" }] }, null, "layers[1].digest"],
  ["a path as digest", { ...INDEX, manifests: [{ ...ENTRY, digest: "../../x" }] }, null, "manifests[0].digest"],
  ["no size", { ...MANIFEST, config: { ...CONFIG, size: undefined } }, null, "config.size"],
  ["a negative size", { ...MANIFEST, config: { ...CONFIG, size: -1 } }, null, "config.size"],
  ["a fractional size", { ...MANIFEST, config: { ...CONFIG, size: 1.5 } }, null, "config.size"],
  ["no media type", { ...INDEX, manifests: [{ ...ENTRY, mediaType: "" }] }, null, "mediaType"],
  ["no config", { schemaVersion: 2, layers: [] }, null, "config"],
  [
    "a platform without os",
    { ...INDEX, manifests: [{ ...ENTRY, platform: { architecture: "x" } }] },
    null,
    "platform.os",
  ],
];

for (const [why, body, contentType, reason] of BAD) {
  Deno.test(`parseManifest() refuses ${why}`, () => {
    const error = assertThrows(() => parse(body, contentType), LacewingError);
    assertEquals(error.code, "protocol");
    assertStringIncludes(error.message, reason);
  });
}

Deno.test("parseManifest() refuses what is not JSON or not UTF-8", () => {
  for (const bytes of [new Uint8Array(), new TextEncoder().encode("<html>"), new Uint8Array([0x22, 0xff, 0x22])]) {
    assertEquals(assertThrows(() => parseManifest(bytes, null), LacewingError).code, "protocol");
  }
});

Deno.test("parseManifest() takes 1,000 entries and no more", () => {
  const entries = (count: number) => ({ ...INDEX, manifests: Array.from({ length: count }, () => ENTRY) });
  assertEquals(parse(entries(1000)).kind, "index");
  assertEquals(assertThrows(() => parse(entries(1001)), LacewingError).code, "too_large");
  const layers = Array.from({ length: 1001 }, () => LAYER);
  assertEquals(assertThrows(() => parse({ ...MANIFEST, layers }), LacewingError).code, "too_large");
});

Deno.test("parseManifest() takes no more than 4 MiB", () => {
  const bytes = new Uint8Array(MANIFEST_LENGTH_MAX + 1).fill(0x20);
  assertEquals(assertThrows(() => parseManifest(bytes, null), LacewingError).code, "too_large");
});

const MATCHES: [wanted: string, entry: string, matches: boolean][] = [
  ["linux/amd64", "linux/amd64", true],
  ["linux/arm64", "linux/arm64/v8", true],
  ["linux/arm64", "linux/arm64", true],
  ["linux/arm64/v8", "linux/arm64", true],
  ["linux/arm64/v8", "linux/arm64/v8", true],
  ["linux/arm64/v9", "linux/arm64/v8", false],
  ["linux/arm64/v9", "linux/arm64", false],
  ["linux/arm", "linux/arm/v6", true],
  ["linux/arm/v7", "linux/arm", true],
  ["linux/arm/v6", "linux/arm", false],
  ["linux/arm/v6", "linux/arm/v7", false],
  ["linux/amd64", "windows/amd64", false],
  ["linux/arm", "linux/arm64", false],
  ["linux/amd64/v3", "linux/amd64", false],
];

for (const [wanted, entry, matches] of MATCHES) {
  Deno.test(`matchesPlatform() ${matches ? "takes" : "leaves"} ${entry} for ${wanted}`, () => {
    assertEquals(matchesPlatform(parsePlatform(wanted), parsePlatform(entry)), matches);
  });
}

for (
  const text of ["", "linux", "linux/", "/amd64", "linux/amd64/", "linux/arm64/v8/x", "Linux/amd64", "linux amd64"]
) {
  Deno.test(`parsePlatform() refuses ${JSON.stringify(text)}`, () => {
    assertEquals(assertThrows(() => parsePlatform(text), LacewingError).code, "invalid");
  });
}

Deno.test("isAttestation() is true for unknown/unknown alone", () => {
  assert(isAttestation(parsePlatform("unknown/unknown")));
  assert(!isAttestation(parsePlatform("linux/unknown")));
});
