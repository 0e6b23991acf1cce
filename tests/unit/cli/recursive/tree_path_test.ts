import { assertEquals } from "@std/assert";
import { folderName, treePath } from "../../../../cli/recursive/tree_path.ts";

const START = "http://host/a%20b/";

const GOOD: [url: string, path: string[]][] = [
  ["http://host/a%20b/f", ["f"]],
  ["http://host/a%20b/sub/f.txt", ["sub", "f.txt"]],
  ["http://host/a%20b/sub/", ["sub"]],
  ["http://host/a%20b/%C3%BC%20%25%23%3F%3B%26", ["ü %#?;&"]],
  ["http://host/a%20b/back%5Cslash", ["back\\slash"]],
  ["http://host/a%20b/...", ["..."]],
  ["http://host/a%20b/..a/b..", ["..a", "b.."]],
  ["http://host/a%20b/%ff", ["%ff"]],
  ["http://host/a%20b/100%", ["100%"]],
  ["http://host/a%20b/get?id=1&x=a/b", ["get?id=1&x=a%2Fb"]],
  ["http://host/a%20b/semi;colon:colon.txt", ["semi;colon:colon.txt"]],
  ["http://host/a%20b/%E2%80%AE", ["\u202e"]],
];
for (const [url, path] of GOOD) {
  Deno.test(`treePath() puts ${url} at ${JSON.stringify(path)}`, () => assertEquals(treePath(url, START), { path }));
}

const BAD: [url: string, word: string][] = [
  ["http://host/a%20b/..%2f..%2fetc%2fpasswd", "holds /"],
  ["http://host/a%20b/%2Fetc", "holds /"],
  ["http://host/a%20b/sub/..%2f..%2fx", "holds /"],
  ["http://host/a%20b/..%5C..%5Cx", "leave"],
  ["http://host/a%20b/x%5C..%5C..%5Cy", "leave"],
  ["http://host/a%20b/%5Cserver%5Cx", "leave"],
  ["http://host/a%20b/C:", "drive"],
  ["http://host/a%20b/c%3A%5Cx", "drive"],
  ["http://host/a%20b/d:x", "drive"],
  ["http://host/a%20b/nul%00.txt", "control"],
  ["http://host/a%20b/line%0Abreak", "control"],
  ["http://host/a%20b/esc%1B%5B2J", "control"],
  ["http://host/a%20b/%7F", "control"],
  ["http://host/a%20b/%C2%9B", "control"],
  ["http://host/a%20b//x", "empty"],
  ["http://host/a%20b/x//", "empty"],
  ["http://host/a%20b/..%2f", "holds /"],
];
for (const [url, word] of BAD) {
  Deno.test(`treePath() refuses ${url}`, () => {
    const place = treePath(url, START);
    assertEquals("reason" in place && place.reason.includes(word), true, JSON.stringify(place));
  });
}

Deno.test("treePath() never takes a segment of dots for a name, however it is written", () => {
  // The URL parser resolves these; what is left lies outside and is no entry of a listing.
  for (const segment of ["%2e%2e", ".%2E", "..", "."]) {
    const { href } = new URL(`http://host/a%20b/${segment}/x`);
    const place = treePath(href, START);
    assertEquals("path" in place && place.path.includes(".."), false, href);
  }
});

for (
  const [url, name] of [
    ["http://host/a/b/", "b"],
    ["http://host/a/b", "b"],
    ["http://host/", "host"],
    ["http://host", "host"],
    ["http://[::1]:80/", "::1"],
    ["http://host/%2e%2e%2fx/", ".._x"],
    ["http://host/..%2f/", ".._"],
  ]
) {
  Deno.test(`folderName() of ${url} is ${name}`, () => assertEquals(folderName(url!), name));
}
