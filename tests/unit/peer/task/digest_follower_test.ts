import { assert, assertEquals, assertRejects } from "@std/assert";
import fc from "fast-check";
import { createHash } from "node:crypto";
import type { Digest } from "../../../../peer/core/digest.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { type ArrivalListener, followDigest } from "../../../../peer/task/digest_follower.ts";
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
    onArrival: () => () => {},
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
    onArrival: () => () => {},
  });
  assertEquals(await following.then(() => null, (error) => error), reason);
});

Deno.test("a file that is shorter than its content is an error of the file", async () => {
  const content = await storedContent({ size: 40, held: [0, 1, 2] });
  content.task.read = () => Promise.resolve(0);
  const error = await assertRejects(() => follow(content, digestOf(content.bytes)), LacewingError) as LacewingError;
  assertEquals(error.code, "file");
});

/** A check of a whole content that comes from the origin, and how much of it was read from the store. */
async function arriving({ size, pieceLength = 16 }: { size: number; pieceLength?: number }) {
  const content = await storedContent({ size, pieceLength });
  const read = content.task.read.bind(content.task);
  let readLength = 0;
  content.task.read = async (buffer, offset) => {
    const length = await read(buffer, offset);
    readLength += length;
    return length;
  };
  const listeners = new Set<ArrivalListener>();
  const waiters = new Map<number, () => void>();
  const following = followDigest(content.task, {
    want: digestOf(content.bytes),
    range: { offset: 0, length: size },
    signal: new AbortController().signal,
    pieceHeld: (number) => new Promise((resolve) => waiters.set(number, resolve)),
    onArrival: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });
  /** Part of a piece; `bytes` may be others than the content has. */
  const write = async (number: number, from: number, to: number, bytes = content.piece(number).subarray(from, to)) => {
    await content.task.write(bytes, number * pieceLength + from);
    for (const listener of listeners) listener.written(bytes, number * pieceLength + from);
  };
  const hold = async (number: number, { isFromPeer = false } = {}) => {
    content.task.commit(number, content.sha256(number));
    if (!isFromPeer) { for (const listener of listeners) listener.held(number); }
    waiters.get(number)?.();
    await new Promise((resolve) => setTimeout(resolve, 0));
  };
  return { ...content, following, listeners, write, hold, readLength: () => readLength };
}

Deno.test("what the origin sends in order is not read again", async () => {
  const made = await arriving({ size: 40 });
  for (const number of allPieces(made.layout)) {
    await made.write(number, 0, 5);
    await made.write(number, 5, 16);
    await made.hold(number);
  }
  await made.following;
  assertEquals([made.readLength(), made.listeners.size], [0, 0]);
});

Deno.test("a piece that breaks off and comes again counts once, as it is held", async () => {
  const made = await arriving({ size: 40 });
  await made.write(0, 0, 9, new Uint8Array(9));
  await made.write(0, 0, 16);
  await made.hold(0);
  await made.write(1, 0, 7, new Uint8Array(7));
  await made.write(1, 0, 16);
  await made.hold(1, { isFromPeer: true });
  await made.write(2, 0, 8);
  await made.hold(2);
  await made.following;
  assertEquals(made.readLength(), 16);
});

Deno.test("a piece that passed and was refused does not count when the next one is held", async () => {
  const made = await arriving({ size: 48 });
  await made.write(0, 0, 16, new Uint8Array(16));
  await made.write(1, 0, 16);
  await made.hold(1);
  await made.write(0, 0, 16);
  await made.hold(0, { isFromPeer: true });
  await made.write(2, 0, 16);
  await made.hold(2, { isFromPeer: true });
  await made.following;
  assertEquals(made.readLength(), 48);
});

Deno.test("a piece that passes while it is read from the store counts once", async () => {
  const made = await arriving({ size: 32 });
  const read = made.task.read;
  made.task.read = async (buffer, offset) => {
    made.task.read = read;
    for (const number of [0, 1]) {
      await made.write(number, 0, 16);
      await made.hold(number);
    }
    return await read(buffer, offset);
  };
  await made.hold(0, { isFromPeer: true });
  await made.following;
});

Deno.test("pieces that come in any order and from anywhere have the content's digest", async () => {
  const step = fc.record({
    shuffle: fc.infiniteStream(fc.nat()),
    size: fc.integer({ min: 1, max: 120 }),
    pieceLength: fc.constantFrom(1, 8, 64),
    cuts: fc.infiniteStream(fc.nat(64)),
    peers: fc.infiniteStream(fc.boolean()),
  });
  const property = fc.asyncProperty(step, async ({ shuffle, size, pieceLength, cuts, peers }) => {
    const made = await arriving({ size, pieceLength });
    const left = allPieces(made.layout);
    while (left.length > 0) {
      const [number = 0] = left.splice(shuffle.next().value! % Math.min(left.length, 3), 1);
      const { length } = made.piece(number);
      const cut = cuts.next().value! % (length + 1);
      const isFromPeer = peers.next().value!;
      if (cut > 0) await made.write(number, 0, cut);
      // Another read's piece ends in between.
      const [other] = peers.next().value! ? left.splice(0, 1) : [];
      if (other !== undefined) {
        await made.write(other, 0, made.piece(other).length);
        await made.hold(other);
      }
      if (cut < length) await made.write(number, cut, length);
      await made.hold(number, { isFromPeer });
    }
    assertEquals(await made.following, `sha256:${digestOf(made.bytes).hex}`);
  });
  await fc.assert(property, { numRuns: 50 });
});
