import { assertEquals } from "@std/assert";
import {
  canonicalPath,
  entryOfLink,
  entryOfName,
  folderOf,
  isWithin,
  sizeOf,
  timeOf,
} from "../../../../../peer/source/listing/links.ts";

const PAGE = { url: new URL("http://host/a/b/"), start: new URL("http://host/a/") };

const GOOD: [href: string, url: string][] = [
  ["x", "http://host/a/b/x"],
  ["./x", "http://host/a/b/x"],
  ["./semi;colon:colon.txt", "http://host/a/b/semi;colon:colon.txt"],
  ["%3Cb%3E", "http://host/a/b/%3Cb%3E"],
  ["sub/", "http://host/a/b/sub/"],
  ["/a/y", "http://host/a/y"],
  ["../c", "http://host/a/c"],
  ["http://user:pw@host/a/z#f", "http://host/a/z"],
  ["x?y=1#z", "http://host/a/b/x?y=1"],
  ["ü", "http://host/a/b/%C3%BC"],
  ["..%2f..%2fetc", "http://host/a/b/..%2f..%2fetc"],
];
for (const [href, url] of GOOD) {
  Deno.test(`entryOfLink() takes ${href}`, () => assertEquals(entryOfLink(href, PAGE)?.url, url));
}

const BAD = [
  "",
  "?C=N;O=D",
  "?",
  "#top",
  "/",
  "/a/",
  "/a",
  "../",
  "..",
  "../..",
  "../../x",
  "/b/x",
  "%2e%2e/%2E%2E/x",
  "..\\..\\x",
  "\\\\evil\\x",
  "//evil/a/b/x",
  "https://host/a/b/x",
  "http://host:81/a/x",
  "mailto:x@y",
  "javascript:x",
  "data:,x",
  "file:///a/x",
  "ftp://host/a/x",
  "http://[",
  "sub/?C=M;O=A",
  "/ab/x",
  "x".repeat(9000),
];
for (const href of BAD) {
  Deno.test(`entryOfLink() leaves out ${href.slice(0, 40)}`, () => assertEquals(entryOfLink(href, PAGE), null));
}

Deno.test("entryOfLink() finds the start folder also where its name is written with other escapes", () => {
  const page = { url: new URL("http://host/%c3%bc%7E/"), start: new URL("http://host/ü~/") };
  assertEquals(entryOfLink("x", page)?.url, "http://host/%c3%bc%7E/x");
});

Deno.test("entryOfName() writes every name as one segment", () => {
  for (const name of ["a b", "a#b", "a?b", "a%41", "a&b;c", "a\\b", "ü", "a:b", "...", "..a", "-", "l".repeat(255)]) {
    const entry = entryOfName(name, PAGE.url, {});
    assertEquals("url" in entry && decodeURIComponent(new URL(entry.url).pathname), `/a/b/${name}`);
  }
});

Deno.test("canonicalPath() is the same for all ways to write a path", () => {
  for (const path of ["/a%20b/%c3%bc", "/a b/%C3%BC", "/a b/ü", "/%61%20b/ü"]) {
    assertEquals(canonicalPath(new URL(path, "http://h")), "/a%20b/%C3%BC");
  }
  assertEquals(canonicalPath(new URL("http://h/a%2Fb/%ff")), "/a%2Fb/%25ff");
});

Deno.test("folderOf() and isWithin() know where a page lies", () => {
  assertEquals(folderOf(new URL("http://u:p@host/a/index.html?x#y")).href, "http://host/a/");
  assertEquals(folderOf(new URL("http://host/a/")).href, "http://host/a/");
  assertEquals(isWithin(new URL("http://host/a/"), PAGE.start), true);
  for (const url of ["http://host/", "http://other/a/", "https://host/a/", "http://host/ab/"]) {
    assertEquals(isWithin(new URL(url), PAGE.start), false, url);
  }
});

Deno.test("timeOf() and sizeOf() take what servers write, to the second and exact", () => {
  const ms = Date.UTC(2024, 2, 5, 6, 7, 8);
  for (const text of ["Tue, 05 Mar 2024 06:07:08 GMT", "2024-03-05T06:07:08Z", "2024-03-05T06:07:08.987654321Z"]) {
    assertEquals(timeOf(text), ms, text);
  }
  for (const text of ["", "soon", 5, null, undefined]) assertEquals(timeOf(text), null);
  for (const size of ["5", 5]) assertEquals(sizeOf(size), 5);
  for (const size of ["", "5G", "-1", -1, 1.5, NaN, "1e3", null, {}]) assertEquals(sizeOf(size), null);
});
