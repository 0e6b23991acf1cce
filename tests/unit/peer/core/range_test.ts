import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { formatRange, parseRange, type RangeSpec, resolveRange } from "../../../../peer/core/range.ts";

const GOOD: [string, RangeSpec][] = [
  ["0-9", { kind: "closed", first: 0, last: 9 }],
  ["0-0", { kind: "closed", first: 0, last: 0 }],
  ["150-", { kind: "open", first: 150 }],
  ["0-", { kind: "open", first: 0 }],
  ["-50", { kind: "suffix", length: 50 }],
  ["-0", { kind: "suffix", length: 0 }],
  ["007-010", { kind: "closed", first: 7, last: 10 }],
  ["999999999999999-", { kind: "open", first: 999_999_999_999_999 }],
];
for (const [text, spec] of GOOD) {
  Deno.test(`parseRange() reads ${text}`, () => assertEquals(parseRange(text), spec));
}

const BAD = [
  "",
  "-",
  "5",
  "9-0",
  "1-2,4-5",
  "1-2-3",
  "a-b",
  "-1-5",
  "--5",
  " 1-2",
  "1-2\n",
  "1 - 2",
  "0x1-2",
  "1.5-2",
  "+1-2",
  "bytes=0-9",
  "1e3-",
  "9999999999999999-",
  "٠-٩",
];
for (const text of BAD) {
  Deno.test(`parseRange() refuses ${JSON.stringify(text)} as usage`, () => {
    const error = assertThrows(() => parseRange(text), LacewingError, JSON.stringify(text));
    assertEquals(error.code, "usage");
  });
}

const RESOLVED: [string, number, number, number][] = [
  // text, content, offset, length
  ["0-9", 100, 0, 10],
  ["0-9", 10, 0, 10],
  ["0-9", 4, 0, 4],
  ["9-9", 10, 9, 1],
  ["5-100", 10, 5, 5],
  ["0-", 10, 0, 10],
  ["9-", 10, 9, 1],
  ["-3", 10, 7, 3],
  ["-10", 10, 0, 10],
  ["-50", 10, 0, 10],
  ["0-0", 1, 0, 1],
];
for (const [text, contentLength, offset, length] of RESOLVED) {
  Deno.test(`resolveRange() of ${text} in ${contentLength} B is ${length} B from ${offset}`, () => {
    assertEquals(resolveRange(parseRange(text), contentLength), { offset, length });
  });
}

const UNSATISFIABLE: [string, number][] = [
  ["10-19", 10],
  ["10-", 10],
  ["100-", 10],
  ["-0", 10],
  ["0-0", 0],
  ["0-", 0],
  ["-5", 0],
];
for (const [text, contentLength] of UNSATISFIABLE) {
  Deno.test(`resolveRange() of ${text} in ${contentLength} B is not satisfiable`, () => {
    const error = assertThrows(() => resolveRange(parseRange(text), contentLength), LacewingError, text);
    assertEquals(error.code, "range_not_satisfiable");
  });
}

const number = fc.nat({ max: 2000 });
const specs: fc.Arbitrary<RangeSpec> = fc.oneof(
  fc.record({ kind: fc.constant("open" as const), first: number }),
  fc.record({ kind: fc.constant("suffix" as const), length: number }),
  fc.tuple(number, number).map(([first, more]) => ({ kind: "closed" as const, first, last: first + more })),
);

Deno.test("parseRange() reads back what formatRange() writes", () => {
  fc.assert(fc.property(specs, (spec) => assertEquals(parseRange(formatRange(spec)), spec)));
});

Deno.test("resolveRange() selects exactly the bytes that exist and are asked for, or refuses", () => {
  fc.assert(fc.property(specs, fc.nat({ max: 2000 }), (spec, contentLength) => {
    const wanted = Array.from({ length: contentLength }, (_, at) => at).filter((at) => {
      if (spec.kind === "suffix") return at >= contentLength - spec.length;
      return at >= spec.first && (spec.kind === "open" || at <= spec.last);
    });
    try {
      const { offset, length } = resolveRange(spec, contentLength);
      assertEquals([offset, length], [wanted[0], wanted.length]);
    } catch (error) {
      assert(error instanceof LacewingError, String(error));
      assertEquals(wanted.length, 0);
    }
  }));
});
