/** Holds `@std/yaml`, or what stands in for it, to the behaviour that the configuration relies on. */
import { parse, stringify } from "@std/yaml";
import { assertEquals, assertMatch, assertThrows } from "@std/assert";

const VALUES: Array<[string, string, unknown]> = [
  ["an empty document as null", "", null],
  ["comments alone as null", "# nothing\n", null],
  ["false as false", "false", false],
  ["mappings and lists", "a:\n  - 1\n  - b: x\n", { a: [1, { b: "x" }] }],
  ["flow style", "{a: [1, 2.5], b: ~}", { a: [1, 2.5], b: null }],
  ["quoted scalars as text", "a: '1'\nb: \"true\"\n", { a: "1", b: "true" }],
  ["yes and no as text", "a: yes\nb: no\n", { a: "yes", b: "no" }],
  ["sizes and durations as text", "a: 50GiB\nb: 6h\nc: 1.5s\n", { a: "50GiB", b: "6h", c: "1.5s" }],
  ["block text", "a: |\n  x\n  y\n", { a: "x\ny\n" }],
  ["anchors and merges", "x: &x {a: 1}\ny: {<<: *x, b: 2}\n", { x: { a: 1 }, y: { a: 1, b: 2 } }],
  ["keys that are urls", '"http://h:1/p": 1\n', { "http://h:1/p": 1 }],
];
for (const [claim, text, value] of VALUES) {
  Deno.test(`yaml parse() reads ${claim}`, () => assertEquals(parse(text), value));
}

const BAD: Array<[string, string, RegExp]> = [
  ["a duplicate key", "a: 1\nb: 2\na: 3\n", /line 3/],
  ["a list that is not closed", "a: 1\nb: [1, 2\nc: 3\n", /line \d/],
  ["a tag that is not known", "a: !shell ls\n", /tag/],
  ["an alias of nothing", "a: *b\n", /alias/],
  ["two documents", "--- 1\n--- 2\n", /document/],
];
for (const [claim, text, wanted] of BAD) {
  Deno.test(`yaml parse() refuses ${claim}`, () => {
    assertMatch(assertThrows(() => parse(text), SyntaxError).message, wanted);
  });
}

Deno.test("yaml stringify() is read back as the same value", () => {
  const value = {
    a: [1, { b: "x" }],
    yes: "yes",
    n: "12",
    e: "",
    z: null,
    m: "x\ny\n",
    u: "http://h/p?a=b#c",
    t: true,
  };
  assertEquals(parse(stringify(value)), value);
});

Deno.test("yaml stringify() writes block style with a final line end", () => {
  assertEquals(stringify({ a: [1, 2], b: { c: "x" } }), "a:\n  - 1\n  - 2\nb:\n  c: x\n");
});

Deno.test("yaml stringify() throws on undefined unless it is skipped", () => {
  assertThrows(() => stringify({ a: undefined }), TypeError);
  assertEquals(stringify({ a: undefined, b: 1 }, { skipInvalid: true }), "b: 1\n");
});
