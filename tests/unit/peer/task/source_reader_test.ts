import { assert, assertEquals, assertRejects } from "@std/assert";
import fc from "fast-check";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { RateLimiter } from "../../../../peer/core/rate_limit.ts";
import type { SourceBody } from "../../../../peer/source/source.ts";
import { readRun, type ReadRunOptions } from "../../../../peer/task/source_reader.ts";
import { FakeClock } from "../core/fake_clock.ts";
import { type Content, storedContent } from "./stored_content.ts";

/** A body that holds the content from `offset` on, in chunks of these lengths; every view is overwritten at the next read. */
function bodyOf(
  bytes: Uint8Array,
  { offset = 0, length = bytes.length - offset, chunks = [7], announced = length }: {
    offset?: number;
    length?: number;
    chunks?: readonly number[];
    announced?: number | null;
  } = {},
): SourceBody {
  const view = new Uint8Array(Math.max(...chunks));
  let at = offset;
  let count = 0;
  return {
    contentLength: bytes.length,
    ranges: true,
    version: {},
    offset,
    length: announced,
    read() {
      view.fill(0xee);
      const end = Math.min(at + chunks[count++ % chunks.length]!, offset + length, bytes.length);
      if (at >= end) return Promise.resolve(null);
      const chunk = view.subarray(0, end - at);
      chunk.set(bytes.subarray(at, end));
      at = end;
      return Promise.resolve(chunk);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Runs the reader. @returns how many pieces it says, and those it reported */
async function read({ task, meta }: Content, body: SourceBody, over: Partial<ReadRunOptions> & { first: number }) {
  const reported: [number, string][] = [];
  let received = 0;
  const count = await readRun(body, { store: task, meta }, {
    count: 1,
    limiters: [],
    signal: new AbortController().signal,
    isHeld: () => false,
    onPiece: (number, sha256) => reported.push([number, sha256]),
    onBytes: (length) => received += length,
    ...over,
  });
  return { count, reported, received };
}

async function onDisk({ task }: Content, offset: number, length: number): Promise<Uint8Array> {
  const buffer = new Uint8Array(length);
  await task.read(buffer, offset);
  return buffer;
}

Deno.test("whatever the chunks, every piece of a run is cut, digested and written where it belongs", async () => {
  const run = fc.record({
    size: fc.integer({ min: 1, max: 100 }),
    pieceLength: fc.constantFrom(1, 4, 16, 64),
    firstShare: fc.double({ min: 0, max: 0.999, noNaN: true }),
    count: fc.integer({ min: 1, max: 30 }),
    early: fc.integer({ min: 0, max: 40 }),
    chunks: fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 6 }),
  });
  const property = fc.asyncProperty(run, async ({ size, pieceLength, firstShare, count, early, chunks }) => {
    const content = await storedContent({ size, pieceLength });
    const pieces = Math.ceil(size / pieceLength);
    const first = Math.floor(firstShare * pieces);
    const wanted = Math.min(count, pieces - first);
    // A body may begin before the run (an origin that ignores ranges) and go on behind it.
    const body = bodyOf(content.bytes, { offset: Math.max(0, first * pieceLength - early), chunks });
    const { count: said, reported } = await read(content, body, { first, count: wanted });
    const numbers = Array.from({ length: wanted }, (_, index) => first + index);
    assertEquals(said, wanted);
    assertEquals(reported, numbers.map((number): [number, string] => [number, content.sha256(number)]));
    const offset = first * pieceLength;
    const end = Math.min(offset + wanted * pieceLength, size);
    assertEquals(await onDisk(content, offset, end - offset), content.bytes.slice(offset, end));
    assertEquals(await onDisk(content, 0, offset), new Uint8Array(offset), "nothing is written before the run");
    assertEquals(await onDisk(content, end, size - end), new Uint8Array(size - end), "and nothing behind it");
  });
  await fc.assert(property, { numRuns: 300 });
});

for (let cut = 0; cut <= 40; cut++) {
  Deno.test(`a body that ends at byte ${cut} of three pieces reports only the whole ones, and is an error`, async () => {
    const content = await storedContent({ size: 40 });
    const reported: number[] = [];
    const reading = read(content, bodyOf(content.bytes, { length: cut, announced: 40, chunks: [5] }), {
      first: 0,
      count: 3,
      onPiece: (number) => reported.push(number),
    });
    if (cut === 40) assertEquals((await reading).count, 3);
    else assertEquals((await assertRejects(() => reading, LacewingError) as LacewingError).code, "source_failed");
    assertEquals(reported, [0, 1, 2].filter((number) => Math.min(40, (number + 1) * 16) <= cut));
  });
}

Deno.test("a body that is announced to hold only part of the run ends it without an error", async () => {
  const content = await storedContent({ size: 64 });
  const { count, reported } = await read(content, bodyOf(content.bytes, { length: 40 }), { first: 0, count: 4 });
  assertEquals([count, reported.map(([number]) => number)], [2, [0, 1]]);
});

Deno.test("a body of unknown length that ends within a piece is an error", async () => {
  const content = await storedContent({ size: 64 });
  const body = bodyOf(content.bytes, { length: 40, announced: null });
  await assertRejects(() => read(content, body, { first: 0, count: 4 }), LacewingError, "ended at byte 40, want 48");
});

Deno.test("a body that begins after the run is refused before a byte is read", async () => {
  const content = await storedContent({ size: 64 });
  const body = bodyOf(content.bytes, { offset: 17 });
  body.read = () => Promise.reject(new Error("was read"));
  await assertRejects(() => read(content, body, { first: 1, count: 1 }), LacewingError, "begins after it, at byte 17");
});

Deno.test("a piece that is held is digested to compare, and not written", async () => {
  const content = await storedContent({ size: 48 });
  const { reported } = await read(content, bodyOf(content.bytes), {
    first: 0,
    count: 3,
    isHeld: (number) => number === 1,
  });
  assertEquals(reported.map(([, sha256]) => sha256), [0, 1, 2].map(content.sha256));
  assertEquals(await onDisk(content, 16, 16), new Uint8Array(16));
  assertEquals(await onDisk(content, 32, 16), content.piece(2));
});

Deno.test("a throw of onPiece ends the run at once", async () => {
  const content = await storedContent({ size: 64 });
  const seen: number[] = [];
  const refuse = (number: number) => {
    seen.push(number);
    if (number === 1) throw new LacewingError("content_changed", "another one");
  };
  const reading = read(content, bodyOf(content.bytes, { chunks: [64] }), { first: 0, count: 4, onPiece: refuse });
  await assertRejects(() => reading, LacewingError, "another one");
  assertEquals(seen, [0, 1]);
  assertEquals(await onDisk(content, 32, 32), new Uint8Array(32));
});

Deno.test("an aborted run rejects with the reason and writes no more", async () => {
  const content = await storedContent({ size: 64 });
  const controller = new AbortController();
  const reason = new DOMException("revoked", "AbortError");
  const reading = read(content, bodyOf(content.bytes, { chunks: [16] }), {
    first: 0,
    count: 4,
    signal: controller.signal,
    onPiece: () => controller.abort(reason),
  });
  const error = await reading.then(() => null, (thrown) => thrown);
  assertEquals(error, reason);
  assertEquals(await onDisk(content, 16, 48), new Uint8Array(48));
});

Deno.test("every byte received passes every limiter and is counted, also those outside the run", async () => {
  const content = await storedContent({ size: 64 });
  const clock = new FakeClock();
  const taken = [0, 0];
  const limiters = taken.map((_, index) => {
    const limiter = new RateLimiter(clock, 0);
    limiter.take = (bytes) => {
      taken[index]! += bytes;
      return undefined;
    };
    return limiter;
  });
  const { received } = await read(content, bodyOf(content.bytes), { first: 2, count: 1, limiters });
  assert(received >= 48 && received < 48 + 7, `${received}`);
  assertEquals(taken, [received, received]);
});
