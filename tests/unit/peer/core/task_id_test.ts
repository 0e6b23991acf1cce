/**
 * The published vectors of the task id, and what must hold for every URL. One
 * vector by hand, from its canonical URL and tag (no newline at the end):
 *
 *   printf 'lacewing/1\nhttps://example.com/models/a.bin\nv1' | sha256sum
 */
import { assert, assertEquals, assertNotEquals, assertStringIncludes, assertThrows } from "@std/assert";
import fc from "fast-check";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { canonicalUrl, parseFilter, taskId } from "../../../../peer/core/task_id.ts";
import vectors from "./task_id_vectors.json" with { type: "json" };

for (const { name, url, tag, filter, canonical_url, task_id } of vectors) {
  Deno.test(`taskId() vector: ${name}`, () => {
    assertEquals(canonicalUrl(url, filter), canonical_url);
    assertEquals(taskId(url, { tag, filter }), task_id);
  });
}

Deno.test("taskId() without options is that of no tag and no filter", () => {
  const url = "https://example.com/a?ns=x";
  assertEquals(taskId(url), taskId(url, { tag: "", filter: "" }));
});

Deno.test("taskId() of a canonical URL is that of the URL", () => {
  for (const { canonical_url, tag, task_id } of vectors) assertEquals(taskId(canonical_url, { tag }), task_id);
});

Deno.test("taskId() is one for a URL with and without user info", () => {
  const plain = taskId("http://host/x");
  assertEquals(taskId("http://user:pass@host/x"), plain);
  assertEquals(taskId("http://user@host/x"), plain);
  assertEquals(taskId("http://:pass@host/x"), plain);
  assertEquals(taskId("http://@host/x"), plain);
});

/** Pairs that name different contents. */
const DIFFERENT: [string, string][] = [
  ["http://h/a", "https://h/a"],
  ["http://h/a", "http://h:8080/a"],
  ["http://h/a", "http://h/A"],
  ["http://h/a", "http://h/a/"],
  ["http://h/a?x", "http://h/a?x="],
  ["http://h/a?x=1", "http://h/a?x=2"],
  ["http://h/a?x=1&x=2", "http://h/a?x=2&x=1"],
  ["http://h/a?x=", "http://h/a?x=?"],
  ["http://h/a?x", "http://h/a??x"],
  ["http://h/a%3F", "http://h/a?"],
  ["http://h/a%2Fb", "http://h/a/b"],
];
for (const [one, other] of DIFFERENT) {
  Deno.test(`taskId() tells ${one} from ${other}`, () => assertNotEquals(taskId(one), taskId(other)));
}

Deno.test("taskId() tells a tag from the end of a URL", () => {
  assertNotEquals(taskId("http://h/a", { tag: "b" }), taskId("http://h/ab"));
  assertNotEquals(taskId("http://h/a", { tag: "x\ny" }), taskId("http://h/a", { tag: "x y" }));
});

for (const url of ["", "nope", "/path/only", "//host/x", "http://", "http://h:99999/", "http://[::1/", "http://a b/"]) {
  Deno.test(`taskId() refuses ${JSON.stringify(url)} as usage, saying what is wanted`, () => {
    const error = assertThrows(() => taskId(url), LacewingError);
    assertEquals(error.code, "usage");
    assertStringIncludes(error.message, "want an absolute one such as https://host/path");
  });
}

const SECRET_URLS = [
  "http://user:s3cret@h:bad/x",
  "http://user:s3/cret@h/x",
  "http://user:s3@cret@h:bad/x",
  "http://h:bad/x?Signature=s3cret",
];
for (const url of SECRET_URLS) {
  Deno.test(`taskId() keeps the secret of ${url} out of its message`, () => {
    const { message } = assertThrows(() => taskId(url), LacewingError);
    assert(!message.includes("s3") && !message.includes("cret"), message);
  });
}

Deno.test("taskId() repeats only the beginning of a long wrong URL", () => {
  const { message } = assertThrows(() => taskId("x".repeat(100_000)), LacewingError);
  assert(message.length < 1000);
});

const FILTERS: [string, string[]][] = [
  ["", []],
  ["&", []],
  ["a", ["a"]],
  ["Expires&Signature&ns", ["Expires", "Signature", "ns"]],
  ["&a&&b&", ["a", "b"]],
  ["a=b&c%20d", ["a=b", "c%20d"]],
];
for (const [filter, names] of FILTERS) {
  Deno.test(`parseFilter() reads ${JSON.stringify(filter)}`, () => assertEquals(parseFilter(filter), names));
}

const parameter = fc.tuple(fc.constantFrom("a", "b", "c", "Key", "x-y"), fc.webQueryParameters());
const query = fc.array(parameter.map(([name, value]) => [name, encodeURIComponent(value)] as const), { maxLength: 8 });
const text = (parameters: readonly (readonly [string, string])[]) => parameters.map((pair) => pair.join("=")).join("&");

Deno.test("taskId() ignores filtered parameters wherever they stand", () => {
  fc.assert(fc.property(query, query, fc.nat(), (kept, noise, seed) => {
    const parameters: (readonly [string, string])[] = [...kept];
    for (const [name, value] of noise) parameters.splice(seed % (parameters.length + 1), 0, [`drop-${name}`, value]);
    const filter = [...new Set(noise.map(([name]) => `drop-${name}`))].join("&");
    assertEquals(taskId(`http://h/p?${text(parameters)}`, { filter }), taskId(`http://h/p?${text(kept)}`));
  }));
});

Deno.test("taskId() ignores the order of parameters of different names", () => {
  const byName = fc.uniqueArray(parameter.map(([name, value]) => [name, encodeURIComponent(value)] as const), {
    selector: ([name]) => name,
  });
  const shuffled = byName.chain((list) =>
    fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length }))
  );
  fc.assert(fc.property(shuffled, ([list, other]) => {
    assertEquals(taskId(`http://h/p?${text(list)}`), taskId(`http://h/p?${text(other)}`));
  }));
});

Deno.test("canonicalUrl() is a fixed point for every URL", () => {
  fc.assert(fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (url) => {
    const canonical = canonicalUrl(url);
    assertEquals(canonicalUrl(canonical), canonical);
    assert(!canonical.includes("#"));
  }));
});

Deno.test("taskId() of any text is 64 hex digits or a LacewingError", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), fc.string(), (url, filter) => {
    try {
      assertEquals(taskId(`http:${url}`, { filter }).length, 64);
    } catch (error) {
      assert(error instanceof LacewingError);
    }
  }));
});
