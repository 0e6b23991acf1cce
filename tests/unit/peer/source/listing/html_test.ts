import { assertEquals } from "@std/assert";
import { readHtmlListing } from "../../../../../peer/source/listing/html.ts";
import { FILES, FOLDERS, namesOf, samplePage, sorted } from "./samples.ts";

const HIDDEN = [".dotfile", ".hidden/"];
const SAMPLES: [file: string, url: string, more: string[], without?: string[]][] = [
  ["nginx-autoindex.html", "http://host/", ["broken"]],
  ["nginx-autoindex-approx-localtime.html", "http://host/exact/", ["broken"]],
  ["apache-plain.html", "http://host/plain/", HIDDEN],
  ["apache-F0.html", "http://host/table/", HIDDEN],
  ["apache-fancy-pre.html", "http://host/fancy/", HIDDEN],
  ["apache-fancy-htmltable.html", "http://host/table/", HIDDEN],
  ["lighttpd.html", "http://host/", []],
  ["caddy-browse.html", "http://host/", [...HIDDEN, "broken"]],
  ["python-http-server.html", "http://host/", [...HIDDEN, "broken"]],
];
for (const [file, url, more] of SAMPLES) {
  Deno.test(`readHtmlListing() finds every entry of ${file}, and nothing else`, () => {
    const { entries, refused } = readHtmlListing(samplePage(file, url));
    assertEquals(namesOf(entries, url), sorted(FILES, FOLDERS, more));
    assertEquals(refused, []);
    for (const { url, isFolder, size } of entries) assertEquals([isFolder, size], [url.endsWith("/"), null]);
  });
}

for (
  const [file, url] of [["nginx-empty.html", "http://host/empty/"], ["apache-empty.html", "http://host/table/empty/"]]
) {
  Deno.test(`readHtmlListing() finds nothing in ${file}: its parent and sort links are no entries`, () => {
    assertEquals(readHtmlListing(samplePage(file!, url!)).entries, []);
  });
}

for (const [file, url] of [["nginx-sub.html", "http://host/sub/"], ["apache-sub.html", "http://host/table/sub/"]]) {
  Deno.test(`readHtmlListing() finds what is in ${file}`, () => {
    assertEquals(namesOf(readHtmlListing(samplePage(file!, url!)).entries, url!), ["deep/", "inner.txt"]);
  });
}

function names(html: string, { url = "http://host/a/", start = "http://host/a/" } = {}): string[] {
  return readHtmlListing({ url: new URL(url), start: new URL(start), text: html }).entries.map(({ url }) => url);
}

Deno.test("readHtmlListing() takes links of an index.html strictly below the folder, each once", () => {
  const html = `<!doctype html><link href="style.css"><body><nav><a href="/">top</a><a href="/a/">here</a></nav>
    <p>See <a href="manual.pdf">one</a>, <a href=manual.pdf#page=2>two</a>, <a href="b/c/d.txt">deep</a>,
    <a href="https://elsewhere/a/x">far</a>, <a href="mailto:a@b">us</a>, <a href="javascript:x()">js</a>,
    <a href="ftp://host/a/y">ftp</a>, <a name="anchor">none</a>, <a href="get?id=1">one</a> <img src="i.png">`;
  assertEquals(names(html, { url: "http://host/a/index.html" }), [
    "http://host/a/manual.pdf",
    "http://host/a/b/c/d.txt",
    "http://host/a/get?id=1",
  ]);
});

Deno.test("readHtmlListing() resolves links against <base>, and still takes only what lies below the start", () => {
  assertEquals(names('<base href="/a/b/"><a href="x">x</a><a href="../../y">y</a>'), ["http://host/a/b/x"]);
  assertEquals(names('<base href="https://evil/a/"><a href="x">x</a>'), []);
  assertEquals(names('<base href="http://["><a href="x">x</a>'), ["http://host/a/x"]);
});

Deno.test("readHtmlListing() survives broken and hostile pages", () => {
  for (const html of ["", "<", "<a href=", "<a href='http://['>x", "\0".repeat(100), "<a>".repeat(1000)]) {
    assertEquals(names(html), [], html.slice(0, 30));
  }
  assertEquals(names(`${"<div>".repeat(20_000)}<a href=x>`), ["http://host/a/x"]);
});
