/** Holds `@std/assert`, or what stands in for it, to: what passes, what fails, and that failures are `AssertionError`s. */
import {
  assert,
  assertAlmostEquals,
  assertArrayIncludes,
  assertEquals,
  assertExists,
  assertGreater,
  assertGreaterOrEqual,
  assertInstanceOf,
  AssertionError,
  assertLess,
  assertLessOrEqual,
  assertMatch,
  assertNotEquals,
  assertObjectMatch,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
  fail,
} from "@std/assert";

class Point {
  constructor(readonly x: number) {}
}
const loop: Record<string, unknown> = {};
loop.self = loop;
const sameLoop: Record<string, unknown> = {};
sameLoop.self = sameLoop;

type Check = [claim: string, check: () => void];

const PASSING: Check[] = [
  ["assert(1)", () => assert(1)],
  ["equal records", () => assertEquals({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] })],
  ["NaN", () => assertEquals(NaN, NaN)],
  ["0 and -0, also inside", () => assertEquals<unknown>([0, { a: -0 }], [-0, { a: 0 }])],
  ["a null prototype", () => assertEquals<unknown>(Object.assign(Object.create(null), { a: 1 }), { a: 1 })],
  ["bytes", () => assertEquals(new Uint8Array([1, 2]), new Uint8Array([1, 2]))],
  ["maps and sets", () => assertEquals(new Map([["a", new Set([1])]]), new Map([["a", new Set([1])]]))],
  ["dates and urls", () => assertEquals([new Date(1), new URL("http://h/")], [new Date(1), new URL("http://h/")])],
  ["loops", () => assertEquals(loop, sameLoop)],
  ["other values", () => assertNotEquals({ a: 1 }, { a: 2 })],
  ["one object", () => assertStrictEquals(loop, loop)],
  ["zero exists", () => assertExists(0)],
  ["an instance", () => assertInstanceOf(new TypeError(), Error)],
  ["a match", () => assertMatch("abc", /b/)],
  ["a part", () => assertStringIncludes("abc", "bc")],
  ["items in any order, deeply", () => assertArrayIncludes<unknown>([{ a: 1 }, 2], [2, { a: 1 }])],
  ["a part of a record, deeply", () => assertObjectMatch({ a: { b: 1, c: 2 }, d: [1] }, { a: { b: 1 }, d: [1] })],
  ["an instance as a record", () => assertObjectMatch({ p: new Point(1) }, { p: { x: 1 } })],
  ["greater", () => assertGreater(2, 1)],
  ["greater or equal", () => assertGreaterOrEqual(2, 2)],
  ["less", () => assertLess(1n, 2n)],
  ["less or equal", () => assertLessOrEqual("a", "a")],
  ["close by the default tolerance", () => assertAlmostEquals(0.1 + 0.2, 0.3)],
  ["close by a given tolerance", () => assertAlmostEquals(10, 12, 2)],
];
for (const [claim, check] of PASSING) Deno.test(`assertions pass on ${claim}`, check);

const FAILING: Check[] = [
  ["assert(0)", () => assert(0, "why")],
  ["fail()", () => fail("why")],
  ["different values", () => assertEquals({ a: 1, b: 2 }, { a: 1, b: 3 }, "why")],
  ["text for a number", () => assertEquals<unknown>("1", 1, "why")],
  ["a key that is undefined", () => assertEquals<unknown>({ a: undefined }, {}, "why")],
  ["another class", () => assertEquals<unknown>(new Point(1), { x: 1 }, "why")],
  ["a shorter list", () => assertEquals([1], [1, 2], "why")],
  ["other bytes", () => assertEquals(new Uint8Array([1]), new Uint8Array([2]), "why")],
  ["another item of a set", () => assertEquals(new Set([1]), new Set([2]), "why")],
  ["equal values where others are wanted", () => assertNotEquals([1], [1], "why")],
  ["two objects that are only equal", () => assertStrictEquals({}, {}, "why")],
  ["undefined", () => assertExists(undefined, "why")],
  ["not an instance", () => assertInstanceOf({}, Map, "why")],
  ["no match", () => assertMatch("abc", /x/, "why")],
  ["not a part", () => assertStringIncludes("abc", "x", "why")],
  ["a missing item", () => assertArrayIncludes([1, 2], [3], "why")],
  ["a missing key", () => assertObjectMatch({ a: 1 }, { a: 1, b: 2 }, "why")],
  ["another value inside", () => assertObjectMatch({ a: { b: 1 } }, { a: { b: 2 } }, "why")],
  ["another date inside", () => assertObjectMatch({ a: new Date(1) }, { a: new Date(2) }, "why")],
  ["equal where greater is wanted", () => assertGreater(1, 1, "why")],
  ["less where at least is wanted", () => assertGreaterOrEqual(1, 2, "why")],
  ["NaN where less is wanted", () => assertLess(NaN, 1, "why")],
  ["greater where at most is wanted", () => assertLessOrEqual(3, 2, "why")],
  ["too far away", () => assertAlmostEquals(1, 1.1, 0.01, "why")],
  ["no throw", () => assertThrows(() => 1, "why")],
  ["another error class", () => assertThrows(() => fail(), RangeError, undefined, "why")],
  ["another error message", () => assertThrows(() => fail("x"), AssertionError, "other", "why")],
];
for (const [claim, check] of FAILING) {
  Deno.test(`assertions fail with AssertionError and the message on ${claim}`, () => {
    let caught: unknown;
    try {
      check();
    } catch (error) {
      caught = error;
    }
    if (!(caught instanceof AssertionError)) throw new Error(`Not an AssertionError: ${caught}`);
    if (caught.name !== "AssertionError" || !caught.message.includes("why")) throw caught;
  });
}

Deno.test("assertEquals() shows both values", () => {
  const { message } = assertThrows(() => assertEquals({ port: 65001 }, { port: 65002 }), AssertionError);
  assertStringIncludes(message, "65001");
  assertStringIncludes(message, "65002");
});

Deno.test("assertThrows() gives back what was thrown, error or not", () => {
  const error = new RangeError("out of range");
  assertStrictEquals(
    assertThrows(
      () =>
        ((e) => {
          throw e;
        })(error),
      RangeError,
      "range",
    ),
    error,
  );
  assertEquals(
    assertThrows(() => {
      // deno-lint-ignore no-throw-literal
      throw 7;
    }),
    7,
  );
});

Deno.test("assertRejects() gives back the reason", async () => {
  const error = new RangeError("out of range");
  assertStrictEquals(await assertRejects(() => Promise.reject(error), RangeError, "range"), error);
});

Deno.test("assertRejects() fails on a promise that is kept, on another class and on a throw at once", async () => {
  await assertRejects(() => assertRejects(() => Promise.resolve(1)), AssertionError);
  await assertRejects(() => assertRejects(() => Promise.reject(new Error()), RangeError), AssertionError);
  await assertRejects(() =>
    assertRejects(() => {
      throw new Error();
    }), AssertionError);
});
