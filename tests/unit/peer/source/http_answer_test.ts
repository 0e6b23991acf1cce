import { assertEquals, assertThrows } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { isPassing, readAnswer, versionOf } from "../../../../peer/source/http_answer.ts";

const URL_ASKED = new URL("http://origin.test/x");
const DATE = "Mon, 01 Jan 2024 00:00:00 GMT";

/** Range as `offset+length`, answer as status with `name=value` headers. */
function read(range: string | null, status: number, headers: Record<string, string>) {
  const [offset, length] = range?.split("+").map(Number) ?? [];
  const question = { url: URL_ASKED, range: range === null ? null : { offset: offset!, length: length! } };
  return readAnswer(question, status, new Headers(headers));
}

const GOOD: [range: string | null, status: number, headers: Record<string, string>, shown: string][] = [
  [null, 200, { "content-length": "100" }, "0+100 of 100"],
  [null, 200, { "content-length": "100", "accept-ranges": "bytes" }, "0+100 of 100 ranges"],
  [null, 200, { "content-length": "100", "accept-ranges": "none" }, "0+100 of 100"],
  [null, 200, {}, "0+? of ?"],
  [null, 200, { "content-length": "0" }, "0+0 of 0"],
  ["10+5", 206, { "content-range": "bytes 10-14/100" }, "10+5 of 100 ranges"],
  ["10+5", 206, { "content-range": "Bytes 10-14/100 " }, "10+5 of 100 ranges"],
  ["10+5", 206, { "content-range": "bytes 10-14/*" }, "10+5 of ? ranges"],
  ["10+5", 206, { "content-range": "bytes 10-12/13", "content-length": "3" }, "10+3 of 13 ranges"],
  ["10+5", 206, { "content-range": "bytes 10-12/*" }, "10+3 of ? ranges"],
  ["10+5", 200, { "content-length": "100", "accept-ranges": "bytes" }, "0+100 of 100"],
  ["0+5", 200, { "content-length": "100", "accept-ranges": "bytes" }, "0+100 of 100"],
  ["0+5", 200, { "content-length": "4", "accept-ranges": "bytes" }, "0+4 of 4 ranges"],
  ["0+5", 200, { "content-length": "4" }, "0+4 of 4"],
  ["0+5", 200, { "accept-ranges": "bytes" }, "0+? of ?"],
  ["0+5", 416, { "content-range": "bytes */0" }, "0+0 of 0 ranges"],
];

for (const [range, status, headers, shown] of GOOD) {
  Deno.test(`${status} ${JSON.stringify(headers)} to range ${range} is ${shown}`, () => {
    const { offset, length, contentLength, ranges } = read(range, status, headers);
    assertEquals(`${offset}+${length ?? "?"} of ${contentLength ?? "?"}${ranges ? " ranges" : ""}`, shown);
  });
}

const BAD: [range: string | null, status: number, headers: Record<string, string>, code: string][] = [
  [null, 206, { "content-range": "bytes 0-99/100" }, "source_failed"],
  ["10+5", 206, {}, "source_failed"],
  ["10+5", 206, { "content-range": "10-14/100" }, "source_failed"],
  ["10+5", 206, { "content-range": "items 10-14/100" }, "source_failed"],
  ["10+5", 206, { "content-range": "bytes */100" }, "source_failed"],
  ["10+5", 206, { "content-range": "bytes 9-14/100" }, "source_failed"],
  ["10+5", 206, { "content-range": "bytes 10-15/100" }, "source_failed"],
  ["10+5", 206, { "content-range": "bytes 10-13/100" }, "source_failed"],
  ["10+5", 206, { "content-range": "bytes 10-14/14" }, "source_failed"],
  ["10+5", 206, { "content-range": "bytes 10-14/9999999999999999" }, "source_failed"],
  ["10+5", 206, { "content-range": "bytes 10-14/100", "content-length": "6" }, "source_failed"],
  ["10+5", 206, { "content-type": "multipart/byteranges; boundary=a" }, "source_failed"],
  ["10+5", 416, { "content-range": "bytes */9" }, "range_not_satisfiable"],
  ["10+5", 416, { "content-range": "bytes */0" }, "range_not_satisfiable"],
  ["0+5", 416, {}, "range_not_satisfiable"],
  ["0+5", 416, { "content-range": "bytes */x" }, "range_not_satisfiable"],
  [null, 416, {}, "range_not_satisfiable"],
  [null, 404, {}, "source_not_found"],
  [null, 410, {}, "source_not_found"],
  [null, 401, {}, "source_refused"],
  [null, 403, {}, "source_refused"],
  [null, 407, {}, "source_refused"],
  [null, 402, {}, "source_failed"],
  [null, 300, {}, "source_failed"],
  [null, 201, {}, "source_failed"],
  [null, 500, {}, "source_failed"],
  [null, 429, {}, "source_failed"],
];

for (const [range, status, headers, code] of BAD) {
  Deno.test(`${status} ${JSON.stringify(headers)} to range ${range} fails with ${code}`, () => {
    assertEquals(assertThrows(() => read(range, status, headers), LacewingError).code, code);
  });
}

for (
  const [headers, length, version] of [
    [{ etag: '"a"' }, 5, { etag: '"a"' }],
    [{ etag: "bare" }, 5, { etag: "bare" }],
    [{ etag: 'W/"a"' }, 5, {}],
    [{ etag: 'w/"a"' }, 5, {}],
    [{ etag: `"${"a".repeat(600)}"` }, 5, {}],
    [{ "last-modified": DATE }, 5, { lastModified: DATE }],
    [{ "last-modified": DATE }, null, {}],
    [{ "last-modified": "yesterday" }, 5, {}],
    [{ etag: 'W/"a"', "last-modified": DATE }, 0, { lastModified: DATE }],
    [{}, 5, {}],
  ] as const
) {
  Deno.test(`version of ${JSON.stringify(headers).slice(0, 60)} with length ${length} is ${JSON.stringify(version)}`, () => {
    assertEquals(versionOf(new Headers(headers), length), version);
  });
}

for (
  const [status, passes] of [[408, true], [429, true], [500, true], [503, true], [404, false], [200, false]] as const
) {
  Deno.test(`status ${status} ${passes ? "may" : "does not"} pass`, () => assertEquals(isPassing(status), passes));
}
