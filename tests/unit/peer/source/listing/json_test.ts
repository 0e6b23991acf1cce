import { assertEquals } from "@std/assert";
import { readJsonListing } from "../../../../../peer/source/listing/json.ts";
import { FILES, FOLDERS, namesOf, samplePage, sorted } from "./samples.ts";

const MODIFIED_MS = Date.UTC(2024, 2, 5, 6, 7, 8);

for (const file of ["nginx-autoindex.json", "nginx-autoindex.jsonp"]) {
  Deno.test(`readJsonListing() finds every entry of ${file} with length and time`, () => {
    const found = readJsonListing(samplePage(file, "http://host/d%20e/"));
    assertEquals(namesOf(found?.entries ?? [], "http://host/d%20e/"), sorted(FILES, FOLDERS));
    const entry = (name: string) => found?.entries.find(({ url }) => url.endsWith(`/${name}`));
    assertEquals(entry("big.img")?.size, 5_368_709_120);
    assertEquals(entry("zero.bin"), {
      url: "http://host/d%20e/zero.bin",
      isFolder: false,
      size: 0,
      modifiedMs: MODIFIED_MS,
    });
    assertEquals(entry("sub/")?.size, null);
    assertEquals(entry("percent%2541.txt")?.size, 1);
    assertEquals(entry("question%3Fmark.txt")?.size, 1);
  });
}

Deno.test("readJsonListing() finds every entry of caddy-browse.json by its link", () => {
  const found = readJsonListing(samplePage("caddy-browse.json", "http://host/"));
  const more = [".dotfile", ".hidden/", "broken"];
  assertEquals(namesOf(found?.entries ?? [], "http://host/"), sorted(FILES, FOLDERS, more));
  const entry = (name: string) => found?.entries.find(({ url }) => url === `http://host/${name}`);
  assertEquals([entry("a.txt")?.size, entry("a.txt")?.modifiedMs], [5, MODIFIED_MS]);
  assertEquals([entry("link-to-a")?.size, entry("link-to-a")?.modifiedMs], [null, null]);
});

function read(value: unknown) {
  const url = new URL("http://host/a/");
  return readJsonListing({ url, start: url, text: JSON.stringify(value) });
}

Deno.test("readJsonListing() refuses and names what would leave the folder", () => {
  const names = ["..", ".", "", "../up", "/etc/passwd", "a/b", "nul\0", "\ud800"];
  const found = read(names.map((name) => ({ name, type: "file", size: 1 })));
  assertEquals([found?.entries, found?.refused.map(({ name }) => name)], [[], names]);
  const links = ["../x", "/x", "//evil/x", "https://evil/a/x", "./", "%2e%2e/x", "http://["];
  const linked = read(links.map((url) => ({ name: "n", url, is_dir: false, size: 1 })));
  assertEquals([linked?.entries, linked?.refused.length], [[], links.length]);
});

Deno.test("readJsonListing() takes no length and time that are none", () => {
  const found = read([
    { name: "a", type: "file", size: -1, mtime: "soon" },
    { name: "b", type: "file", size: 1.5, mtime: 5 },
    { name: "c", type: "file", size: "12", mtime: "x".repeat(100) },
  ]);
  assertEquals(found?.entries.map(({ size, modifiedMs }) => [size, modifiedMs]), [[null, null], [null, null], [
    12,
    null,
  ]]);
});

for (
  const text of [
    "",
    "[",
    "{}",
    "null",
    "[1]",
    '[{"name":1}]',
    '[{"name":"a"}]',
    '{"name":"a","type":"file"}',
    "x(",
    "a(1)",
  ]
) {
  Deno.test(`readJsonListing() sees that ${JSON.stringify(text)} is no listing`, () => {
    const url = new URL("http://host/");
    assertEquals(readJsonListing({ url, start: url, text }), null);
  });
}

Deno.test("readJsonListing() reads an empty folder", () => {
  assertEquals(read([]), { entries: [], refused: [] });
});
