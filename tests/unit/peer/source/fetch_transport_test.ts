import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { FetchTransport } from "../../../../peer/source/fetch_transport.ts";
import { CONTENT, NEVER, partOf } from "./helpers.ts";
import { RawServer, TestServer } from "./servers.ts";

async function withTransport(run: (transport: FetchTransport) => Promise<void>): Promise<void> {
  const transport = new FetchTransport({ caCerts: [] });
  try {
    await run(transport);
  } finally {
    transport.close();
  }
}

function hasIpv6(): boolean {
  try {
    Deno.listen({ port: 0, hostname: "::1" }).close();
    return true;
  } catch {
    return false;
  }
}

for (const [address, ignore] of [["127.0.0.1", false], ["::1", !hasIpv6()]] as const) {
  Deno.test({
    name: `send() connects to ${address} whatever the URL's name`,
    ignore,
    async fn() {
      await using server = new TestServer((request) => partOf(request), { hostname: address });
      await withTransport(async (transport) => {
        const url = new URL(`http://nowhere.invalid:${server.port}/x`);
        const answer = await transport.send({ url, headers: [["x-a", "1"]], address, signal: NEVER });
        let length = 0;
        for (let bytes = await answer.read(); bytes !== null; bytes = await answer.read()) length += bytes.length;
        assertEquals([answer.status, length], [200, CONTENT.length]);
        assertEquals([await answer.read(), server.requests[0]?.url], [null, url.href]);
      });
    },
  });
}

Deno.test("send() follows no redirect", async () => {
  await using server = new TestServer(() => new Response("", { status: 302, headers: { location: "/b" } }));
  await withTransport(async (transport) => {
    const answer = await transport.send({ url: new URL(server.url()), headers: [], address: null, signal: NEVER });
    assertEquals([answer.status, answer.headers.get("location")], [302, "/b"]);
    await answer.cancel();
    await answer.cancel();
    assertEquals([await answer.read(), server.requests.length], [null, 1]);
  });
});

Deno.test("send() names the host once, with its port, and keeps the connection", async () => {
  await using server = new RawServer(async (write) => {
    await write("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na");
    return "keep";
  });
  await withTransport(async (transport) => {
    for (const name of ["one.invalid", "two.invalid"]) {
      const url = new URL(`http://${name}:${server.port}/x?y`);
      const answer = await transport.send({ url, headers: [], address: "127.0.0.1", signal: NEVER });
      while (await answer.read() !== null);
      const request = server.requests.at(-1) ?? "";
      assert(request.startsWith("GET /x?y HTTP/1.1\r\n"), request);
      assertEquals(request.match(/^host:.*$/gim), [`host: ${name}:${server.port}`]);
    }
    assertEquals(server.connectionCount, 1);
  });
});

Deno.test("send() refuses to pin an address under TLS", async () => {
  await withTransport(async (transport) => {
    const url = new URL("https://origin.test/");
    await assertRejects(() => transport.send({ url, headers: [], address: "127.0.0.1", signal: NEVER }), TypeError);
  });
});

Deno.test("send() rejects with the reason of an abort, before and in the body", async () => {
  await using server = new TestServer(() => new Response(new Uint8Array(5_000_000)));
  await withTransport(async (transport) => {
    const url = new URL(server.url());
    const reason = new Error("enough");
    const send = (signal: AbortSignal) => transport.send({ url, headers: [], address: null, signal });
    assertEquals(await assertRejects(() => send(AbortSignal.abort(reason))), reason);
    const aborted = new AbortController();
    const answer = await send(aborted.signal);
    assert((await answer.read())!.length > 0);
    aborted.abort(reason);
    const error = await assertRejects(async () => {
      while (await answer.read() !== null);
    });
    assertEquals(error, reason);
  });
});

Deno.test("send() fails with network for a port that fetch blocks", async () => {
  await withTransport(async (transport) => {
    const url = new URL("http://127.0.0.1:1/");
    const error = await assertRejects(
      () => transport.send({ url, headers: [], address: null, signal: NEVER }),
      LacewingError,
    );
    assertEquals(error.code, "network");
  });
});

Deno.test("an abort ends a read that waits, however much garbage was collected meanwhile", async () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  await using server = new RawServer(async (write) => {
    await write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
    return "keep";
  });
  await withTransport(async (transport) => {
    const abort = new AbortController();
    const url = new URL(`http://127.0.0.1:${server.port}/x`);
    const answer = await transport.send({ url, headers: [], address: null, signal: abort.signal });
    assertEquals((await answer.read())?.length, 4);
    const reading = assertRejects(() => answer.read(), LacewingError);
    for (let round = 0; round < 5; round++) {
      collect();
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    abort.abort(new LacewingError("timeout", "silent"));
    assertEquals((await reading).code, "timeout");
  });
});
