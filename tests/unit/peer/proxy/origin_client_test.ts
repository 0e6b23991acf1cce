// covers: peer/proxy/origin_link.ts
/** Requests over real sockets of loopback: kept connections, timeouts, TLS, proxies of the environment. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { type OriginAnswer, OriginClient } from "../../../../peer/proxy/origin_client.ts";
import { type LinkConfig, OriginLinks } from "../../../../peer/proxy/origin_link.ts";
import { closeQuietly } from "../../../../peer/transfer/connection.ts";
import { makeCertificates } from "../../../testutil/certificates.ts";

const SIGNAL = new AbortController().signal;
const OPEN: LinkConfig = { caCerts: [], isInsecure: () => false, allowPrivateNetworks: true, env: () => undefined };

/** A server that answers each connection by a script: for each request head one text, or null to hang up. */
class ScriptedServer implements AsyncDisposable {
  readonly heads: string[][] = [];
  readonly #conns = new Set<Deno.Conn>();
  readonly #running: Promise<void>;

  constructor(
    private readonly listener: Deno.Listener,
    private readonly answer: (head: string, connection: number) => string | null,
  ) {
    this.#running = this.#accept();
  }

  get port(): number {
    return (this.listener.addr as Deno.NetAddr).port;
  }

  async #accept(): Promise<void> {
    const served: Promise<void>[] = [];
    try {
      for await (const conn of this.listener) served.push(this.#serve(conn, this.heads.push([]) - 1));
    } catch {
      // A handshake that failed is one of the tests.
    }
    await Promise.all(served);
  }

  async #serve(conn: Deno.Conn, connection: number): Promise<void> {
    this.#conns.add(conn);
    const buffer = new Uint8Array(64 * 1024);
    let text = "";
    try {
      for (;;) {
        const read = await conn.read(buffer);
        if (read === null) break;
        text += new TextDecoder().decode(buffer.subarray(0, read));
        for (let end = text.indexOf("\r\n\r\n"); end >= 0; end = text.indexOf("\r\n\r\n")) {
          const head = text.slice(0, end);
          text = text.slice(end + 4);
          this.heads[connection]!.push(head);
          const answer = this.answer(head, connection);
          if (answer === null) return;
          await conn.write(new TextEncoder().encode(answer));
        }
      }
    } catch {
      // The client hung up.
    } finally {
      this.#conns.delete(conn);
      closeQuietly(conn);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.listener.close();
    for (const conn of this.#conns) closeQuietly(conn);
    await this.#running;
  }
}

function plainServer(answer: (head: string, connection: number) => string | null): ScriptedServer {
  return new ScriptedServer(Deno.listen({ hostname: "127.0.0.1", port: 0 }), answer);
}

async function textOf(answer: OriginAnswer): Promise<string> {
  let text = "";
  for (let bytes = await answer.read(); bytes !== null; bytes = await answer.read()) {
    text += new TextDecoder().decode(bytes);
  }
  return text;
}

function request(url: string, over: Partial<Parameters<OriginClient["send"]>[0]> = {}) {
  return { method: "GET", url: new URL(url), fields: [], body: null, ...over };
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

Deno.test("a connection is kept for the next request, unless its answer was not read to the end", async () => {
  await using server = plainServer(() => OK);
  using client = new OriginClient(new OriginLinks(OPEN));
  const url = `http://127.0.0.1:${server.port}/x?y`;
  for (let times = 0; times < 3; times++) {
    using answer = await client.send(request(url), SIGNAL);
    assertEquals([answer.head.status, await textOf(answer)], [200, "hi"]);
  }
  assertEquals(server.heads.map((heads) => heads.length), [3]);
  (await client.send(request(url), SIGNAL))[Symbol.dispose]();
  using _last = await client.send(request(url), SIGNAL);
  assertEquals(server.heads.map((heads) => heads.length), [4, 1]);
  assertEquals(server.heads[0]![0], `GET /x?y HTTP/1.1\r\nHost: 127.0.0.1:${server.port}`);
});

Deno.test("a kept connection that was closed meanwhile is replaced without a word", async () => {
  await using server = plainServer((_, connection) => connection === 0 && server.heads[0]!.length > 1 ? null : OK);
  using client = new OriginClient(new OriginLinks(OPEN));
  for (let times = 0; times < 2; times++) {
    using answer = await client.send(request(`http://127.0.0.1:${server.port}/`), SIGNAL);
    assertEquals(await textOf(answer), "hi");
  }
  assertEquals(server.heads.length, 2);
});

for (
  const [what, text, code] of [
    ["hangs up without an answer", null, "network"],
    ["speaks something else", "SSH-2.0\r\n\r\n", "source_failed"],
    ["gives two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi", "source_failed"],
    ["has a head without end", `HTTP/1.1 200 OK\r\nX: ${"a".repeat(70_000)}\r\n\r\n`, "source_failed"],
    ["has bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", "source_failed"],
    ["switches protocols", "HTTP/1.1 101 Switching\r\n\r\n", "source_failed"],
  ] as const
) {
  Deno.test(`an origin that ${what} is ${code}`, async () => {
    await using server = plainServer(() => text);
    using client = new OriginClient(new OriginLinks(OPEN));
    const work = () => client.send(request(`http://127.0.0.1:${server.port}/`), SIGNAL);
    assertEquals((await assertRejects(work, LacewingError)).code, code);
  });
}

Deno.test("interim answers are passed over; HEAD has no body whatever it announces", async () => {
  await using server = plainServer((head) =>
    head.startsWith("HEAD")
      ? "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
      : `HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${OK}`
  );
  using client = new OriginClient(new OriginLinks(OPEN));
  const url = `http://127.0.0.1:${server.port}/`;
  using head = await client.send(request(url, { method: "HEAD" }), SIGNAL);
  assertEquals([await textOf(head), head.head.fields], ["", [["Content-Length", "99"]]]);
  using get = await client.send(request(url), SIGNAL);
  assertEquals(await textOf(get), "hi");
  assertEquals(server.heads.length, 1);
});

Deno.test("a body cut short is an error, never an end", async () => {
  const answers = [
    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi",
  ];
  for (const text of answers) {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const serving = (async () => {
      using conn = await listener.accept();
      await conn.read(new Uint8Array(1024));
      await conn.write(new TextEncoder().encode(text));
    })();
    using client = new OriginClient(new OriginLinks(OPEN));
    using answer = await client.send(request(`http://127.0.0.1:${listener.addr.port}/`), SIGNAL);
    await assertRejects(() => textOf(answer), LacewingError);
    await serving;
    listener.close();
  }
});

Deno.test("an origin that is silent, before or in its answer, is left in time", async () => {
  await using server = plainServer((head) =>
    head.startsWith("GET /begin") ? "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi" : ""
  );
  using client = new OriginClient(new OriginLinks(OPEN), { headMs: 50, idleMs: 50 });
  const url = `http://127.0.0.1:${server.port}`;
  const silent = await assertRejects(() => client.send(request(`${url}/never`), SIGNAL), LacewingError);
  assertEquals(silent.code, "timeout");
  using answer = await client.send(request(`${url}/begin`), SIGNAL);
  assertEquals((await assertRejects(() => textOf(answer), LacewingError)).code, "timeout");
});

Deno.test("a client that goes away ends the request with its own reason", async () => {
  await using server = plainServer(() => "");
  using client = new OriginClient(new OriginLinks(OPEN));
  const gone = new AbortController();
  const sending = client.send(request(`http://127.0.0.1:${server.port}/`), gone.signal);
  while (server.heads.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  gone.abort(new DOMException("gone", "AbortError"));
  await assertRejects(() => sending, DOMException, "gone");
});

for (
  const [url, allowed, code] of [
    ["http://169.254.169.254/latest", true, "policy"],
    ["http://[fe80::1]/", true, "policy"],
    ["http://127.0.0.1:9/", false, "policy"],
    ["http://10.1.2.3/", false, "policy"],
    ["http://127.0.0.1:9/", true, "network"],
  ] as const
) {
  Deno.test(`${url} with private networks ${allowed ? "allowed" : "refused"} is ${code}`, async () => {
    using client = new OriginClient(new OriginLinks({ ...OPEN, allowPrivateNetworks: allowed }));
    const error = await assertRejects(() => client.send(request(url), SIGNAL), LacewingError);
    assertEquals(error.code, code);
  });
}

Deno.test("a name whose address leads back to this proxy is refused before a connection", async () => {
  await using server = plainServer(() => OK);
  const isOwnAddress = (address: string, port: number) => address.startsWith("127.") && port === server.port;
  using client = new OriginClient(new OriginLinks({ ...OPEN, isOwnAddress }));
  const work = () => client.send(request(`http://localhost:${server.port}/`), SIGNAL);
  assertEquals((await assertRejects(work, LacewingError)).code, "policy");
  assertEquals(server.heads, []);
});

Deno.test("a certificate is verified by the authorities given, or not at all where that is configured", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const { ca, cert, key } = await makeCertificates(folder);
    const listener = Deno.listenTls({ hostname: "127.0.0.1", port: 0, cert, key });
    await using server = new ScriptedServer(listener, () => OK);
    const url = `https://localhost:${server.port}/`;
    for (const config of [{ caCerts: [ca] }, { isInsecure: () => true }]) {
      using client = new OriginClient(new OriginLinks({ ...OPEN, ...config }));
      for (let times = 0; times < 2; times++) {
        using answer = await client.send(request(url), SIGNAL);
        assertEquals(await textOf(answer), "hi");
      }
    }
    assertEquals(server.heads.map((heads) => heads.length), [2, 2]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("an unknown authority is a TLS failure", async () => {
  const folder = await Deno.makeTempDir();
  const { cert, key } = await makeCertificates(folder);
  await Deno.remove(folder, { recursive: true });
  const listener = Deno.listenTls({ hostname: "127.0.0.1", port: 0, cert, key });
  const serving = (async () => {
    using conn = await listener.accept();
    await conn.handshake().catch(() => {});
  })();
  using client = new OriginClient(new OriginLinks(OPEN));
  const work = () => client.send(request(`https://localhost:${listener.addr.port}/`), SIGNAL);
  assertEquals((await assertRejects(work, LacewingError)).code, "tls");
  await serving;
  listener.close();
});

Deno.test("a proxy of the environment gets whole URLs, and CONNECT with its own credentials", async () => {
  await using proxy = plainServer((head) => head.startsWith("CONNECT") ? "HTTP/1.1 403 No\r\n\r\n" : OK);
  const env = (name: string) => /^https?_proxy$/i.test(name) ? `http://u:p@127.0.0.1:${proxy.port}` : undefined;
  using client = new OriginClient(new OriginLinks({ ...OPEN, env }));
  using answer = await client.send(request("http://far.test/x?y"), SIGNAL);
  assertEquals(await textOf(answer), "hi");
  const sent = proxy.heads[0]![0]!;
  assert(sent.startsWith("GET http://far.test/x?y HTTP/1.1\r\nHost: far.test\r\n"), sent);
  assert(sent.includes(`Proxy-Authorization: Basic ${btoa("u:p")}`), sent);
  const error = await assertRejects(() => client.send(request("https://far.test/"), SIGNAL), LacewingError);
  assertEquals(error.code, "network");
  assert(proxy.heads[1]![0]!.startsWith("CONNECT far.test:443 HTTP/1.1\r\n"));
});
