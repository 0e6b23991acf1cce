import { assert, assertEquals, assertRejects } from "@std/assert";
import fc from "fast-check";
import { createHash } from "node:crypto";
import type { Digest } from "../../../../peer/core/digest.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { followDigest } from "../../../../peer/task/digest_follower.ts";
import { allPieces, type Content, storedContent } from "./stored_content.ts";

function digestOf(bytes: Uint8Array, algorithm: Digest["algorithm"] = "sha256"): Digest {
  return { algorithm, hex: createHash(algorithm).update(bytes).digest("hex") };
}

/** Follows a range; each piece that is waited for arrives then. @returns the text, and the pieces waited for */
async function follow(content: Content, want: Digest, range = { offset: 0, length: content.bytes.length }) {
  const waited: number[] = [];
  const text = await followDigest(content.task, {
    want,
    range,
    signal: new AbortController().signal,
    pieceHeld: async (number) => {
      waited.push(number);
      await content.hold(number);
    },
  });
  return { text, waited };
}

for (const algorithm of ["md5", "sha1", "sha256", "sha512"] as const) {
  Deno.test(`a whole content has its ${algorithm}`, async () => {
    const content = await storedContent({ size: 100, held: [0, 1, 2, 3, 4, 5, 6] });
    const want = digestOf(content.bytes, algorithm);
    assertEquals(await follow(content, want), { text: `${algorithm}:${want.hex}`, waited: [] });
  });
}

Deno.test("any range over pieces of any length is digested, waiting for just the pieces it lacks", async () => {
  const cases = fc.record({
    size: fc.integer({ min: 1, max: 120 }),
    pieceLength: fc.constantFrom(1, 8, 64),
    start: fc.nat(120),
    length: fc.nat(120),
    heldMask: fc.nat(0xffff),
  });
  const property = fc.asyncProperty(cases, async ({ size, pieceLength, start, length, heldMask }) => {
    const layout = { contentLength: size, pieceLength };
    const held = allPieces(layout).filter((number) => (heldMask >> (number % 16)) & 1);
    const content = await storedContent({ size, pieceLength, held });
    const offset = Math.min(start, size);
    const range = { offset, length: Math.min(length, size - offset) };
    const end = range.offset + range.length;
    const { waited } = await follow(content, digestOf(content.bytes.slice(range.offset, end)), range);
    const touched = allPieces(layout).filter((number) =>
      range.length > 0 && number * pieceLength < end && (number + 1) * pieceLength > range.offset
    );
    assertEquals(waited, touched.filter((number) => !held.includes(number)));
  });
  await fc.assert(property, { numRuns: 200 });
});

Deno.test("an empty content has the digest of nothing", async () => {
  const content = await storedContent({ size: 0 });
  await follow(content, digestOf(new Uint8Array(0)));
});

Deno.test("one wrong byte anywhere is a mismatch that names both digests", async () => {
  for (const wrong of [0, 15, 16, 39]) {
    const content = await storedContent({ size: 40 });
    const want = digestOf(content.bytes);
    content.bytes[wrong]! ^= 1;
    const error = await assertRejects(() => follow(content, want), LacewingError) as LacewingError;
    assertEquals(error.code, "digest_mismatch");
    for (const { hex } of [want, digestOf(content.bytes)]) assert(error.message.includes(`sha256:${hex}`));
  }
});

Deno.test("what is outside of the range does not matter", async () => {
  const content = await storedContent({ size: 40, held: [0, 1, 2] });
  const want = digestOf(content.bytes.slice(5, 30));
  await content.task.write(new Uint8Array(5), 0);
  await content.task.write(new Uint8Array(10), 30);
  await follow(content, want, { offset: 5, length: 25 });
});

Deno.test("an aborted wait rejects with its reason", async () => {
  const content = await storedContent({ size: 40 });
  const controller = new AbortController();
  const reason = new DOMException("enough", "AbortError");
  const following = followDigest(content.task, {
    want: digestOf(content.bytes),
    range: { offset: 0, length: 40 },
    signal: controller.signal,
    pieceHeld: async (number) => {
      await content.hold(number);
      controller.abort(reason);
    },
  });
  assertEquals(await following.then(() => null, (error) => error), reason);
});

Deno.test("a file that is shorter than its content is an error of the file", async () => {
  const content = await storedContent({ size: 40, held: [0, 1, 2] });
  content.task.read = () => Promise.resolve(0);
  const error = await assertRejects(() => follow(content, digestOf(content.bytes)), LacewingError) as LacewingError;
  assertEquals(error.code, "file");
});
