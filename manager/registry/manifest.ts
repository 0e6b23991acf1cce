/**
 * Reads what a registry calls a manifest: OCI index and Docker manifest list,
 * OCI manifest and Docker schema 2. Pure. What is ambiguous is refused: a body
 * that is both index and manifest, or another type than its Content-Type says,
 * could be read differently by a client (CVE-2021-41190).
 */
import { LacewingError } from "../../peer/core/errors.ts";
import { isOciDigest } from "./reference.ts";

/** Bytes of one manifest; the distribution specification asks registries to take at least so much. */
export const MANIFEST_LENGTH_MAX = 4 * 1024 * 1024;
/** Entries of one index, or layers of one manifest. */
const ENTRY_COUNT_MAX = 1000;

const INDEX_TYPES: readonly string[] = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
];
const MANIFEST_TYPES: readonly string[] = [
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
];
const SCHEMA1_TYPE = /^application\/vnd\.docker\.distribution\.manifest\.v1\+/;
/** Layers that hosts fetch from elsewhere, if at all. */
const FOREIGN_TYPE = /(?:\.foreign\.|\.nondistributable\.)/;

/** What a request for any manifest must accept: some registries answer 404 where a type is missing. */
export const MANIFEST_ACCEPT = [...INDEX_TYPES, ...MANIFEST_TYPES].join(", ");

export interface Descriptor {
  readonly mediaType: string;
  /** `sha256:…` or `sha512:…`. */
  readonly digest: string;
  /** Bytes. */
  readonly size: number;
}

/** `variant` is empty where there is none. */
export interface Platform {
  readonly os: string;
  readonly architecture: string;
  readonly variant: string;
}

export interface IndexEntry extends Descriptor {
  /** `other` is neither manifest nor index: no client pulls it with the image. */
  readonly kind: "index" | "manifest" | "other";
  readonly platform: Platform | null;
}

export interface Layer extends Descriptor {
  readonly isForeign: boolean;
}

export type Manifest =
  | { readonly kind: "index"; readonly entries: readonly IndexEntry[] }
  | { readonly kind: "manifest"; readonly config: Descriptor; readonly layers: readonly Layer[] };

/**
 * Reads one manifest.
 *
 * @param contentType as the registry sent it, or null
 * @throws {LacewingError} `protocol` naming what is wrong; `too_large` above the bounds.
 */
export function parseManifest(bytes: Uint8Array, contentType: string | null): Manifest {
  if (bytes.length > MANIFEST_LENGTH_MAX) {
    throw new LacewingError(
      "too_large",
      `Cannot read manifest: it has ${bytes.length} B, at most ${MANIFEST_LENGTH_MAX} are allowed`,
    );
  }
  const body = parseJson(bytes);
  const kind = kindOf(body, contentType);
  if (kind === "index") {
    return {
      kind,
      entries: list(body.manifests, "manifests").map((value, at) => indexEntry(value, `manifests[${at}]`)),
    };
  }
  return {
    kind,
    config: descriptor(record(body.config, "config"), "config"),
    layers: list(body.layers, "layers").map((value, at) => layer(value, `layers[${at}]`)),
  };
}

/**
 * Reads `os/architecture[/variant]`, such as `linux/arm64`.
 *
 * @throws {LacewingError} `invalid`
 */
export function parsePlatform(text: string): Platform {
  const match = /^([a-z0-9_.-]{1,32})\/([a-z0-9_.-]{1,32})(?:\/([a-zA-Z0-9_.-]{1,32}))?$/.exec(text);
  const [, os, architecture, variant = ""] = match ?? [];
  if (os === undefined || architecture === undefined) {
    throw new LacewingError(
      "invalid",
      `Cannot read platform ${JSON.stringify(text.slice(0, 100))}: want OS/ARCHITECTURE[/VARIANT] such as linux/arm64`,
    );
  }
  return { os, architecture, variant };
}

/** The text form that `parsePlatform` reads. */
export function formatPlatform({ os, architecture, variant }: Platform): string {
  return variant === "" ? `${os}/${architecture}` : `${os}/${architecture}/${variant}`;
}

/** The variant that a platform without one has, as the Go runtime and containerd take it. */
const DEFAULT_VARIANTS: Readonly<Record<string, string>> = { amd64: "v1", arm: "v7", arm64: "v8" };

/** Whether an entry is for the wanted platform; a wanted platform without variant takes them all. */
export function matchesPlatform(wanted: Platform, entry: Platform): boolean {
  if (wanted.os !== entry.os || wanted.architecture !== entry.architecture) return false;
  if (wanted.variant === "" || wanted.variant === entry.variant) return true;
  return entry.variant === "" && DEFAULT_VARIANTS[entry.architecture] === wanted.variant;
}

/** Whether the entry holds attestations (provenance, SBOM) and no image: platform `unknown/unknown`. */
export function isAttestation(platform: Platform): boolean {
  return platform.os === "unknown" && platform.architecture === "unknown";
}

function kindOf(body: Record<string, unknown>, contentType: string | null): "index" | "manifest" {
  const header = contentType?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const inBody = typeof body.mediaType === "string" ? body.mediaType : "";
  if (SCHEMA1_TYPE.test(header) || SCHEMA1_TYPE.test(inBody) || body.schemaVersion === 1) {
    throw malformed("it is Docker schema 1, which is not supported; push the image again with a current client");
  }
  if (body.schemaVersion !== 2) throw malformed(`schemaVersion is ${show(body.schemaVersion)}, want 2`);
  const shapes = ([["index", "manifests"], ["manifest", "layers"]] as const).filter(([, key]) =>
    body[key] !== undefined
  );
  const [shape] = shapes;
  if (shape === undefined || shapes.length > 1) {
    throw malformed(
      `it has ${shape === undefined ? "neither" : "both"} manifests ${shape === undefined ? "nor" : "and"} layers`,
    );
  }
  for (const type of [header, inBody]) {
    const claimed = kindOfType(type);
    if (claimed !== "other" && claimed !== shape[0]) {
      throw malformed(`its type ${show(type)} and its content (${shape[1]}) contradict each other`);
    }
  }
  if (inBody !== "" && kindOfType(inBody) === "other") throw malformed(`media type ${show(inBody)} is not supported`);
  return shape[0];
}

function kindOfType(mediaType: string): "index" | "manifest" | "other" {
  if (INDEX_TYPES.includes(mediaType)) return "index";
  return MANIFEST_TYPES.includes(mediaType) ? "manifest" : "other";
}

function indexEntry(value: unknown, path: string): IndexEntry {
  const entry = record(value, path);
  const { mediaType, digest, size } = descriptor(entry, path);
  const platform = entry.platform === undefined || entry.platform === null
    ? null
    : readPlatform(record(entry.platform, `${path}.platform`), `${path}.platform`);
  return { mediaType, digest, size, kind: kindOfType(mediaType), platform };
}

function layer(value: unknown, path: string): Layer {
  const described = descriptor(record(value, path), path);
  return { ...described, isForeign: FOREIGN_TYPE.test(described.mediaType) };
}

function descriptor({ mediaType, digest, size }: Record<string, unknown>, path: string): Descriptor {
  if (typeof mediaType !== "string" || mediaType === "" || mediaType.length > 255) {
    throw malformed(`${path}.mediaType is ${show(mediaType)}, want a media type`);
  }
  if (!isOciDigest(digest)) throw malformed(`${path}.digest is ${show(digest)}, want sha256:HEX or sha512:HEX`);
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) {
    throw malformed(`${path}.size is ${show(size)}, want a number of bytes`);
  }
  return { mediaType, digest, size };
}

function readPlatform({ os, architecture, variant = "" }: Record<string, unknown>, path: string): Platform {
  for (const [key, value] of Object.entries({ os, architecture, variant })) {
    if (typeof value !== "string" || value.length > 64) throw malformed(`${path}.${key} is ${show(value)}, want text`);
  }
  return { os: os as string, architecture: architecture as string, variant: variant as string };
}

function parseJson(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new LacewingError("protocol", "Cannot read manifest: it is not JSON", { cause });
  }
  return record(value, "it");
}

function record(value: unknown, path: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw malformed(`${path} is ${show(value)}, want an object`);
}

function list(value: unknown, path: string): unknown[] {
  if (!Array.isArray(value)) throw malformed(`${path} is ${show(value)}, want a list`);
  if (value.length <= ENTRY_COUNT_MAX) return value;
  throw new LacewingError(
    "too_large",
    `Cannot read manifest: ${path} has ${value.length} entries, at most ${ENTRY_COUNT_MAX} are allowed`,
  );
}

function malformed(reason: string): LacewingError {
  return new LacewingError("protocol", `Cannot read manifest: ${reason}`);
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? "missing").slice(0, 100);
}
