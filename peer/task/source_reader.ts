/**
 * Reads a run of pieces from an origin's answer into the store: cuts the
 * stream at piece borders, digests each piece on the way, and reports it when
 * its last byte is written. Never reports half a piece.
 */
import { startDigest } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import { pieceRange } from "../core/piece.ts";
import type { Limiter } from "../core/rate_limit.ts";
import type { TaskMeta } from "../core/wire/scheduler.ts";
import type { SourceBody } from "../source/source.ts";
import type { StoredTask } from "../storage/piece_store.ts";

/** Bytes that a first request asks for, while the content's length is unknown. */
export const PROBE_LENGTH = 1024 * 1024;

export interface ReadRunOptions {
  readonly first: number;
  /** Pieces to read at most; the body may end at a piece border before. */
  readonly count: number;
  readonly limiters: readonly Limiter[];
  readonly signal: AbortSignal;
  /** Whether the piece is valid on disk already: it is digested to compare, and not written. */
  readonly isHeld: (number: number) => boolean;
  /** Called with each finished piece; a throw ends the run. */
  readonly onPiece: (number: number, sha256: string) => void;
  /** Bytes of a piece that is not held were written, in their order. */
  readonly onWritten?: (bytes: Uint8Array, offset: number) => void;
  /** Bytes were received, whether or not they end up in a piece. */
  readonly onBytes?: (length: number) => void;
}

/**
 * @returns how many pieces were read whole
 * @throws {LacewingError} `source_failed` when the body ends in the middle of a piece that it should hold
 */
export async function readRun(
  body: SourceBody,
  { store, meta }: { store: StoredTask; meta: TaskMeta },
  options: ReadRunOptions,
): Promise<number> {
  const layout = { contentLength: meta.content_length, pieceLength: meta.piece_length };
  const end = options.first + options.count;
  let number = options.first;
  let position = body.offset;
  let piece = pieceRange(number, layout);
  if (position > piece.offset) {
    throw new LacewingError(
      "source_failed",
      `Cannot read piece ${number}: the origin's answer begins after it, at byte ${position}`,
    );
  }
  let digest = startDigest("sha256");
  while (number < end) {
    const chunk = await body.read();
    options.signal.throwIfAborted();
    if (chunk === null) break;
    options.onBytes?.(chunk.length);
    for (const limiter of options.limiters) await limiter.take(chunk.length, options.signal);
    let at = Math.max(0, Math.min(chunk.length, piece.offset - position));
    while (at < chunk.length && number < end) {
      const offset = position + at;
      const length = Math.min(chunk.length - at, piece.offset + piece.length - offset);
      const bytes = chunk.subarray(at, at + length);
      digest.update(bytes);
      if (!options.isHeld(number)) {
        await store.write(bytes, offset);
        options.onWritten?.(bytes, offset);
      }
      at += length;
      if (offset + length < piece.offset + piece.length) continue;
      options.onPiece(number, digest.digest("hex"));
      number += 1;
      if (number === end) break;
      piece = pieceRange(number, layout);
      digest = startDigest("sha256");
    }
    position += chunk.length;
  }
  const covered = body.length === null ? Infinity : body.offset + body.length;
  if (number < end && covered >= piece.offset + piece.length) {
    throw new LacewingError(
      "source_failed",
      `Cannot read piece ${number}: the origin's answer ended at byte ${position}, want ${piece.offset + piece.length}`,
    );
  }
  return number - options.first;
}
