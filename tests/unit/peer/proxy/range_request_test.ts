import { assertEquals } from "@std/assert";
import type { Field } from "../../../../peer/proxy/http_message.ts";
import { askedRange, rangeAnswer } from "../../../../peer/proxy/range_request.ts";

const ETAG = '"sha256:ab"';

for (
  const [fields, range] of [
    [[], null],
    [[["Range", "bytes=0-9"]], { kind: "closed", first: 0, last: 9 }],
    [[["range", "Bytes=150-"]], { kind: "open", first: 150 }],
    [[["Range", "bytes=-50"]], { kind: "suffix", length: 50 }],
    [[["Range", "bytes=0-9"], ["If-Range", ETAG]], { kind: "closed", first: 0, last: 9 }],
    [[["Range", "bytes=0-9"], ["If-Range", `W/${ETAG}`]], null],
    [[["Range", "bytes=0-9"], ["If-Range", "Sat, 21 Nov 2026 03:40:30 GMT"]], null],
    [[["Range", "bytes=0-9,20-29"]], null],
    [[["Range", "bytes=0-9"], ["Range", "bytes=20-29"]], null],
    [[["Range", "bytes=9-0"]], null],
    [[["Range", "bytes=-"]], null],
    [[["Range", "bytes=abc"]], null],
    [[["Range", "0-9"]], null],
    [[["Range", "items=0-9"]], null],
    [[["Range", "bytes=99999999999999999999-"]], null],
  ] as [Field[], ReturnType<typeof askedRange>][]
) {
  Deno.test(`askedRange() of ${JSON.stringify(fields)}`, () => assertEquals(askedRange(fields, ETAG), range));
}

Deno.test("askedRange() takes no If-Range for a content without entity tag", () => {
  assertEquals(askedRange([["Range", "bytes=0-9"], ["If-Range", ETAG]], null), null);
});

for (
  const [text, length, status, contentRange, contentLength] of [
    [null, 10, 200, undefined, "10"],
    [null, 0, 200, undefined, "0"],
    ["bytes=0-0", 10, 206, "bytes 0-0/10", "1"],
    ["bytes=5-", 10, 206, "bytes 5-9/10", "5"],
    ["bytes=5-99", 10, 206, "bytes 5-9/10", "5"],
    ["bytes=-99", 10, 206, "bytes 0-9/10", "10"],
    ["bytes=10-", 10, 416, "bytes */10", "0"],
    ["bytes=-0", 10, 416, "bytes */10", "0"],
    ["bytes=0-", 0, 416, "bytes */0", "0"],
  ] as const
) {
  Deno.test(`rangeAnswer() to ${text} of ${length} B is ${status}`, () => {
    const answer = rangeAnswer(text === null ? null : askedRange([["Range", text]], ETAG), length);
    const field = (name: string) => answer.fields.find(([key]) => key === name)?.[1];
    assertEquals([answer.status, field("Content-Range"), field("Content-Length")], [
      status,
      contentRange,
      contentLength,
    ]);
  });
}
