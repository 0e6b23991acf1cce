import { assert, assertEquals, assertRejects } from "@std/assert";
import { gzipSync } from "node:zlib";
import { systemClock } from "../../../../peer/core/clock.ts";
import type { ErrorCode } from "../../../../peer/core/errors.ts";
import { ask, CONTENT, failure, HastyClock, makeSource, partOf, readAll } from "./helpers.ts";
import { closedByPeer, RawServer, TestServer } from "./servers.ts";

for (
  const [offset, length, got] of [
    [0, 10, 10],
    [99_990, 10, 10],
    [99_990, 1000, 10],
    [50_000, 20_000, 20_000],
    [0, 100_000, 100_000],
  ] as const
) {
  Deno.test(`open() reads ${length} B at ${offset} of 100,000`, async () => {
    await using server = new TestServer((request) => partOf(request));
    await using source = makeSource();
    await using body = await ask(source, server.url(), { range: { offset, length } });
    assertEquals([body.contentLength, body.offset, body.length, body.ranges], [100_000, offset, got, true]);
    assertEquals(await readAll(body), CONTENT.slice(offset, offset + length));
  });
}

for (const [offset, length] of [[0, 0], [-1, 5], [0.5, 1], [0, Infinity], [NaN, 1]] as const) {
  Deno.test(`open() throws on a range of ${length} B at ${offset}`, async () => {
    await using source = makeSource();
    await assertRejects(() => ask(source, "http://origin.test/", { range: { offset, length } }), RangeError);
  });
}

Deno.test("open() keeps the connection for the next request, also when the end was not read", async () => {
  const head = "HTTP/1.1 206 Partial Content\r\ncontent-length: 4\r\ncontent-range: bytes 0-3/4\r\n\r\n";
  await using server = new RawServer(async (write) => {
    await write(`${head}abcd`);
    return "keep";
  });
  await using source = makeSource();
  for (let round = 0; round < 5; round++) {
    await using body = await ask(source, server.url("/", "localhost"), { range: { offset: 0, length: 4 } });
    for (let count = 0; count < 4;) count += (await body.read())?.length ?? 4;
  }
  assertEquals([server.requests.length, server.connectionCount], [5, 1]);
});

Deno.test("open() gives the content without ranges when the origin ignores them", async () => {
  await using server = new TestServer(() => new Response(CONTENT.slice(), { headers: { "accept-ranges": "bytes" } }));
  await using source = makeSource();
  await using body = await ask(source, server.url(), { range: { offset: 500, length: 100 } });
  assertEquals([body.offset, body.length, body.contentLength, body.ranges], [0, 100_000, 100_000, false]);
  assertEquals(await readAll(body), CONTENT);
});

Deno.test("open() reads a chunked content whose length nobody says", async () => {
  await using server = new TestServer(() =>
    new Response(ReadableStream.from([CONTENT.slice(0, 70_000), CONTENT.slice(70_000)]), {
      headers: { "last-modified": "Mon, 01 Jan 2024 00:00:00 GMT" },
    })
  );
  await using source = makeSource();
  await using body = await ask(source, server.url());
  assertEquals([body.contentLength, body.length, body.version], [null, null, {}]);
  assertEquals(await readAll(body), CONTENT);
});

for (const range of [null, { offset: 0, length: 1000 }]) {
  Deno.test(`open() gives an empty content ${range === null ? "as a whole" : "to a range, by 200 and by 416"}`, async () => {
    await using server = new TestServer((request, index) =>
      index === 0 ? new Response("", { headers: { "content-length": "0" } }) : partOf(request, new Uint8Array(0))
    );
    await using source = makeSource();
    for (const _ of [1, 2]) {
      await using body = await ask(source, server.url(), { range });
      assertEquals([body.contentLength, body.length, body.offset], [0, 0, 0]);
      assertEquals((await readAll(body)).length, 0);
    }
  });
}

Deno.test("open() names the length when the range lies beyond the content", async () => {
  await using server = new TestServer((request) => partOf(request));
  await using source = makeSource();
  const message = await failure(
    "range_not_satisfiable",
    () => ask(source, server.url(), { range: { offset: 100_000, length: 1 } }),
  );
  assert(message.includes("100000 B"), message);
});

for (const withRange of [false, true]) {
  Deno.test(`open() gives gzip bytes as they were sent, ${withRange ? "with" : "without"} a range`, async () => {
    const zipped = gzipSync(CONTENT);
    await using server = new RawServer(async (write, request) => {
      const part = /range: bytes=5-104\r/i.test(request) ? zipped.subarray(5, 105) : zipped;
      const status = part === zipped ? "200 OK" : "206 Partial Content";
      const range = part === zipped ? "" : `content-range: bytes 5-104/${zipped.length}\r\n`;
      await write(`HTTP/1.1 ${status}\r\ncontent-encoding: gzip\r\ncontent-length: ${part.length}\r\n${range}\r\n`);
      await write(part);
    });
    await using source = makeSource();
    const range = withRange ? { offset: 5, length: 100 } : null;
    await using body = await ask(source, server.url(), { range });
    assertEquals(body.contentLength, zipped.length);
    assertEquals(await readAll(body), new Uint8Array(withRange ? zipped.subarray(5, 105) : zipped));
  });
}

const FAULTY: [claim: string, code: ErrorCode, answer: string][] = [
  ["a body shorter than its Content-Length", "network", "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nhello"],
  ["a chunked body that is cut off", "network", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"],
  ["an answer that is no HTTP", "network", "hello\r\n\r\n"],
  ["no answer at all", "network", ""],
  ["two lengths", "network", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd"],
  ["a 206 to no range", "source_failed", "HTTP/1.1 206 P\r\ncontent-length: 1\r\ncontent-range: bytes 0-0/1\r\n\r\na"],
  ["a 204", "source_failed", "HTTP/1.1 204 No Content\r\n\r\n"],
  ["a 304", "source_failed", "HTTP/1.1 304 Not Modified\r\n\r\n"],
  ["a redirect without a place", "source_failed", "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n"],
  ["a redirect to another scheme", "source_failed", "HTTP/1.1 302 Found\r\nlocation: file:///etc/passwd\r\n\r\n"],
];

for (const [claim, code, answer] of FAULTY) {
  Deno.test(`reading fails with ${code} on ${claim}`, async () => {
    await using server = new RawServer((write) => write(answer));
    await using source = makeSource({}, { clock: new HastyClock() });
    await failure(code, async () => {
      await using body = await ask(source, server.url());
      await readAll(body);
    });
  });
}

const FAULTY_PARTS: [claim: string, answer: string][] = [
  ["another start", "content-range: bytes 11-19/100\r\ncontent-length: 9\r\n\r\n123456789"],
  ["no Content-Range", "content-length: 10\r\n\r\n1234567890"],
  ["a Content-Range that cannot be read", "content-range: 10-19\r\ncontent-length: 10\r\n\r\n1234567890"],
  ["more than was asked for", "content-range: bytes 10-20/100\r\ncontent-length: 11\r\n\r\n12345678901"],
  ["less than was asked for", "content-range: bytes 10-18/100\r\ncontent-length: 9\r\n\r\n123456789"],
  ["an end before its start", "content-range: bytes 10-9/100\r\ncontent-length: 0\r\n\r\n"],
  ["an end behind the content", "content-range: bytes 10-19/15\r\ncontent-length: 10\r\n\r\n1234567890"],
  ["another Content-Length", "content-range: bytes 10-19/100\r\ncontent-length: 9\r\n\r\n123456789"],
  ["several parts", "content-type: multipart/byteranges; boundary=x\r\ncontent-length: 3\r\n\r\n--x"],
];

for (const [claim, rest] of FAULTY_PARTS) {
  Deno.test(`open() refuses a 206 with ${claim}`, async () => {
    await using server = new RawServer((write) => write(`HTTP/1.1 206 Partial Content\r\n${rest}`));
    await using source = makeSource();
    await failure("source_failed", () => ask(source, server.url(), { range: { offset: 10, length: 10 } }));
    assertEquals(server.requests.length, 1);
  });
}

Deno.test("reading fails on a chunked 206 with more bytes than its Content-Range", async () => {
  await using server = new RawServer((write) =>
    write(
      "HTTP/1.1 206 P\r\ncontent-range: bytes 0-2/9\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    )
  );
  await using source = makeSource();
  await using body = await ask(source, server.url(), { range: { offset: 0, length: 3 } });
  assert((await failure("network", () => readAll(body))).includes("goes on"));
});

Deno.test("open() gives only the announced bytes of a body that goes on", async () => {
  await using server = new RawServer((write) => write("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhello"));
  await using source = makeSource();
  await using body = await ask(source, server.url());
  assertEquals(new TextDecoder().decode(await readAll(body)), "hel");
});

Deno.test("reading fails with timeout when no byte comes, and says how many came before", async () => {
  await using server = new RawServer(async (write, _request, connection) => {
    await write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello");
    await closedByPeer(connection);
  });
  await using source = makeSource({ idleTimeoutMs: 60, retries: 3 });
  await using body = await ask(source, server.url());
  const message = await failure("timeout", () => readAll(body));
  assert(message.includes("after 5 B"), message);
  assertEquals(server.requests.length, 1);
});

Deno.test("a slow reader is no timeout", async () => {
  await using server = new TestServer((request) => partOf(request));
  await using source = makeSource({ idleTimeoutMs: 40 });
  await using body = await ask(source, server.url());
  let total = 0;
  for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) {
    total += bytes.length;
    if (total === bytes.length) await systemClock.sleep(120);
  }
  assertEquals(total, CONTENT.length);
});

for (const phase of ["before the answer", "in the body", "between two tries"] as const) {
  Deno.test(`an abort ${phase} rejects with the signal's own reason and closes the connection`, async () => {
    const aborted = new AbortController();
    const reason = new Error("enough");
    const closed = Promise.withResolvers<void>();
    await using server = new RawServer(async (write, _request, connection) => {
      if (phase === "in the body") await write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello");
      if (phase === "between two tries") {
        await write("HTTP/1.1 503 Busy\r\nretry-after: 20\r\ncontent-length: 0\r\n\r\n");
        return closed.resolve();
      }
      if (phase === "before the answer") aborted.abort(reason);
      await closedByPeer(connection);
      closed.resolve();
    });
    await using source = makeSource();
    const reading = (async () => {
      await using body = await ask(source, server.url(), {}, aborted.signal);
      await body.read();
      aborted.abort(reason);
      await body.read();
    })();
    if (phase === "between two tries") closed.promise.then(() => aborted.abort(reason));
    assertEquals(await assertRejects(() => reading), reason);
    await closed.promise;
  });
}
