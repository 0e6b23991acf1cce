import { assertEquals } from "@std/assert";
import { readXmlListing } from "../../../../../peer/source/listing/xml.ts";
import { FILES, FOLDERS, namesOf, samplePage, sorted } from "./samples.ts";

const MODIFIED_MS = Date.UTC(2024, 2, 5, 6, 7, 8);

Deno.test("readXmlListing() finds every entry of nginx-autoindex.xml with length and time", () => {
  const found = readXmlListing(samplePage("nginx-autoindex.xml", "http://host/d/"));
  assertEquals(found?.style, "page");
  assertEquals(namesOf(found?.entries ?? [], "http://host/d/"), sorted(FILES, FOLDERS));
  const big = found?.entries.find(({ url }) => url.endsWith("/big.img"));
  assertEquals([big?.size, big?.modifiedMs], [5_368_709_120, MODIFIED_MS]);
});

const DAV: [file: string, without: string[], more: string[]][] = [
  ["apache-propfind-depth1.xml", ["link-to-a", "link-to-dir/", "loop/"], [".dotfile", ".hidden/"]],
  ["nginx-davext-propfind-depth1.xml", [], []],
];
for (const [file, without, more] of DAV) {
  Deno.test(`readXmlListing() finds every entry of ${file}, not the folder itself`, () => {
    const found = readXmlListing(samplePage(file, "http://host/dav/"));
    assertEquals(found?.style, "webdav");
    const hidden = namesOf(found?.entries ?? [], "http://host/dav/").filter((name) => name.startsWith("."));
    const wanted = sorted(FILES, FOLDERS).filter((name) => !without.includes(name));
    assertEquals(namesOf(found?.entries ?? [], "http://host/dav/"), sorted(wanted, hidden));
    for (const name of more) assertEquals(hidden.includes(name), true, name);
    const plain = found?.entries.find(({ url }) => url.endsWith("/a.txt"));
    assertEquals(plain, { url: "http://host/dav/a.txt", isFolder: false, size: 5, modifiedMs: MODIFIED_MS });
  });
}

for (
  const [file, folder, wanted] of [
    ["nginx-davext-propfind-sub.xml", "/dav/sub/", ["deep/", "inner.txt"]],
    ["apache-propfind-infinity.xml", "/davinf/", ["deep/", "deep/leaf.txt", "inner.txt"]],
  ] as const
) {
  Deno.test(`readXmlListing() finds what is in ${file}`, () => {
    const found = readXmlListing(samplePage(file, `http://host${folder}`));
    assertEquals(namesOf(found?.entries ?? [], `http://host${folder}`), [...wanted]);
  });
}

for (const file of ["apache-propfind-depth0.xml", "nginx-davext-propfind-depth0.xml"]) {
  Deno.test(`readXmlListing() finds nothing in ${file}: it tells of the folder alone`, () => {
    assertEquals(readXmlListing(samplePage(file, "http://host/dav/"))?.entries, []);
  });
}

function read(text: string) {
  const url = new URL("http://host/dav/");
  return readXmlListing({ url, start: url, text });
}

const RESPONSE = (href: string, type = "") =>
  `<response><href>${href}</href><propstat><prop><resourcetype>${type}</resourcetype></prop><status>HTTP/1.1 200 OK</status></propstat></response>`;

Deno.test("readXmlListing() goes by namespaces, not by prefixes", () => {
  const good = read(`<?xml version="1.0"?><x:multistatus xmlns:x="DAV:"><x:response><x:href>/dav/d</x:href><x:propstat>
    <x:prop><y:resourcetype xmlns:y="DAV:"><collection xmlns="DAV:"/></y:resourcetype></x:prop></x:propstat></x:response></x:multistatus>`);
  assertEquals(good?.entries.map(({ url }) => url), ["http://host/dav/d/"]);
  assertEquals(read(`<D:multistatus xmlns:D="urn:other"><D:response/></D:multistatus>`), null);
  assertEquals(read(`<D:multistatus><D:response/></D:multistatus>`), null);
  const foreign = read(`<multistatus xmlns="DAV:"><response><href>/dav/f</href><propstat><prop>
    <resourcetype><c:collection xmlns:c="urn:c"/></resourcetype></prop></propstat></response></multistatus>`);
  assertEquals(foreign?.entries.map(({ url, isFolder }) => [url, isFolder]), [["http://host/dav/f", false]]);
});

Deno.test("readXmlListing() takes properties only from a propstat that succeeded", () => {
  const found = read(`<multistatus xmlns="DAV:"><response><href>/dav/f</href>
    <propstat><prop><getcontentlength>9</getcontentlength></prop><status>HTTP/1.1 404 Not Found</status></propstat>
    <propstat><prop><resourcetype/></prop><status>HTTP/1.1 200 OK</status></propstat></response></multistatus>`);
  assertEquals(found?.entries[0]?.size, null);
});

Deno.test("readXmlListing() takes only what lies below the folder, whatever host the answer names", () => {
  const hrefs = [
    "/dav/",
    "/dav",
    "/",
    "/etc/passwd",
    "/dav/../x",
    "/dav/%2e%2e/x",
    "",
    "http://[",
    "http://inner:8080/dav/ok",
    "sub/f",
  ];
  const found = read(`<multistatus xmlns="DAV:">${hrefs.map((href) => RESPONSE(href)).join("")}</multistatus>`);
  assertEquals(found?.entries.map(({ url }) => url), ["http://host/dav/ok", "http://host/dav/sub/f"]);
});

Deno.test("readXmlListing() reads entities of XML, character references and CDATA, and expands no others", () => {
  const found = read(`<!DOCTYPE list [<!ENTITY boom "boom">]><list>
    <file>a&amp;lt;&#33;&#x22;</file><file><![CDATA[c&amp;d]]></file><file>&boom;</file></list>`);
  assertEquals(namesOf(found?.entries ?? [], "http://host/dav/"), ["&boom;", 'a&lt;!"', "c&amp;d"]);
});

Deno.test("readXmlListing() refuses and names what would leave the folder", () => {
  const found = read(
    "<list><file>../x</file><directory>..</directory><file>a/b</file><file></file><file>ok</file></list>",
  );
  assertEquals(found?.entries.map(({ url }) => url), ["http://host/dav/ok"]);
  assertEquals(found?.refused.map(({ name }) => name), ["../x", "..", "a/b", ""]);
});

for (const text of ["", "<", "<list", "<list><file>", "<rss/>", "{}", "<a><b></a>", "<".repeat(1000)]) {
  Deno.test(`readXmlListing() finds no entry in ${JSON.stringify(text.slice(0, 30))}`, () => {
    assertEquals(read(text)?.entries ?? [], []);
  });
}

Deno.test("readXmlListing() survives an answer that nests deeply", () => {
  const deep = `<list>${"<a>".repeat(60)}${"</a>".repeat(60)}<file>ok</file></list>`;
  assertEquals(read(deep)?.entries.length ?? 1, 1);
  const hostile = `<list>${"<a>".repeat(100_000)}`;
  assertEquals(read(hostile)?.entries ?? [], []);
});
