/**
 * Piece geometry: how a content is cut into numbered byte ranges. Pure
 * arithmetic; an empty content has no piece, only the last piece is shorter.
 */

/** Bounds and goal of the piece length in bytes, DESIGN section 5. */
export const PIECE_LENGTH_MIN = 256 * 1024;
export const PIECE_LENGTH_MAX = 16 * 1024 * 1024;
const PIECE_COUNT_GOAL = 1024;
/** Most pieces of a content: 6 TiB in pieces of 16 MiB, and as many bits as an exchange message carries. */
export const PIECE_COUNT_MAX = 48 * 1024 * 8;

/** How one content is cut. */
export interface PieceLayout {
  /** Bytes of the whole content, at least 0. */
  readonly contentLength: number;
  /** Bytes of every piece but the last: a power of two. */
  readonly pieceLength: number;
}

/** `length` bytes from `offset`. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/**
 * Piece length for a content: the smallest power of two in [256 KiB, 16 MiB]
 * that keeps it to about 1,000 pieces. Small pieces matter: a swarm needs
 * log2(N) piece times beyond the bound (Mundinger, Weber, Weiss 2008).
 *
 * @returns bytes
 */
export function pieceLengthFor(contentLength: number): number {
  let length = PIECE_LENGTH_MIN;
  while (length < PIECE_LENGTH_MAX && contentLength > length * PIECE_COUNT_GOAL) length *= 2;
  return length;
}

/** Number of pieces of a content; 0 when it is empty. */
export function pieceCount({ contentLength, pieceLength }: PieceLayout): number {
  return Math.ceil(contentLength / pieceLength);
}

/**
 * Bytes covered by piece `number` (from 0); only the last may be shorter.
 *
 * @returns offset and length in bytes, length at least 1
 * @throws {RangeError} if the content has no such piece.
 */
export function pieceRange(number: number, layout: PieceLayout): ByteRange {
  const { contentLength, pieceLength } = layout;
  const offset = number * pieceLength;
  if (!Number.isInteger(number) || offset < 0 || offset >= contentLength) {
    throw new RangeError(`Cannot locate piece ${number} in ${contentLength} B`);
  }
  return { offset, length: Math.min(pieceLength, contentLength - offset) };
}

/**
 * Numbers of the pieces that hold a byte range, as first and count.
 *
 * @throws {RangeError} if the range is not within the content.
 */
export function piecesOf(range: ByteRange, layout: PieceLayout): { first: number; count: number } {
  const { offset, length } = range;
  const whole = Number.isInteger(offset) && Number.isInteger(length);
  if (!whole || offset < 0 || length < 0 || offset + length > layout.contentLength) {
    throw new RangeError(`Cannot cut ${offset}+${length} out of ${layout.contentLength} B`);
  }
  if (length === 0) return { first: 0, count: 0 };
  const first = Math.floor(offset / layout.pieceLength);
  const last = Math.floor((offset + length - 1) / layout.pieceLength);
  return { first, count: last - first + 1 };
}
