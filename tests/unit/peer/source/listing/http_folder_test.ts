/** Folders of an HTTP origin, over real connections. */
// covers: peer/source/listing/http_folder.ts
import { assert, assertEquals } from "@std/assert";
import { SourceRegistry } from "../../../../../peer/source/sources.ts";
import type { ListRequest } from "../../../../../peer/source/listing/listing.ts";
import type { Source } from "../../../../../peer/source/source.ts";
import { failure, HastyClock, makeSource, NEVER } from "../helpers.ts";
import { RawServer, TestServer } from "../servers.ts";

const HTML = { "content-type": "text/html" };
const PAGE = '<a href="../">up</a><a href="f.txt">f</a><a href="d/">d</a>';

function listOf(source: Source, url: string, request: Partial<ListRequest> = {}) {
  return source.list!({ url, headers: [], start: null, ...request }, { signal: NEVER });
}

Deno.test("list() gives the entries of a page, and asks for it as who takes JSON too", async () => {
  await using server = new TestServer(() => new Response(PAGE, { headers: HTML }));
  await using source = makeSource();
  const listing = await listOf(source, server.url("/a/"), { headers: [["x-key", "v"]] });
  const folder = server.url("/a/");
  assertEquals([listing.url, listing.start, listing.style], [folder, folder, "page"]);
  assertEquals(listing.entries.map(({ url }) => url), [`${folder}f.txt`, `${folder}d/`]);
  const [request] = server.requests;
  assert(request?.headers.get("accept")?.includes("application/json"));
  assertEquals(request?.headers.get("x-key"), "v");
  await listOf(source, server.url("/a/"), { headers: [["Accept", "text/html"]] });
  assertEquals(server.requests[1]?.headers.get("accept"), "text/html");
});

Deno.test("list() takes the folder that the first URL redirects to as the start", async () => {
  await using server = new TestServer((request) =>
    new URL(request.url).pathname === "/a"
      ? new Response(null, { status: 301, headers: { location: "/a/" } })
      : new Response(PAGE, { headers: HTML })
  );
  await using source = makeSource();
  const listing = await listOf(source, server.url("/a"));
  assertEquals([listing.url, listing.start], [server.url("/a/"), server.url("/a/")]);
  const page = await listOf(source, server.url("/b/index.html?x=1"));
  assertEquals([page.url, page.start, page.entries.length], [server.url("/b/"), server.url("/b/"), 2]);
});

for (const location of ["/", "/other/", "http://localhost:1/a/b/"]) {
  Deno.test(`list() refuses a folder that redirects to ${location}, out of the start`, async () => {
    await using server = new TestServer((request) =>
      new URL(request.url).pathname === "/a/b/"
        ? new Response(null, { status: 302, headers: { location } })
        : new Response(PAGE, { headers: HTML })
    );
    await using source = makeSource({ retries: 0 });
    const code = location.startsWith("http") ? "network" : "policy";
    const message = await failure(code, () => listOf(source, server.url("/a/b/"), { start: server.url("/a/") }));
    if (code === "policy") assert(message.includes("outside"), message);
  });
}

const DAV = (path: string) =>
  `<multistatus xmlns="DAV:"><response><href>${path}</href><propstat><prop><resourcetype><collection/></resourcetype></prop></propstat></response>` +
  `<response><href>${path}f</href><propstat><prop><resourcetype/><getcontentlength>3</getcontentlength></prop></propstat></response></multistatus>`;

for (const status of [403, 404, 405, 501]) {
  Deno.test(`list() asks for WebDAV properties where GET gives ${status}, and first for them afterwards`, async () => {
    const methods: string[] = [];
    await using server = new TestServer(async (request) => {
      methods.push(`${request.method} ${request.headers.get("depth")}`);
      if (request.method === "GET") return new Response("no", { status });
      assert((await request.text()).includes('xmlns="DAV:"'));
      return new Response(DAV("/dav/"), { status: 207, headers: { "content-type": "text/xml" } });
    });
    await using source = makeSource();
    const listing = await listOf(source, server.url("/dav/"));
    assertEquals(listing.entries.map(({ url, size }) => [url, size]), [[server.url("/dav/f"), 3]]);
    await listOf(source, server.url("/dav/"), { style: listing.style });
    assertEquals(methods, ["GET null", "PROPFIND 1", "PROPFIND 1"]);
  });
}

Deno.test("list() keeps the method and the body of a PROPFIND that is redirected", async () => {
  await using server = new TestServer((request) => {
    if (request.method === "GET") return new Response(null, { status: 403 });
    const { pathname } = new URL(request.url);
    if (pathname === "/dav") return new Response(null, { status: 301, headers: { location: "/dav/" } });
    return new Response(DAV("/dav/"), { status: 207, headers: { "content-type": "application/xml" } });
  });
  await using source = makeSource();
  assertEquals((await listOf(source, server.url("/dav"))).url, server.url("/dav/"));
});

const FAULTS: [status: number, code: Parameters<typeof failure>[0]][] = [
  [401, "source_refused"],
  [403, "source_refused"],
  [404, "source_not_found"],
  [405, "source_failed"],
  [500, "source_failed"],
  [501, "source_failed"],
];
for (const [status, code] of FAULTS) {
  Deno.test(`list() says what ${status} means`, async () => {
    await using server = new TestServer(() => new Response("no", { status }));
    await using source = makeSource({ retries: 1 }, { clock: new HastyClock() });
    const message = await failure(code, () => listOf(source, server.url("/a/")));
    assert(message.includes(String(status)), message);
  });
}

Deno.test("list() says that a file is no folder, without reading it", async () => {
  await using server = new TestServer((request) =>
    request.method === "GET"
      ? new Response(new ReadableStream({ pull: (body) => body.enqueue(new Uint8Array(1024)) }), {
        headers: { "content-type": "application/octet-stream" },
      })
      : new Response("no", { status: 405 })
  );
  await using source = makeSource();
  const message = await failure("usage", () => listOf(source, server.url("/a/file.bin?sig=1")));
  assert(/file\.bin: it is no folder page but application\/octet-stream; leave out --recursive/.test(message), message);
});

for (const [type, text] of [["application/json", '{"a":1}'], ["application/xml", "<rss/>"], ["text/plain", PAGE]]) {
  Deno.test(`list() sees that ${text} as ${type} is no listing`, async () => {
    await using server = new TestServer((request) =>
      new Response(request.method === "GET" ? text : "no", {
        status: request.method === "GET" ? 200 : 405,
        headers: { "content-type": type! },
      })
    );
    await using source = makeSource();
    await failure("usage", () => listOf(source, server.url("/a/")));
  });
}

Deno.test("list() asks again where a connection breaks in the page or the server is busy", async () => {
  let count = 0;
  await using server = new RawServer(async (write) => {
    count += 1;
    const whole = `HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: ${PAGE.length}\r\n\r\n${PAGE}`;
    if (count === 1) return await write(whole.slice(0, -5));
    if (count === 2) return await write("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n");
    await write(whole);
  });
  await using source = makeSource({}, { clock: new HastyClock() });
  assertEquals((await listOf(source, server.url("/a/"))).entries.length, 2);
  assertEquals(count, 3);
});

Deno.test("list() sends the caller's headers to no other origin", async () => {
  await using other = new TestServer(() => new Response(PAGE, { headers: HTML }));
  await using server = new TestServer(() =>
    new Response(null, { status: 302, headers: { location: other.url("/a/", "localhost") } })
  );
  await using source = makeSource();
  await listOf(source, server.url("/"), { headers: [["authorization", "Bearer secret"]] });
  assertEquals(other.requests[0]?.headers.get("authorization"), null);
});

Deno.test("list() of a scheme that has no folders names the schemes that have", async () => {
  const open = () => Promise.reject(new Error("not asked"));
  const list = () => Promise.reject(new Error("not asked"));
  const registry = new SourceRegistry(new Map<string, Source>([["a", { open, list }], ["b", { open }]]));
  const message = await failure("usage", () => listOf(registry, "b://x/"));
  assertEquals(message, "Cannot list folders of b: only those of a");
  await failure("usage", () => listOf(registry, "c://x/"));
});
