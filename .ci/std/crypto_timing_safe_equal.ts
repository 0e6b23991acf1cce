/**
 * Stands in for `@std/crypto/timing-safe-equal` where JSR is out of reach, on
 * `node:crypto`. Both throw on two inputs of different length (releases of
 * `@std/crypto` before 1.1 answer false), so callers compare digests.
 */
import { timingSafeEqual as nodeTimingSafeEqual } from "node:crypto";

/**
 * Whether two buffers hold the same bytes, in a time that does not depend on them.
 * @throws {TypeError} if the lengths differ
 */
export function timingSafeEqual(a: ArrayBufferView | ArrayBufferLike, b: ArrayBufferView | ArrayBufferLike): boolean {
  if (a.byteLength !== b.byteLength) {
    throw new TypeError(`Cannot compare buffers of ${a.byteLength} B and ${b.byteLength} B`);
  }
  return nodeTimingSafeEqual(bytesOf(a), bytesOf(b));
}

function bytesOf(value: ArrayBufferView | ArrayBufferLike): Uint8Array {
  return ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value);
}
