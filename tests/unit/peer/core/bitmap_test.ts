import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { Bitmap } from "../../../../peer/core/bitmap.ts";

/** A set drawn as text: `1101` holds the pieces 0, 1 and 3. */
function drawn(text: string): Bitmap {
  const bitmap = new Bitmap(text.length);
  [...text].forEach((bit, number) => bit === "1" && bitmap.add(number));
  return bitmap;
}

Deno.test("a new Bitmap holds nothing", () => {
  const bitmap = new Bitmap(10);
  assertEquals([bitmap.size, bitmap.count, bitmap.isFull, [...bitmap]], [10, 0, false, []]);
});

Deno.test("a Bitmap of an empty content is full with nothing in it", () => {
  const bitmap = new Bitmap(0);
  assertEquals([bitmap.isFull, bitmap.firstMissing(), bitmap.toBase64()], [true, 0, ""]);
  assert(!bitmap.add(0) && !bitmap.has(0));
});

Deno.test("add() and delete() tell whether they changed anything", () => {
  const bitmap = new Bitmap(9);
  assertEquals([bitmap.add(8), bitmap.add(8), bitmap.has(8), bitmap.count], [true, false, true, 1]);
  assertEquals([bitmap.delete(8), bitmap.delete(8), bitmap.has(8), bitmap.count], [true, false, false, 0]);
});

for (const number of [-1, 9, 10, 15, 16, 0.5, 1.5, NaN, Infinity, -Infinity, 2 ** 32, 2 ** 35, 2 ** 53, -(2 ** 32)]) {
  Deno.test(`a number outside the set is ignored: ${number}`, () => {
    const bitmap = new Bitmap(9);
    assertEquals([bitmap.add(number), bitmap.has(number), bitmap.count], [false, false, 0]);
    bitmap.fill();
    assertEquals([bitmap.has(number), bitmap.delete(number), bitmap.count], [false, false, 9]);
  });
}

Deno.test("fill() adds every piece once", () => {
  const bitmap = drawn("0100100010");
  bitmap.fill();
  assertEquals([bitmap.count, bitmap.isFull, [...bitmap]], [10, true, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]);
});

const MISSING: [string, number, number][] = [
  ["0", 0, 0],
  ["1", 0, 1],
  ["1101", 0, 2],
  ["1101", 3, 4],
  ["1101", 2, 2],
  ["11111111110", 0, 10],
  ["1111", 4, 4],
];
for (const [text, from, number] of MISSING) {
  Deno.test(`firstMissing(${from}) of ${text} is ${number}`, () =>
    assertEquals(drawn(text).firstMissing(from), number));
}

const TEXTS: [string, string][] = [
  ["", ""],
  ["0", "AA=="],
  ["1", "AQ=="],
  ["01", "Ag=="],
  ["00000001", "gA=="],
  ["11111111", "/w=="],
  ["000000001", "AAE="],
  ["101010101010101010101010", "VVVV"],
];
for (const [text, base64] of TEXTS) {
  Deno.test(`${text || "(empty)"} is ${JSON.stringify(base64)} on the wire: lowest piece in the lowest bit`, () => {
    assertEquals(drawn(text).toBase64(), base64);
    assertEquals([...Bitmap.fromBase64(base64, text.length)], [...drawn(text)]);
  });
}

const ODD: [string, string, number, number[]][] = [
  ["bits beyond the size are ignored", "/w==", 3, [0, 1, 2]],
  ["bytes beyond the size are ignored", "/////w==", 9, [0, 1, 2, 3, 4, 5, 6, 7, 8]],
  ["too short a text leaves the rest missing", "AQ==", 100, [0]],
  ["an empty text is an empty set", "", 100, []],
  ["no base64 is an empty set", "!!!***", 100, []],
];
for (const [name, base64, size, numbers] of ODD) {
  Deno.test(`fromBase64(): ${name}`, () => {
    const bitmap = Bitmap.fromBase64(base64, size);
    assertEquals([[...bitmap], bitmap.count, bitmap.size], [numbers, numbers.length, size]);
  });
}

const sets = fc.nat({ max: 300 }).chain((size) =>
  fc.tuple(fc.constant(size), fc.uniqueArray(fc.nat({ max: Math.max(0, size - 1) }), { maxLength: size }))
);

Deno.test("fromBase64() reads back what toBase64() writes", () => {
  fc.assert(fc.property(sets, ([size, numbers]) => {
    const bitmap = new Bitmap(size);
    for (const number of numbers) bitmap.add(number);
    const back = Bitmap.fromBase64(bitmap.toBase64(), size);
    assertEquals([[...back], back.count], [[...bitmap], bitmap.count]);
  }));
});

Deno.test("fromBase64() of any text stays within its size and counts right", () => {
  fc.assert(fc.property(fc.string(), fc.nat({ max: 100 }), (text, size) => {
    const bitmap = Bitmap.fromBase64(text, size);
    assertEquals([...bitmap].length, bitmap.count);
    assert([...bitmap].every((number) => number < size));
  }));
});

Deno.test("a Bitmap agrees with a Set through any sequence of calls", () => {
  const calls = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: -2, max: 42 })), { maxLength: 200 });
  fc.assert(fc.property(calls, (list) => {
    const [bitmap, model] = [new Bitmap(40), new Set<number>()];
    for (const [adds, number] of list) {
      const inside = number >= 0 && number < 40;
      const changes = inside && adds !== model.has(number);
      if (adds && inside) model.add(number);
      if (!adds) model.delete(number);
      assertEquals(adds ? bitmap.add(number) : bitmap.delete(number), changes);
    }
    assertEquals([...bitmap], [...model].sort((a, b) => a - b));
    assertEquals([bitmap.count, bitmap.isFull], [model.size, model.size === 40]);
    const missing = Array.from({ length: 41 }, (_, number) => number).find((number) => !model.has(number));
    assertEquals(bitmap.firstMissing(), missing);
  }));
});

Deno.test("next() and nextShared() find what a look at each piece finds", () => {
  const bits = fc.array(fc.boolean(), { maxLength: 130 });
  fc.assert(fc.property(bits, bits, fc.nat(140), (one, other, from) => {
    const size = Math.max(one.length, other.length);
    const [a, b] = [one, other].map((drawing) => {
      const bitmap = new Bitmap(size);
      drawing.forEach((bit, number) => bit && bitmap.add(number));
      return bitmap;
    }) as [Bitmap, Bitmap];
    const first = (isIn: (number: number) => boolean) => {
      for (let number = from; number < size; number++) if (isIn(number)) return number;
      return size;
    };
    assertEquals(a.next(from), first((number) => a.has(number)));
    assertEquals(a.nextShared(b, from), first((number) => a.has(number) && b.has(number)));
  }));
});
