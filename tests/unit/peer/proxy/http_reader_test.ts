import { assertEquals, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { type BodyReader, HEAD_LENGTH_MAX, HttpReader } from "../../../../peer/proxy/http_reader.ts";

/** A connection that gives its text in steps of so many bytes. */
function readerOf(text: string, step = 1_000_000): HttpReader {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new HttpReader({
    read: (buffer) => {
      if (at === bytes.length) return Promise.resolve(null);
      const part = bytes.subarray(at, at + Math.min(step, buffer.length));
      buffer.set(part);
      at += part.length;
      return Promise.resolve(part.length);
    },
  });
}

async function all(body: BodyReader): Promise<string> {
  let text = "";
  for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) {
    text += new TextDecoder().decode(bytes);
  }
  return text;
}

for (const step of [1, 2, 3, 7, 1000]) {
  Deno.test(`heads and bodies come apart right in steps of ${step} bytes`, async () => {
    const reader = readerOf(
      "\r\nONE\r\nA: b\r\n\r\nhelloTWO\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nLAST\r\n\r\nrest",
      step,
    );
    assertEquals(await reader.readHead(), "ONE\r\nA: b");
    assertEquals(await all(reader.body({ kind: "length", length: 5 })), "hello");
    assertEquals(await reader.readHead(), "TWO");
    assertEquals(await all(reader.body({ kind: "chunked" })), "abc0123456789");
    assertEquals(await reader.readHead(), "LAST");
    assertEquals(await all(reader.body({ kind: "close" })), "rest");
    assertEquals(await reader.readHead(), null);
  });
}

Deno.test("a body larger than the buffer comes whole", async () => {
  const text = "0123456789".repeat(100_000);
  assertEquals(await all(readerOf(text, 99_999).body({ kind: "length", length: text.length })), text);
  const chunked = `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
  assertEquals(await all(readerOf(chunked, 77_777).body({ kind: "chunked" })), text);
});

for (
  const [what, text] of [
    ["too long", `GET /${"a".repeat(2 * HEAD_LENGTH_MAX)}`],
    ["cut off", "GET / HTTP/1.1\r\nHost: h\r\n"],
    ["with bare line feeds", "GET / HTTP/1.1\nHost: h\n\n"],
    ["with one line and bare line feeds", "GET / HTTP/1.0\n\n"],
    ["with a bare line feed before a good end", "GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n"],
    ["of TLS", "\x16\x03\x01\x00\x05hello"],
    ["that begins with a blank", " GET / HTTP/1.1\r\n\r\n"],
  ] as const
) {
  Deno.test(`a head ${what} is refused`, async () => {
    const error = await assertRejects(() => readerOf(text).readHead(), LacewingError);
    assertEquals(error.code, "protocol");
  });
}

for (
  const text of [
    "5\nhello\r\n0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n",
    "5\r\nhelloo\r\n0\r\n\r\n",
    "5\r\nhell\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    " 5\r\nhello\r\n0\r\n\r\n",
    "+5\r\nhello\r\n0\r\n\r\n",
    "\r\n",
    "5\r\nhello\r\n",
    "5\r\nhel",
    "0\r\n",
    `5;${"x".repeat(300)}\r\nhello\r\n0\r\n\r\n`,
    "1234567890123\r\nhello",
    `0\r\n${"A: b\r\n".repeat(3000)}\r\n`,
  ]
) {
  Deno.test(`the chunks ${JSON.stringify(text.slice(0, 40))} are refused`, async () => {
    await assertRejects(() => all(readerOf(text).body({ kind: "chunked" })), LacewingError);
  });
}

Deno.test("a body that ends early is an error", async () => {
  const error = await assertRejects(() => all(readerOf("hell").body({ kind: "length", length: 5 })), LacewingError);
  assertEquals(error.code, "network");
});

Deno.test("watch() tells when the connection ends, and loses no byte that comes instead", async () => {
  const ended = Promise.withResolvers<void>();
  readerOf("").watch(ended.resolve);
  await ended.promise;
  const reader = readerOf("GET\r\n\r\n");
  reader.watch(() => {
    throw new Error("it goes on");
  });
  assertEquals(await reader.readHead(), "GET");
});
