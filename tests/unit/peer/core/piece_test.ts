import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import {
  PIECE_COUNT_MAX,
  PIECE_LENGTH_MAX,
  PIECE_LENGTH_MIN,
  pieceCount,
  pieceLengthFor,
  pieceRange,
  piecesOf,
} from "../../../../peer/core/piece.ts";

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

const LENGTHS: [number, number][] = [
  [0, 256 * KiB],
  [1, 256 * KiB],
  [64 * MiB, 256 * KiB],
  [256 * MiB, 256 * KiB],
  [256 * MiB + 1, 512 * KiB],
  [1 * GiB, 1 * MiB],
  [1 * GiB + 1, 2 * MiB],
  [16 * GiB, 16 * MiB],
  [16 * GiB + 1, 16 * MiB],
  [1024 * GiB, 16 * MiB],
];
for (const [contentLength, pieceLength] of LENGTHS) {
  Deno.test(`pieceLengthFor() cuts ${contentLength} bytes into pieces of ${pieceLength}`, () => {
    assertEquals(pieceLengthFor(contentLength), pieceLength);
  });
}

Deno.test("pieceLengthFor() gives a power of two in its bounds and at most 1,024 pieces below 16 GiB", () => {
  fc.assert(fc.property(fc.nat({ max: 2 ** 43 }), (contentLength) => {
    const pieceLength = pieceLengthFor(contentLength);
    assert(Number.isInteger(Math.log2(pieceLength)));
    assert(pieceLength >= PIECE_LENGTH_MIN && pieceLength <= PIECE_LENGTH_MAX);
    if (contentLength <= 16 * GiB) assert(pieceCount({ contentLength, pieceLength }) <= 1024);
    if (pieceLength > PIECE_LENGTH_MIN) assert(contentLength > pieceLength / 2 * 1024);
  }));
});

Deno.test("a content of 6 TiB still has no more than the most pieces", () => {
  const contentLength = 6 * 1024 * GiB;
  assertEquals(pieceCount({ contentLength, pieceLength: pieceLengthFor(contentLength) }), PIECE_COUNT_MAX);
});

const COUNTS: [number, number][] = [[0, 0], [1, 1], [3, 1], [4, 1], [5, 2], [8, 2], [9, 3]];
for (const [contentLength, count] of COUNTS) {
  Deno.test(`pieceCount() of ${contentLength} bytes in pieces of 4 is ${count}`, () => {
    assertEquals(pieceCount({ contentLength, pieceLength: 4 }), count);
  });
}

const LAYOUT = { contentLength: 10, pieceLength: 4 };

const RANGES: [number, number, number][] = [[0, 0, 4], [1, 4, 4], [2, 8, 2]];
for (const [number, offset, length] of RANGES) {
  Deno.test(`pieceRange() of piece ${number} is ${length} bytes from ${offset}`, () => {
    assertEquals(pieceRange(number, LAYOUT), { offset, length });
  });
}

Deno.test("pieceRange() gives a whole last piece when the content ends with it", () => {
  assertEquals(pieceRange(1, { contentLength: 8, pieceLength: 4 }), { offset: 4, length: 4 });
});

for (const number of [-1, 3, 1.5, NaN, Infinity, 2 ** 53]) {
  Deno.test(`pieceRange() throws on piece number ${number}`, () => {
    assertThrows(() => pieceRange(number, LAYOUT), RangeError);
  });
}

Deno.test("pieceRange() throws on any piece of an empty content", () => {
  assertThrows(() => pieceRange(0, { contentLength: 0, pieceLength: 4 }), RangeError);
});

const CUTS: [number, number, number, number][] = [
  // offset, length, first, count
  [0, 10, 0, 3],
  [0, 1, 0, 1],
  [0, 4, 0, 1],
  [0, 5, 0, 2],
  [3, 1, 0, 1],
  [3, 2, 0, 2],
  [4, 4, 1, 1],
  [9, 1, 2, 1],
  [5, 0, 0, 0],
  [10, 0, 0, 0],
];
for (const [offset, length, first, count] of CUTS) {
  Deno.test(`piecesOf() finds ${count} pieces from ${first} for ${length} bytes from ${offset}`, () => {
    assertEquals(piecesOf({ offset, length }, LAYOUT), { first, count });
  });
}

for (const [offset, length] of [[-1, 2], [0, 11], [10, 1], [11, 0], [0, -1], [0.5, 1], [0, 1.5], [NaN, 1], [0, NaN]]) {
  Deno.test(`piecesOf() throws on ${length} bytes from ${offset} of 10`, () => {
    assertThrows(() => piecesOf({ offset: offset!, length: length! }, LAYOUT), RangeError);
  });
}

const layouts = fc.record({ contentLength: fc.nat({ max: 3000 }), pieceLength: fc.constantFrom(1, 2, 4, 64, 256) });

Deno.test("the pieces of any content cover it exactly, in order, without gap or overlap", () => {
  fc.assert(fc.property(layouts, (layout) => {
    let end = 0;
    const count = pieceCount(layout);
    for (let number = 0; number < count; number++) {
      const { offset, length } = pieceRange(number, layout);
      assertEquals(offset, end);
      assert(length >= 1 && (length === layout.pieceLength || number === count - 1));
      end += length;
    }
    assertEquals(end, layout.contentLength);
    assertThrows(() => pieceRange(count, layout), RangeError);
  }));
});

Deno.test("piecesOf() finds the pieces that touch a range and no other", () => {
  const cases = layouts.chain((layout) =>
    fc.tuple(fc.constant(layout), fc.nat({ max: layout.contentLength }), fc.nat({ max: layout.contentLength }))
  );
  fc.assert(fc.property(cases, ([layout, one, other]) => {
    const [offset, end] = [Math.min(one, other), Math.max(one, other)];
    const { first, count } = piecesOf({ offset, length: end - offset }, layout);
    for (let number = 0; number < pieceCount(layout); number++) {
      const piece = pieceRange(number, layout);
      const touches = piece.offset < end && piece.offset + piece.length > offset && end > offset;
      assertEquals(number >= first && number < first + count, touches);
    }
  }));
});
