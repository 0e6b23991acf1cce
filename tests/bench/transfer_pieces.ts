/**
 * What the ways of the transfer bench share: pieces of a content asked for
 * with Range over one kept-alive HTTP/1.1 connection, by a reader that is as
 * small as can be. Not for use in the product: it trusts the other end.
 */

/** One piece asked for at a time, as large as pieces of a content of 4 GiB are. */
export const PIECE_LENGTH = 4 * 1024 * 1024;
/** The product's buffer. */
export const BUFFER_LENGTH = 256 * 1024;

export interface Piece {
  readonly offset: number;
  readonly length: number;
}

export function* piecesOf(size: number): Generator<Piece> {
  for (let offset = 0; offset < size; offset += PIECE_LENGTH) {
    yield { offset, length: Math.min(PIECE_LENGTH, size - offset) };
  }
}

export function rangeField({ offset, length }: Piece): string {
  return `bytes=${offset}-${offset + length - 1}`;
}

export function pieceOf(range: string | null | undefined): Piece {
  const [first = 0, last = 0] = (range ?? "").replace("bytes=", "").split("-").map(Number);
  return { offset: first, length: last - first + 1 };
}

export function requestHead(url: URL, piece: Piece): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(
    `GET ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\nrange: ${rangeField(piece)}\r\n\r\n`,
  );
}

export function responseHead({ length }: Piece): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`HTTP/1.1 206 Partial Content\r\ncontent-length: ${length}\r\n\r\n`);
}

/** Where the head ends in the bytes, or -1. */
export function headEnd(bytes: Uint8Array): number {
  for (let at = 0; at + 3 < bytes.length; at++) {
    if (bytes[at] === 13 && bytes[at + 1] === 10 && bytes[at + 2] === 13 && bytes[at + 3] === 10) return at + 4;
  }
  return -1;
}

/** The piece that a request asks for. */
export function askedPiece(head: Uint8Array): Piece {
  return pieceOf(/^range: *(.*)\r$/im.exec(new TextDecoder().decode(head))?.[1]);
}
