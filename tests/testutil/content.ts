/**
 * Invented contents: any size from a seed, any part of it without the rest.
 * One random pattern a seed, stamped with the block's number, so that no two
 * blocks of 64 KiB are alike and a piece in the wrong place shows.
 */
import { createHash } from "node:crypto";
import { seededRandom } from "../../peer/core/clock.ts";

const BLOCK_LENGTH = 64 * 1024;
const patterns = new Map<number, Uint8Array>();

/** Bytes `offset` to `offset + length` of the content of a seed. */
export function contentBytes(seed: number, offset: number, length: number): Uint8Array<ArrayBuffer> {
  const pattern = patternOf(seed);
  const bytes = new Uint8Array(length);
  const stamp = new Uint8Array(8);
  for (let at = 0; at < length;) {
    const block = Math.floor((offset + at) / BLOCK_LENGTH);
    const within = (offset + at) % BLOCK_LENGTH;
    const part = pattern.subarray(within, Math.min(BLOCK_LENGTH, within + length - at));
    bytes.set(part, at);
    if (within < stamp.length) {
      new DataView(stamp.buffer).setFloat64(0, (block + 1) * 1000003 + seed);
      bytes.set(stamp.subarray(within, Math.min(stamp.length, within + part.length)), at);
    }
    at += part.length;
  }
  return bytes;
}

/** `algorithm:hex` of a content, block by block. */
export function contentDigest({ seed, size }: { seed: number; size: number }, algorithm = "sha256"): string {
  const hash = createHash(algorithm);
  const step = 16 * BLOCK_LENGTH;
  for (let offset = 0; offset < size; offset += step) {
    hash.update(contentBytes(seed, offset, Math.min(step, size - offset)));
  }
  return `${algorithm}:${hash.digest("hex")}`;
}

/** `sha256:hex` of a file. */
export async function fileDigest(path: string, algorithm = "sha256"): Promise<string> {
  const hash = createHash(algorithm);
  using file = await Deno.open(path);
  const buffer = new Uint8Array(1024 * 1024);
  for (let read = await file.read(buffer); read !== null; read = await file.read(buffer)) {
    hash.update(buffer.subarray(0, read));
  }
  return `${algorithm}:${hash.digest("hex")}`;
}

function patternOf(seed: number): Uint8Array {
  let pattern = patterns.get(seed);
  if (pattern === undefined) {
    const random = seededRandom(seed);
    const words = new Uint32Array(BLOCK_LENGTH / 4).map(() => random() * 2 ** 32);
    pattern = new Uint8Array(words.buffer);
    patterns.set(seed, pattern);
  }
  return pattern;
}
