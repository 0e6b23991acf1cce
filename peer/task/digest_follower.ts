/**
 * Checks the digest of a whole content while its pieces arrive in any order:
 * follows the held beginning through the store, so that at the end only what
 * came last is left to read. Reads from the page cache: 0.5 s of CPU per GB
 * for SHA-256, 1.4 for MD5 (DESIGN section 7).
 */
import { type Digest, formatDigest, startDigest } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import type { ByteRange } from "../core/piece.ts";
import type { StoredTask } from "../storage/piece_store.ts";

const CHUNK_LENGTH = 1024 * 1024;

export interface DigestFollowerOptions {
  readonly want: Digest;
  /** Bytes that the digest is of: all, or the range asked for. */
  readonly range: ByteRange;
  readonly signal: AbortSignal;
  /** Resolves when this piece is held; rejects with `signal.reason`. */
  readonly pieceHeld: (number: number) => Promise<void>;
}

/**
 * @returns the digest's text form
 * @throws {LacewingError} `digest_mismatch` naming both
 */
export async function followDigest(
  store: StoredTask,
  { want, range, signal, pieceHeld }: DigestFollowerOptions,
): Promise<string> {
  const pieceLength = store.info.meta.piece_length;
  const end = range.offset + range.length;
  const digest = startDigest(want.algorithm);
  const buffer = new Uint8Array(Math.min(CHUNK_LENGTH, Math.max(range.length, 1)));
  let offset = range.offset;
  while (offset < end) {
    const number = Math.floor(offset / pieceLength);
    if (!store.pieces.has(number)) await pieceHeld(number);
    signal.throwIfAborted();
    const pieceEnd = Math.min((number + 1) * pieceLength, end);
    const read = await store.read(buffer.subarray(0, Math.min(buffer.length, pieceEnd - offset)), offset);
    if (read === 0) {
      throw new LacewingError("file", `Cannot read ${store.path}: it ends at byte ${offset}, want ${end}`);
    }
    digest.update(buffer.subarray(0, read));
    offset += read;
  }
  const hex = digest.digest("hex");
  if (hex === want.hex) return formatDigest(want);
  throw new LacewingError(
    "digest_mismatch",
    `Cannot accept the content: its digest is ${want.algorithm}:${hex}, expected ${formatDigest(want)}`,
  );
}
