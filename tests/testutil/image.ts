/**
 * A container image made from nothing: an index of two platforms
 * (linux/amd64 with 6 layers, linux/arm64/v8 with 4, two of them shared), of
 * invented content that is the same on every machine with the same gzip.
 * In OCI or Docker types; kept in memory, or written as an OCI layout.
 */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { contentBytes } from "./content.ts";

export interface TestBlob {
  /** `sha256:…`. */
  readonly digest: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface PlatformImage {
  readonly platform: string;
  readonly manifest: TestBlob;
  readonly config: TestBlob;
  readonly layers: readonly TestBlob[];
}

export interface TestImage {
  readonly index: TestBlob;
  readonly images: readonly PlatformImage[];
  /** Manifests by digest, the index among them. */
  readonly manifests: ReadonlyMap<string, TestBlob>;
  /** Configs and layers by digest. */
  readonly blobs: ReadonlyMap<string, TestBlob>;
}

export interface ImageOptions {
  /** Times about 3 MB in all. Default 1. */
  scale?: number;
  /** Another seed, another image. Default 1. */
  seed?: number;
  /** Media types. Default `oci`. */
  format?: "oci" | "docker";
}

interface Types {
  readonly index: string;
  readonly manifest: string;
  readonly config: string;
  readonly layer: string;
}

export const OCI_TYPES: Types = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
};

export const DOCKER_TYPES: Types = {
  index: "application/vnd.docker.distribution.manifest.list.v2+json",
  manifest: "application/vnd.docker.distribution.manifest.v2+json",
  config: "application/vnd.docker.container.image.v1+json",
  layer: "application/vnd.docker.image.rootfs.diff.tar.gzip",
};

interface BuiltLayer {
  readonly blob: TestBlob;
  /** Digest of the tar before gzip. */
  readonly diffId: string;
}

/** Makes an image; equal options give equal digests. */
export function makeImage({ scale = 1, seed = 1, format = "oci" }: ImageOptions = {}): TestImage {
  const types = format === "oci" ? OCI_TYPES : DOCKER_TYPES;
  let layers = 0;
  const layer = (path: string, size: number) => {
    layers += 1;
    return buildLayer(path, contentBytes(seed * 100 + layers, 0, Math.round(size * scale)), types);
  };
  const locales = layer("usr/share/locale/all.bin", 400_000);
  const app = layer("app/run.bin", 300);
  const amd64 = [
    layer("bin/base.bin", 150_000),
    locales,
    layer("usr/bin/tools.bin", 700_000),
    layer("usr/lib/libs.bin", 900_000),
    layer("model/weights.bin", 500_000),
    app,
  ];
  const arm64 = [layer("bin/base-arm64.bin", 100_000), locales, layer("usr/bin/tools-arm64.bin", 400_000), app];
  return assemble([
    buildPlatform({ os: "linux", architecture: "amd64" }, amd64, types),
    buildPlatform({ os: "linux", architecture: "arm64", variant: "v8" }, arm64, types),
  ], types);
}

/** An image of this machine's platform alone: each file is a layer of its own, `command` is what a container runs. */
export function imageOfFiles(
  files: readonly { path: string; content: Uint8Array }[],
  command: readonly string[],
): TestImage {
  const architecture = Deno.build.arch === "aarch64" ? "arm64" : "amd64";
  const layers = files.map(({ path, content }) => buildLayer(path, content, OCI_TYPES));
  return assemble([buildPlatform({ os: "linux", architecture }, layers, OCI_TYPES, command)], OCI_TYPES);
}

/** A blob of JSON, such as a manifest of a test's own. */
export function jsonBlob(value: unknown, mediaType: string): TestBlob {
  return toBlob(new TextEncoder().encode(JSON.stringify(value)), mediaType);
}

/** The descriptor that manifests and indexes hold. */
export function descriptorOf({ mediaType, digest, bytes }: TestBlob): {
  mediaType: string;
  digest: string;
  size: number;
} {
  return { mediaType, digest, size: bytes.length };
}

/** Writes the image as an OCI layout that `skopeo copy oci:FOLDER:TAG` reads. */
export async function writeLayout(image: TestImage, { folder, tag }: { folder: string; tag: string }): Promise<void> {
  const blobs = `${folder}/blobs/sha256`;
  await Deno.mkdir(blobs, { recursive: true });
  for (const { digest, bytes } of [...image.manifests.values(), ...image.blobs.values()]) {
    await Deno.writeFile(`${blobs}/${digest.slice("sha256:".length)}`, bytes);
  }
  const annotations = { "org.opencontainers.image.ref.name": tag };
  const index = { schemaVersion: 2, manifests: [{ ...descriptorOf(image.index), annotations }] };
  await Deno.writeTextFile(`${folder}/oci-layout`, `{"imageLayoutVersion":"1.0.0"}`);
  await Deno.writeTextFile(`${folder}/index.json`, JSON.stringify(index));
}

/** Puts platform images under an index. */
function assemble(
  images: readonly (PlatformImage & { descriptor: Record<string, unknown> })[],
  types: Types,
): TestImage {
  const manifests = images.map(({ descriptor }) => descriptor);
  const index = jsonBlob({ schemaVersion: 2, mediaType: types.index, manifests }, types.index);
  const byDigest = (blobs: readonly TestBlob[]) => new Map(blobs.map((blob) => [blob.digest, blob]));
  return {
    index,
    images,
    manifests: byDigest([index, ...images.map(({ manifest }) => manifest)]),
    blobs: byDigest(images.flatMap(({ config, layers }) => [config, ...layers])),
  };
}

function buildPlatform(
  platform: { os: string; architecture: string; variant?: string },
  layers: readonly BuiltLayer[],
  types: Types,
  command: readonly string[] = ["/app/run.bin"],
): PlatformImage & { descriptor: Record<string, unknown> } {
  const config = jsonBlob({
    created: "2024-01-01T00:00:00Z",
    ...platform,
    config: { Cmd: command },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created: "2024-01-01T00:00:00Z", created_by: "test" })),
  }, types.config);
  const blobs = layers.map(({ blob }) => blob);
  const manifest = jsonBlob({
    schemaVersion: 2,
    mediaType: types.manifest,
    config: descriptorOf(config),
    layers: blobs.map(descriptorOf),
  }, types.manifest);
  const name = [platform.os, platform.architecture, platform.variant].filter((part) => part !== undefined).join("/");
  return { platform: name, manifest, config, layers: blobs, descriptor: { ...descriptorOf(manifest), platform } };
}

function buildLayer(path: string, content: Uint8Array, types: Types): BuiltLayer {
  const tar = tarOf(path, content);
  const blob = toBlob(new Uint8Array(gzipSync(tar, { level: 1 })), types.layer);
  return { blob, diffId: digestOf(tar) };
}

/** A tar (POSIX ustar) of one file, with its folders left to be made by whoever unpacks it. */
function tarOf(path: string, content: Uint8Array): Uint8Array {
  const header = new Uint8Array(512);
  const field = (offset: number, text: string) => header.set(new TextEncoder().encode(text), offset);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  field(0, path);
  field(100, `${octal(0o755, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`);
  field(124, `${octal(content.length, 11)}\0${octal(0, 11)}\0`);
  // The sum is taken over blanks in its own place.
  field(148, "        0");
  field(257, "ustar\x0000");
  field(148, `${octal(header.reduce((sum, byte) => sum + byte, 0), 6)}\0 `);
  const padded = Math.ceil(content.length / 512) * 512;
  const tar = new Uint8Array(512 + padded + 1024);
  tar.set(header);
  tar.set(content, 512);
  return tar;
}

function toBlob(bytes: Uint8Array<ArrayBuffer>, mediaType: string): TestBlob {
  return { digest: digestOf(bytes), mediaType, bytes };
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
