// covers: peer/source/http_source.ts
import { assert, assertEquals, assertRejects } from "@std/assert";
import { ask, CONTENT, failure, HastyClock, makeSource, mapArguments, partOf, readAll } from "./helpers.ts";
import { closedByPeer, RawServer, TestServer } from "./servers.ts";

Deno.test("open() fails with timeout when a connected origin never answers", async () => {
  await using server = new RawServer((_write, _request, connection) => closedByPeer(connection));
  await using source = makeSource({ idleTimeoutMs: 80, connectTimeoutMs: 30 });
  assert((await failure("timeout", () => ask(source, server.url()))).includes("no answer within"));
});

Deno.test("open() fails with timeout when the body of a redirect stalls", async () => {
  await using server = new RawServer(async (write, _request, connection) => {
    await write("HTTP/1.1 302 Found\r\nlocation: /b\r\ncontent-length: 10\r\n\r\nhel");
    await closedByPeer(connection);
  });
  await using source = makeSource({ idleTimeoutMs: 60 });
  await failure("source_failed", () => ask(source, server.url("/b")));
});

Deno.test("open() rejects at once when the signal is aborted already", async () => {
  await using source = makeSource();
  const reason = new Error("enough");
  assertEquals(await assertRejects(() => ask(source, "http://origin.test/", {}, AbortSignal.abort(reason))), reason);
});

Deno.test("open() fails with network where nobody listens, after its retries", async () => {
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  const clock = new HastyClock();
  await using source = makeSource({}, { clock });
  const message = await failure("network", () => ask(source, `http://127.0.0.1:${port}/a?token=secret`));
  assert(message.startsWith(`Cannot reach 127.0.0.1:${port}: `) && !message.includes("secret"), message);
  assertEquals(clock.sleeps.length, 3);
});

Deno.test("open() fails with network for a name that does not resolve", async () => {
  const lookup = () => Promise.reject(Object.assign(new Error("getaddrinfo"), { code: "ENOTFOUND" }));
  await using source = makeSource({ retries: 0 }, { lookup });
  const message = await failure("network", () => ask(source, "http://nowhere.invalid:81/"));
  assert(message.startsWith("Cannot reach nowhere.invalid:81: "), message);
});

Deno.test("open() goes on to the next address of a name when one is dead", async () => {
  await using server = new TestServer((request) => partOf(request));
  const lookup = () => Promise.resolve(["127.0.0.9", "127.0.0.1"]);
  await using source = makeSource({ retries: 0 }, { lookup });
  await using body = await ask(source, server.url("/", "origin.test"));
  assertEquals((await readAll(body)).length, CONTENT.length);
  assertEquals(new URL(server.requests[0]!.url).host, `origin.test:${server.port}`);
});

for (const address of ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "fd00:ec2::254"]) {
  Deno.test(`open() refuses ${address}, given or resolved, even where private networks are allowed`, async () => {
    const lookup = () => Promise.resolve(["127.0.0.1", address]);
    await using source = makeSource({}, { lookup });
    const host = address.includes(":") ? `[${address}]` : address;
    for (const scheme of ["http", "https"]) {
      await failure("policy", () => ask(source, `${scheme}://${host}/latest/meta-data`));
      await failure("policy", () => ask(source, `${scheme}://metadata.test/`));
    }
  });
}

Deno.test("open() refuses a redirect to a refused address", async () => {
  await using server = new TestServer(() =>
    new Response("", { status: 302, headers: { location: "http://169.254.169.254/latest" } })
  );
  await using source = makeSource();
  await failure("policy", () => ask(source, server.url()));
});

for (
  const url of ["http://127.0.0.1:9/", "http://[::1]:9/", "http://0x7f.1/", "http://2130706433/", "http://10.1.2.3/"]
) {
  Deno.test(`open() refuses ${url} where private networks are not allowed`, async () => {
    await using source = makeSource({ allowPrivateNetworks: false });
    await failure("policy", () => ask(source, url));
  });
}

Deno.test("open() connects to the address it has judged, whatever the name says later", async () => {
  await using server = new TestServer((request) => partOf(request));
  let count = 0;
  const lookup = () => Promise.resolve([count++ === 0 ? "127.0.0.1" : "169.254.169.254"]);
  await using source = makeSource({}, { lookup });
  await using body = await ask(source, server.url("/", "changing.test"));
  await readAll(body);
  assertEquals([count, server.requests.length], [1, 1]);
});

for (
  const [headers, named] of [
    [[["Range", "bytes=0-1"]], "Range"],
    [[["host", "other"]], "host"],
    [[["Content-Length", "5"]], "Content-Length"],
    [[["If-None-Match", "*"]], "If-None-Match"],
    [[["Transfer-Encoding", "chunked"]], "Transfer-Encoding"],
    [[["a b", "x"]], "a b"],
    [[["", "x"]], '""'],
    [[["X-A", "secret\r\nX-B: 1"]], "X-A"],
    [[["X-A", "secret\0"]], "X-A"],
    [[["X-A", "secret\u20ac"]], "X-A"],
  ] as const
) {
  Deno.test(`open() refuses header ${JSON.stringify(headers[0])} by name`, async () => {
    await using source = makeSource();
    const message = await failure("usage", () => ask(source, "http://origin.test/", { headers }));
    assert(message.includes(named) && !message.includes("secret"), message);
  });
}

for (const url of ["", "no url", "ftp://origin.test/", "file:///etc/passwd", "http://"]) {
  Deno.test(`open() refuses URL ${JSON.stringify(url)}`, async () => {
    await using source = makeSource();
    await failure("usage", () => ask(source, url));
  });
}

Deno.test("plain http goes through the environment's proxy, which then resolves the name, but for NO_PROXY", async () => {
  // fetch reads the environment once a process: a child shows it.
  await using proxy = new RawServer((write, request) =>
    write(`HTTP/1.1 200 OK\r\ncontent-length: 3\r\nx-line: ${request.split("\r\n")[0]}\r\n\r\nabc`)
  );
  await using origin = new TestServer(() => new Response("direct"));
  const url = `http://127.0.0.1:${proxy.port}`;
  const code = `
    import { createHttpSource } from ${JSON.stringify(import.meta.resolve("../../../../peer/source/http_source.ts"))};
    import { systemClock } from ${JSON.stringify(import.meta.resolve("../../../../peer/core/clock.ts"))};
    const config = { caCerts: [], insecure: false, allowPrivateNetworks: true };
    const source = createHttpSource({ config, clock: systemClock, random: Math.random });
    const signal = new AbortController().signal;
    const urls = ["http://only-the-proxy-knows.test/x", "http://169.254.169.254/x", ${
    JSON.stringify(origin.url("/", "localhost"))
  }];
    for (const url of urls) {
      try {
        await using body = await source.open({ url, headers: [], range: null }, { signal });
        console.log(body.length);
      } catch (error) { console.log(error.code); }
    }
    await source[Symbol.asyncDispose]();`;
  const output = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--quiet", ...mapArguments(), code],
    env: { HTTP_PROXY: url, http_proxy: url, NO_PROXY: "localhost", no_proxy: "localhost" },
  }).output();
  assertEquals(new TextDecoder().decode(output.stdout), "3\npolicy\n6\n", new TextDecoder().decode(output.stderr));
  assert(proxy.requests[0]?.startsWith("GET http://only-the-proxy-knows.test/x HTTP/1.1\r\n"), proxy.requests[0]);
});

Deno.test({
  name: "open() tells a host that takes no connection from one that is slow to answer",
  ignore: Deno.build.os !== "linux",
  async fn() {
    // A full backlog drops further connections without a word, as a dead host does.
    const listener = Deno.listen({ port: 0, hostname: "127.0.0.1", tcpBacklog: 1 });
    const { port } = listener.addr as Deno.NetAddr;
    const waiting = [await Deno.connect({ port }), await Deno.connect({ port })];
    await using source = makeSource({ connectTimeoutMs: 50 });
    const message = await failure("timeout", () => ask(source, `http://127.0.0.1:${port}/`));
    assert(message.includes("no connection within"), message);
    for (const connection of waiting) connection.close();
    listener.close();
  },
});
