/**
 * Digests: their text form (`digest_text.ts`), and the incremental hashing
 * behind them (`node:crypto`: Web Crypto cannot digest incrementally).
 */
import { createHash, type Hash } from "node:crypto";
import type { DigestAlgorithm } from "./digest_text.ts";

export { type Digest, type DigestAlgorithm, digestInUrl, formatDigest, parseDigest } from "./digest_text.ts";

/** An incremental hash; `.update(bytes)` and once `.digest("hex")`. */
export function startDigest(algorithm: DigestAlgorithm): Hash {
  return createHash(algorithm);
}

/** SHA-256 of bytes in memory, as hex. */
export function sha256Hex(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}
