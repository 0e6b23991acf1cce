import { assert, assertEquals, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { NodeTransport } from "../../../../peer/source/node_transport.ts";
import type { TransportAnswer } from "../../../../peer/source/transport.ts";
import { TEST_CA, TEST_TLS } from "./certificates.ts";
import { ask, CONTENT, failure, makeSource, NEVER, partOf, readAll } from "./helpers.ts";
import { TestServer } from "./servers.ts";

const TLS = { tls: TEST_TLS };
const LOCAL = { lookup: () => Promise.resolve(["127.0.0.1"]) };

async function drain(answer: TransportAnswer): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (let bytes = await answer.read(); bytes !== null; bytes = await answer.read()) parts.push(bytes.slice());
  return new Uint8Array(await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer());
}

async function withTransport(
  config: { caCerts: string[]; insecure: boolean },
  run: (transport: NodeTransport) => Promise<void>,
): Promise<void> {
  const transport = new NodeTransport(config);
  try {
    await run(transport);
  } finally {
    transport.close();
  }
}

Deno.test("send() connects to the given address and checks the certificate for the URL's name", async () => {
  await using server = new TestServer((request) => partOf(request), TLS);
  await withTransport({ caCerts: [TEST_CA], insecure: false }, async (transport) => {
    const url = new URL(`https://origin.test:${server.port}/a?b`);
    const headers = [["range", "bytes=5-9"], ["x-a", "1"], ["x-a", "2"]] as const;
    const answer = await transport.send({ url, headers, address: "127.0.0.1", signal: NEVER });
    assertEquals([answer.status, answer.headers.get("etag")], [206, '"v1"']);
    assertEquals(await drain(answer), CONTENT.slice(5, 10));
    assertEquals(server.requests[0]?.url, `https://origin.test:${server.port}/a?b`);
    assertEquals(server.requests[0]?.headers.get("x-a"), "1, 2");
    const wrong = new URL(`https://other.test:${server.port}/`);
    const error = await assertRejects(
      () => transport.send({ url: wrong, headers: [], address: "127.0.0.1", signal: NEVER }),
      LacewingError,
    );
    assertEquals(error.code, "tls");
  });
});

Deno.test("send() connects to the given address over plain http too", async () => {
  await using server = new TestServer((request) => partOf(request));
  await withTransport({ caCerts: [], insecure: false }, async (transport) => {
    const url = new URL(`http://nowhere.invalid:${server.port}/a?b`);
    const answer = await transport.send({ url, headers: [], address: "127.0.0.1", signal: NEVER });
    assertEquals(await drain(answer), CONTENT);
    assertEquals(server.requests[0]?.url, url.href);
  });
});

Deno.test("send() fails with network where nobody listens, and with the reason of an abort", async () => {
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const url = new URL(`https://origin.test:${(listener.addr as Deno.NetAddr).port}/`);
  listener.close();
  await withTransport({ caCerts: [], insecure: true }, async (transport) => {
    const send = (signal: AbortSignal) => transport.send({ url, headers: [], address: "127.0.0.1", signal });
    assertEquals((await assertRejects(() => send(NEVER), LacewingError)).code, "network");
    const reason = new Error("enough");
    assertEquals(await assertRejects(() => send(AbortSignal.abort(reason))), reason);
  });
});

Deno.test("cancel() in the middle of a body frees the connection", async () => {
  await using server = new TestServer(() => new Response(new Uint8Array(5_000_000)), TLS);
  await withTransport({ caCerts: [], insecure: true }, async (transport) => {
    const url = new URL(`https://origin.test:${server.port}/`);
    const answer = await transport.send({ url, headers: [], address: "127.0.0.1", signal: NEVER });
    assert((await answer.read())!.length > 0);
    await answer.cancel();
    await answer.cancel();
    assertEquals(await answer.read(), null);
  });
});

for (
  const [name, config, outcome] of [
    ["fetch, with the authority", { caCerts: [TEST_CA] }, "read"],
    ["fetch, without the authority", {}, "tls"],
    ["node, insecure", { insecure: true }, "read"],
  ] as const
) {
  Deno.test(`https by ${name}: ${outcome}`, async () => {
    await using server = new TestServer((request) => partOf(request), TLS);
    await using source = makeSource({ ...config, caCerts: [...("caCerts" in config ? config.caCerts : [])] }, LOCAL);
    const url = `https://localhost:${server.port}/x`;
    if (outcome === "tls") {
      await failure("tls", () => ask(source, url));
      assertEquals(server.requests.length, 0);
      return;
    }
    await using body = await ask(source, url, { range: { offset: 10, length: 1000 } });
    assertEquals([body.offset, body.length, body.contentLength], [10, 1000, CONTENT.length]);
    assertEquals(await readAll(body), CONTENT.slice(10, 1010));
  });
}

for (const caCerts of [[TEST_CA], []]) {
  const known = caCerts.length > 0 ? "known" : "unknown";
  Deno.test(`https to a certificate for another name fails with tls, its authority ${known}`, async () => {
    await using server = new TestServer((request) => partOf(request), TLS);
    await using source = makeSource({ caCerts }, LOCAL);
    await failure("tls", () => ask(source, `https://127.0.0.1:${server.port}/`));
  });
}

Deno.test("https to a server that speaks plain http fails with tls", async () => {
  await using server = new TestServer((request) => partOf(request));
  await using source = makeSource({}, LOCAL);
  await failure("tls", () => ask(source, server.url().replace("http:", "https:")));
});

Deno.test("a redirect from https to http is refused with credentials, and followed without", async () => {
  await using plain = new TestServer((request) => partOf(request));
  await using safe = new TestServer(
    () => new Response("", { status: 302, headers: { location: plain.url("/b") } }),
    TLS,
  );
  await using source = makeSource({ caCerts: [TEST_CA] }, LOCAL);
  const url = `https://localhost:${safe.port}/a`;
  for (const headers of [[["Authorization", "Bearer abcdef"]], [["X-Auth-Token", "t"]], [["Cookie", "c"]]] as const) {
    await failure("policy", () => ask(source, url, { headers }));
  }
  await failure("policy", () => ask(source, url.replace("https://", "https://user:pass@")));
  assertEquals(plain.requests.length, 0);
  await using body = await ask(source, url, { headers: [["X-Other", "1"]] });
  assertEquals(await readAll(body), CONTENT);
  assertEquals(plain.requests[0]?.headers.get("x-other"), null);
});

Deno.test("insecure https behind a proxy is refused, with what to do", async () => {
  await using source = makeSource({ insecure: true }, {
    env: (name) => name === "HTTPS_PROXY" ? "http://proxy.test" : undefined,
  });
  const message = await failure("config_invalid", () => ask(source, "https://origin.test/"));
  assert(message.includes("caCerts") && message.includes("NO_PROXY"), message);
});

for (const end of ["cut off by the server", "aborted by the caller"] as const) {
  Deno.test(`a body over node:https that is ${end} is an error, never an early end`, async () => {
    const listener = Deno.listenTls({ port: 0, hostname: "127.0.0.1", ...TEST_TLS });
    const aborted = new AbortController();
    const serving = (async () => {
      const connection = await listener.accept();
      await connection.read(new Uint8Array(10_000));
      await connection.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nhello"));
      if (end === "aborted by the caller") await connection.read(new Uint8Array(1)).catch(() => null);
      connection.close();
    })();
    await withTransport({ caCerts: [TEST_CA], insecure: false }, async (transport) => {
      const url = new URL(`https://origin.test:${(listener.addr as Deno.NetAddr).port}/`);
      const answer = await transport.send({ url, headers: [], address: "127.0.0.1", signal: aborted.signal });
      assertEquals(new TextDecoder().decode(await answer.read() ?? undefined), "hello");
      const reason = new Error("enough");
      if (end === "aborted by the caller") aborted.abort(reason);
      const error = await assertRejects(() => drain(answer));
      if (end === "aborted by the caller") assertEquals(error, reason);
      else assertEquals(error instanceof LacewingError && error.code, "network");
      await answer.cancel();
    });
    await serving;
    listener.close();
  });
}
