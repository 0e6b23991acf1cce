// covers: peer/source/source.ts
import { assert, assertEquals } from "@std/assert";
import type { SourceRequest } from "../../../../peer/source/source.ts";
import { VERSION } from "../../../../peer/core/version.ts";
import { ask, CONTENT, failure, HastyClock, makeSource, partOf, readAll } from "./helpers.ts";
import { RawServer, TestServer } from "./servers.ts";

Deno.test("open() reads a whole content with its length and version", async () => {
  await using server = new TestServer((request) => partOf(request));
  await using source = makeSource();
  await using body = await ask(source, server.url("/a?b=c#d"));
  assertEquals(
    [body.contentLength, body.length, body.offset, body.ranges, body.version],
    [CONTENT.length, CONTENT.length, 0, true, { etag: '"v1"' }],
  );
  assertEquals(await readAll(body), CONTENT);
  assertEquals(await body.read(), null);
  assertEquals(server.requests[0]?.url, server.url("/a?b=c"));
});

Deno.test("open() sends its own user agent, identity encoding and no range unless told so", async () => {
  await using server = new TestServer((request) => partOf(request));
  await using source = makeSource();
  const seen = async (headers: SourceRequest["headers"]) => {
    await using body = await ask(source, server.url(), { headers });
    await readAll(body);
    return Object.fromEntries(server.requests.at(-1)!.headers);
  };
  const plain = await seen([]);
  assertEquals([plain["user-agent"], plain["accept-encoding"], plain.range], [
    `lacewing/${VERSION}`,
    "identity",
    undefined,
  ]);
  const given = await seen([["User-Agent", "mine"], ["Accept-Encoding", "gzip"], ["X-A", "1"], ["Accept", "a/b"]]);
  assertEquals([given["user-agent"], given["accept-encoding"], given["x-a"], given.accept], [
    "mine",
    "identity",
    "1",
    "a/b",
  ]);
});

for (
  const [status, code] of [
    [400, "source_failed"],
    [401, "source_refused"],
    [403, "source_refused"],
    [404, "source_not_found"],
    [410, "source_not_found"],
    [418, "source_failed"],
  ] as const
) {
  Deno.test(`open() fails with ${code} on ${status}, at once`, async () => {
    await using server = new TestServer(() => new Response("no", { status }));
    await using source = makeSource();
    const message = await failure(code, () => ask(source, server.url("/secret?token=abc")));
    assert(message.includes(String(status)) && !message.includes("abc"), message);
    assertEquals(server.requests.length, 1);
  });
}

for (const status of [408, 429, 500, 502, 503, 504]) {
  Deno.test(`open() tries again after ${status}, with growing pauses`, async () => {
    await using server = new TestServer((request, index) => index < 3 ? new Response("", { status }) : partOf(request));
    const clock = new HastyClock();
    await using source = makeSource({}, { clock });
    await using body = await ask(source, server.url());
    assertEquals(await readAll(body), CONTENT);
    assertEquals(clock.sleeps, [150, 300, 600]);
  });

  Deno.test(`open() fails with source_failed when ${status} stays`, async () => {
    await using server = new TestServer(() => new Response("x".repeat(100), { status }));
    await using source = makeSource({ retries: 2 }, { clock: new HastyClock() });
    await failure("source_failed", () => ask(source, server.url()));
    assertEquals(server.requests.length, 3);
  });
}

for (
  const [value, pauses] of [
    ["7", [7000]],
    ["0", [0]],
    ["Thu, 01 Jan 1970 00:00:25 GMT", [25_000]],
    ["soon", [150]],
    ["-1", [150]],
  ] as const
) {
  Deno.test(`open() waits as Retry-After: ${value} says`, async () => {
    await using server = new TestServer((request, index) =>
      index === 0 ? new Response("", { status: 429, headers: { "retry-after": value } }) : partOf(request)
    );
    const clock = new HastyClock();
    await using source = makeSource({}, { clock, now: () => 0 });
    await using body = await ask(source, server.url());
    await readAll(body);
    assertEquals(clock.sleeps, [...pauses]);
  });
}

for (const value of ["31", "Thu, 01 Jan 1970 00:01:00 GMT"]) {
  Deno.test(`open() does not wait for Retry-After: ${value}`, async () => {
    await using server = new TestServer(() => new Response("", { status: 503, headers: { "retry-after": value } }));
    await using source = makeSource({}, { clock: new HastyClock(), now: () => 0 });
    const message = await failure("source_failed", () => ask(source, server.url()));
    assert(message.includes("asks to wait"), message);
    assertEquals(server.requests.length, 1);
  });
}

Deno.test("open() tries again when the connection breaks before the answer, and never after the first byte", async () => {
  let count = 0;
  await using server = new RawServer(async (write) => {
    count += 1;
    if (count > 2) await write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello");
  });
  await using source = makeSource({}, { clock: new HastyClock() });
  await using body = await ask(source, server.url());
  await failure("network", () => readAll(body));
  assertEquals(count, 3);
});

for (const status of [301, 302, 303, 307, 308]) {
  Deno.test(`open() follows ${status} with range and headers to the same origin`, async () => {
    await using server = new TestServer((request) =>
      new URL(request.url).pathname === "/a"
        ? new Response("moved", { status, headers: { location: "b?c#d" } })
        : partOf(request)
    );
    await using source = makeSource();
    const headers = [["Authorization", "Bearer abcdef"], ["X-Custom", "1"]] as const;
    await using body = await ask(source, server.url("/a"), { headers, range: { offset: 5, length: 5 } });
    assertEquals(await readAll(body), CONTENT.slice(5, 10));
    const last = server.requests[1];
    assertEquals(last?.url, server.url("/b?c"));
    assertEquals([last?.headers.get("authorization"), last?.headers.get("x-custom")], ["Bearer abcdef", "1"]);
  });
}

Deno.test("open() takes no header of the caller to another port, and none back", async () => {
  await using home = new TestServer((request) =>
    request.url.endsWith("/back")
      ? partOf(request)
      : new Response("", { status: 302, headers: { location: foreign.url("/b") } })
  );
  await using foreign: TestServer = new TestServer(() =>
    new Response("", { status: 302, headers: { location: home.url("/back") } })
  );
  await using source = makeSource();
  const headers = [
    ["Authorization", "Bearer abcdef"],
    ["Cookie", "a=b"],
    ["Proxy-Authorization", "Basic x"],
    ["X-Api-Key", "k"],
    ["X-Other", "o"],
    ["Accept", "a/b"],
    ["User-Agent", "mine"],
  ] as const;
  await using body = await ask(source, home.url("/a"), { headers });
  await readAll(body);
  assertEquals(home.requests[0]?.headers.get("authorization"), "Bearer abcdef");
  for (const request of [foreign.requests[0], home.requests[1]]) {
    const names = [...request!.headers.keys()].sort();
    assertEquals(names, ["accept", "accept-encoding", "accept-language", "host", "user-agent"]);
    assertEquals([request!.headers.get("accept"), request!.headers.get("user-agent")], ["a/b", "mine"]);
  }
});

Deno.test("open() turns user info into Basic credentials for its own origin alone", async () => {
  await using foreign = new TestServer((request) => partOf(request));
  await using home = new TestServer((_request, index) =>
    new Response("", { status: 302, headers: { location: index === 0 ? "/b" : foreign.url() } })
  );
  await using source = makeSource();
  const url = home.url("/a").replace("http://", "http://us%C3%A9r:p%40ss@");
  await using body = await ask(source, url);
  await readAll(body);
  const basic = `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode("us\u00e9r:p@ss")))}`;
  assertEquals(home.requests.map(({ headers }) => headers.get("authorization")), [basic, basic]);
  assertEquals(foreign.requests[0]?.headers.get("authorization"), null);
  assert(!home.requests.some(({ url }) => url.includes("@")));
});

Deno.test("open() names a redirect loop", async () => {
  await using server: TestServer = new TestServer((request) => {
    const path = new URL(request.url).pathname;
    return new Response("", { status: 302, headers: { location: path === "/b" ? "/c" : "/b" } });
  });
  await using source = makeSource();
  const message = await failure("source_failed", () => ask(source, server.url("/a?token=abc")));
  assert(/loop.*\/b to .*\/c to .*\/b/.test(message) && !message.includes("abc"), message);
  assertEquals(server.requests.length, 3);
});

Deno.test("open() follows ten redirects and not eleven", async () => {
  await using server = new TestServer((request) => {
    const count = Number(new URL(request.url).searchParams.get("n"));
    return count === 0 ? partOf(request) : new Response("", { status: 302, headers: { location: `/?n=${count - 1}` } });
  });
  await using source = makeSource();
  await using body = await ask(source, server.url("/?n=10"));
  await readAll(body);
  assertEquals(server.requests.length, 11);
  await failure("source_failed", () => ask(source, server.url("/?n=11")));
});

for (
  const [expect, headers, change] of [
    [{ etag: '"v1"' }, { etag: '"v1"' }, null],
    [{ etag: '"v1"' }, { etag: '"v2"' }, "ETag"],
    [{ etag: '"v1"' }, { etag: 'W/"v1"' }, "ETag"],
    [{ etag: '"v1"' }, {}, "ETag"],
    [{ lastModified: "Mon, 01 Jan 2024 00:00:00 GMT" }, { "last-modified": "Mon, 01 Jan 2024 00:00:00 GMT" }, null],
    [
      { lastModified: "Mon, 01 Jan 2024 00:00:00 GMT" },
      { "last-modified": "Tue, 02 Jan 2024 00:00:00 GMT" },
      "Last-Modified",
    ],
    [
      { etag: '"v1"', lastModified: "Mon, 01 Jan 2024 00:00:00 GMT" },
      { etag: '"v1"', "last-modified": "Tue, 02 Jan 2024 00:00:00 GMT" },
      null,
    ],
    [{}, { etag: '"v9"' }, null],
  ] as const
) {
  const given = JSON.stringify(headers);
  Deno.test(`open() expecting ${JSON.stringify(expect)} ${change === null ? "takes" : "refuses"} ${given}`, async () => {
    await using server = new TestServer(() => new Response("content", { headers }));
    await using source = makeSource();
    if (change !== null) {
      const message = await failure("content_changed", () => ask(source, server.url(), { expect }));
      assert(message.includes(change), message);
      return;
    }
    await using body = await ask(source, server.url(), { expect });
    assertEquals((await readAll(body)).length, 7);
  });
}
