import { assertEquals, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { LineReader } from "../../../../peer/core/wire/json_lines.ts";
import {
  contentLengthOf,
  formatHead,
  HEAD_LENGTH_MAX,
  readRequestHead,
  readResponseHead,
} from "../../../../peer/transfer/http_head.ts";

/** A reader over text that comes `step` bytes at a time. */
function readerOf(text: string, step = 7): LineReader {
  let rest = new TextEncoder().encode(text);
  return new LineReader({
    read(buffer) {
      if (rest.length === 0) return Promise.resolve(null);
      const part = rest.subarray(0, Math.min(step, buffer.length));
      buffer.set(part);
      rest = rest.subarray(part.length);
      return Promise.resolve(part.length);
    },
  }, { lineLengthMax: HEAD_LENGTH_MAX });
}

Deno.test("readRequestHead() reads method, path, fields, and leaves the next request", async () => {
  const reader = readerOf(
    "GET /a?b=c HTTP/1.1\r\nHost: x:1\r\nX-Need:  7 \r\n\r\nGET /second HTTP/1.1\r\nconnection: close\r\n\r\n",
  );
  const first = await readRequestHead(reader);
  assertEquals([first?.method, first?.path, first?.keepAlive], ["GET", "/a?b=c", true]);
  assertEquals([...first?.fields ?? []], [["host", "x:1"], ["x-need", "7"]]);
  const second = await readRequestHead(reader);
  assertEquals([second?.path, second?.keepAlive], ["/second", false]);
  assertEquals(await readRequestHead(reader), undefined);
});

Deno.test("readRequestHead() closes after an HTTP/1.0 request", async () => {
  assertEquals((await readRequestHead(readerOf("GET / HTTP/1.0\r\n\r\n")))?.keepAlive, false);
});

for (
  const [what, text] of [
    ["no HTTP", "hello\r\n\r\n"],
    ["an unknown version", "GET / HTTP/2.0\r\n\r\n"],
    ["an absolute URL", "GET http://x/ HTTP/1.1\r\n\r\n"],
    ["a space in the path", "GET /a b HTTP/1.1\r\n\r\n"],
    ["a field without colon", "GET / HTTP/1.1\r\nnonsense\r\n\r\n"],
    ["a space before the colon", "GET / HTTP/1.1\r\ncontent-length : 1\r\n\r\n"],
    ["a folded line", "GET / HTTP/1.1\r\na: b\r\n c\r\n\r\n"],
    ["two lengths", "GET / HTTP/1.1\r\ncontent-length: 0\r\nContent-Length: 9\r\n\r\n"],
    ["an end in the middle", "GET / HTTP/1.1\r\na: b\r\n"],
    ["an end in the first line", "GET / HT"],
    ["one line over the bound", `GET /${"a".repeat(9000)} HTTP/1.1\r\n\r\n`],
    [
      "many lines over the bound",
      `GET / HTTP/1.1\r\n${Array.from({ length: 12 }, (_, i) => `x${i}: ${"v".repeat(900)}\r\n`).join("")}\r\n`,
    ],
    ["too many fields", `GET / HTTP/1.1\r\n${Array.from({ length: 65 }, (_, i) => `x${i}: 1\r\n`).join("")}\r\n`],
  ] as const
) {
  Deno.test(`readRequestHead() refuses ${what}`, async () => {
    const error = await assertRejects(() => readRequestHead(readerOf(text, 1000)), LacewingError);
    assertEquals(error.code, "protocol");
  });
}

Deno.test("readResponseHead() reads the status with and without reason", async () => {
  const reader = readerOf("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nHTTP/1.1 503\r\nconnection: Close\r\n\r\n");
  const first = await readResponseHead(reader);
  assertEquals([first?.status, first?.keepAlive, contentLengthOf(first?.fields ?? new Map())], [200, true, 5]);
  const second = await readResponseHead(reader);
  assertEquals([second?.status, second?.keepAlive], [503, false]);
});

for (const text of ["", "abc\r\n\r\n", "HTTP/1.1 99 x\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "ICY 200 OK\r\n\r\n"]) {
  Deno.test(`readResponseHead() does not take ${JSON.stringify(text)}`, async () => {
    const read = () => readResponseHead(readerOf(text));
    if (text === "") assertEquals(await read(), undefined);
    else await assertRejects(read, LacewingError);
  });
}

for (const value of ["-1", "1e3", "0x10", "1, 1", "", " ", "9".repeat(16)]) {
  Deno.test(`contentLengthOf() takes no ${JSON.stringify(value)}`, () => {
    assertEquals(contentLengthOf(new Map([["content-length", value]])), null);
  });
}

Deno.test("formatHead() writes what readResponseHead() reads", async () => {
  const text = formatHead("HTTP/1.1 404 Not Found", { "content-length": 3, connection: "close" });
  assertEquals(text, "HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\nconnection: close\r\n\r\n");
  assertEquals((await readResponseHead(readerOf(text)))?.status, 404);
});
