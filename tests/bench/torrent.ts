/** Makes .torrent files (BEP 3), for running BitTorrent beside us. Pure but for reading the files. */
import { createHash } from "node:crypto";

export type Bencodable = number | string | Uint8Array | readonly Bencodable[] | { readonly [key: string]: Bencodable };

/** @throws {RangeError} for a number that is no whole one */
export function bencode(value: Bencodable): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  encode(value, parts);
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function encode(value: Bencodable, parts: Uint8Array[]): void {
  const text = (content: string) => parts.push(new TextEncoder().encode(content));
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new RangeError(`Cannot bencode ${value}: want a whole number`);
    text(`i${value}e`);
  } else if (typeof value === "string") {
    const bytes = new TextEncoder().encode(value);
    text(`${bytes.length}:`);
    parts.push(bytes);
  } else if (value instanceof Uint8Array) {
    text(`${value.length}:`);
    parts.push(value);
  } else if (Array.isArray(value)) {
    text("l");
    for (const item of value) encode(item, parts);
    text("e");
  } else {
    const map = value as { readonly [key: string]: Bencodable };
    text("d");
    // Keys in the order of their bytes, as BEP 3 wants.
    for (const key of Object.keys(map).sort()) {
      encode(key, parts);
      encode(map[key]!, parts);
    }
    text("e");
  }
}

export interface TorrentOptions {
  readonly folder: string;
  readonly files: readonly { readonly name: string; readonly size: number }[];
  readonly announce: string;
  readonly pieceLength: number;
}

/** Reads the files once and digests their pieces. Several files become a folder with this name. */
export async function makeTorrent(
  name: string,
  { folder, files, announce, pieceLength }: TorrentOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const digests: Uint8Array[] = [];
  const piece = new Uint8Array(pieceLength);
  let filled = 0;
  const close = () => {
    digests.push(createHash("sha1").update(piece.subarray(0, filled)).digest());
    filled = 0;
  };
  for (const file of files) {
    using handle = await Deno.open(`${folder}/${file.name}`);
    for (let read = await handle.read(piece.subarray(filled)); read !== null;) {
      filled += read;
      if (filled === pieceLength) close();
      read = await handle.read(piece.subarray(filled));
    }
  }
  if (filled > 0) close();
  const pieces = new Uint8Array(digests.length * 20);
  for (const [index, digest] of digests.entries()) pieces.set(digest, index * 20);
  const [first] = files;
  const content: { [key: string]: Bencodable } = files.length === 1 && first !== undefined
    ? { name: first.name, length: first.size }
    : { name, files: files.map((file) => ({ length: file.size, path: [file.name] })) };
  return bencode({ announce, info: { ...content, "piece length": pieceLength, pieces } });
}
