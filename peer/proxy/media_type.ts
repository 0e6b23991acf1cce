/**
 * Tells the media type of a manifest from its text: the type it names itself,
 * else the one that its shape gives away (OCI lets `mediaType` out). Pure.
 */

const TYPES = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  signed: "application/vnd.docker.distribution.manifest.v1+prettyjws",
  first: "application/vnd.docker.distribution.manifest.v1+json",
};

/** @returns null for what is no manifest */
export function manifestMediaType(bytes: Uint8Array): string | null {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const { mediaType, manifests, layers, config, schemaVersion, signatures } = value as Record<string, unknown>;
  if (typeof mediaType === "string" && /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}$/.test(mediaType)) return mediaType;
  if (Array.isArray(manifests)) return TYPES.index;
  if (Array.isArray(layers) || (typeof config === "object" && config !== null)) return TYPES.manifest;
  if (schemaVersion !== 1) return null;
  return Array.isArray(signatures) ? TYPES.signed : TYPES.first;
}
