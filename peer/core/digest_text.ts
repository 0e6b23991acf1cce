/**
 * Digests in their text form `algorithm:hex`. Apart from the hashing, because
 * `node:crypto` takes 20 ms to load, and a client that checks nothing needs none.
 */
import { LacewingError } from "./errors.ts";

/** Algorithms and how many hex digits each has. */
const HEX_DIGITS = { md5: 32, sha1: 40, sha256: 64, sha512: 128 } as const;

export type DigestAlgorithm = keyof typeof HEX_DIGITS;

export interface Digest {
  readonly algorithm: DigestAlgorithm;
  /** Lower-case hex. */
  readonly hex: string;
}

/**
 * Reads `algorithm:hex`.
 *
 * @throws {LacewingError} `usage` naming what is wrong with it.
 */
export function parseDigest(text: string): Digest {
  const [algorithm, hex, ...rest] = text.split(":");
  if (algorithm === undefined || hex === undefined || rest.length > 0 || !Object.hasOwn(HEX_DIGITS, algorithm)) {
    const known = Object.keys(HEX_DIGITS).join(", ");
    throw new LacewingError(
      "usage",
      `Cannot read digest ${JSON.stringify(text)}: want ALGORITHM:HEX with one of ${known}`,
    );
  }
  const digits = HEX_DIGITS[algorithm as DigestAlgorithm];
  if (hex.length !== digits || !/^[0-9a-fA-F]+$/.test(hex)) {
    throw new LacewingError(
      "usage",
      `Cannot read digest ${JSON.stringify(text)}: ${algorithm} has ${digits} hex digits, not ${hex.length}`,
    );
  }
  return { algorithm: algorithm as DigestAlgorithm, hex: hex.toLowerCase() };
}

/** The text form `algorithm:hex`. */
export function formatDigest({ algorithm, hex }: Digest): string {
  return `${algorithm}:${hex}`;
}

/**
 * The digest that an OCI blob or manifest URL promises
 * (`…/blobs/sha256:…`, `…/manifests/sha256:…`), or null when it promises none.
 */
export function digestInUrl(url: string): Digest | null {
  const path = URL.parse(url)?.pathname ?? "";
  const match = /\/v2\/.+\/(?:blobs|manifests)\/(sha256|sha512):([0-9a-f]+)$/.exec(decodePath(path));
  if (match === null) return null;
  const [, algorithm, hex] = match;
  return hex?.length === HEX_DIGITS[algorithm as DigestAlgorithm]
    ? { algorithm: algorithm as DigestAlgorithm, hex }
    : null;
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
