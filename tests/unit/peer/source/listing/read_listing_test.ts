import { assertEquals } from "@std/assert";
import { mayBeListing, pageText, readListing } from "../../../../../peer/source/listing/read_listing.ts";

for (
  const type of ["text/html; charset=utf-8", "TEXT/HTML", "application/json", "text/xml", "", "application/javascript"]
) {
  Deno.test(`mayBeListing() reads a page of type "${type}"`, () => assertEquals(mayBeListing(type), true));
}
for (const type of ["application/octet-stream", "text/plain", "image/svg+xml", "application/x-tar", "html"]) {
  Deno.test(`mayBeListing() does not read a page of type "${type}"`, () => assertEquals(mayBeListing(type), false));
}

const url = new URL("http://host/a/");
const PAGES: [claim: string, type: string, text: string, count: number | null][] = [
  ["HTML by its type", "text/html", "<a href=x>x</a>", 1],
  ["HTML by its content", "", "\n<!DOCTYPE html><a href=x>x</a>", 1],
  ["XHTML with an XML head", "application/xhtml+xml", '<?xml version="1.0"?><html><a href="x">x</a></html>', 1],
  ["JSON by its type", "application/json", '[{"name":"x","type":"file"}]', 1],
  ["JSON by its content", "text/html", '[{"name":"x","type":"file"}]', 1],
  ["JSONP", "application/javascript", '/* callback */\nf([{"name":"x","type":"file"}]);', 1],
  ["HTML that begins like JSON", "text/html", "[parent] <a href=x>x</a>", 1],
  ["nginx XML", "text/xml", '<?xml version="1.0"?><list><file>x</file></list>', 1],
  ["WebDAV", "text/xml", '<D:multistatus xmlns:D="DAV:"></D:multistatus>', 0],
  ["a feed", "text/xml", '<?xml version="1.0"?><rss></rss>', null],
  ["other JSON", "application/json", '{"a":[1]}', null],
  ["a script", "application/javascript", "alert(1)", null],
  ["an empty page without a type", "", "", null],
];
for (const [claim, type, text, count] of PAGES) {
  Deno.test(`readListing() ${count === null ? "sees no listing in" : "reads"} ${claim}`, async () => {
    assertEquals((await readListing({ url, start: url, text }, type))?.entries.length ?? null, count);
  });
}

Deno.test("pageText() goes by the character set, and by UTF-8 where it knows none", () => {
  const bytes = new Uint8Array([0xc3, 0xbc]);
  assertEquals(pageText(bytes, "text/html"), "ü");
  assertEquals(pageText(bytes, 'text/html; charset="iso-8859-1"'), "Ã¼");
  assertEquals(pageText(bytes, "text/html; charset=none-such"), "ü");
});
