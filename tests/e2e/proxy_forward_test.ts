// covers: peer/proxy/forward_proxy.ts, peer/proxy/proxy_server.ts, peer/proxy/client_exchange.ts
/** The forward proxy of a real daemon, spoken to byte by byte. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { startOrigin } from "../testutil/origin.ts";
import { type DaemonProcess, spawnDaemon } from "../testutil/process.ts";

/** Sends bytes on one connection and reads until the proxy closes it (or `until` shows). */
async function talk(daemon: DaemonProcess, text: string, until?: string): Promise<string> {
  const [hostname = "", port] = daemon.proxy!.split(":");
  using conn = await Deno.connect({ hostname, port: Number(port) });
  await conn.write(new TextEncoder().encode(text));
  let answer = "";
  const buffer = new Uint8Array(64 * 1024);
  for (;;) {
    const read = await conn.read(buffer).catch(() => null);
    if (read === null) return answer;
    answer += new TextDecoder().decode(buffer.subarray(0, read));
    if (until !== undefined && answer.includes(until)) return answer;
  }
}

function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0);
}

/** An origin that shows what it was sent, to the letter, and answers with a fixed text. */
function startEcho(answer: string): { url: string; port: number; seen: string[] } & AsyncDisposable {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const seen: string[] = [];
  const running = (async () => {
    for await (const conn of listener) {
      const buffer = new Uint8Array(64 * 1024);
      let text = "";
      while (!text.includes("\r\n\r\n")) {
        const read = await conn.read(buffer).catch(() => null);
        if (read === null) break;
        text += new TextDecoder().decode(buffer.subarray(0, read));
      }
      seen.push(text);
      await conn.write(new TextEncoder().encode(answer)).catch(() => {});
      conn.close();
    }
  })();
  const { port } = listener.addr;
  return {
    port,
    seen,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      listener.close();
      await running.catch(() => {});
    },
  };
}

const OPEN = { proxy: { tcpListen: { port: 0 } } };
const PLAIN = "HTTP/1.1 200 Fine\r\nX-Odd:  a  b \r\nx-odd: c\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";

Deno.test("a request without a rule goes on to the letter, without what belongs to the connection", async () => {
  await using echo = startEcho(PLAIN);
  await using daemon = await spawnDaemon({ config: OPEN });
  const head = [
    `GET ${echo.url}/a?b=c HTTP/1.1`,
    `Host: 127.0.0.1:${echo.port}`,
    "Accept: one",
    "accept: two",
    "Proxy-Connection: keep-alive",
    "Connection: close, X-Hop",
    "X-Hop: gone",
    "Keep-Alive: timeout=5",
    "TE: trailers",
    "X-Lacewing-Tag: gone",
    "X-Dragonfly-Filter: gone",
    "Authorization: Basic abc",
  ];
  const answer = await talk(daemon, head.join("\r\n") + "\r\n\r\n");
  assertStringIncludes(answer, "HTTP/1.1 200 Fine\r\nX-Odd: a  b\r\nx-odd: c\r\n");
  assert(answer.endsWith("\r\n\r\nhi"), answer);
  const sent = echo.seen[0]!.split("\r\n");
  assertEquals(sent[0], "GET /a?b=c HTTP/1.1");
  assertEquals(sent.slice(2, 4), ["Accept: one", "accept: two"]);
  for (const word of ["gone", "Keep-Alive", "Proxy-", "TE:", "Connection"]) assert(!echo.seen[0]!.includes(word), word);
  assertStringIncludes(echo.seen[0]!, "Authorization: Basic abc");
});

Deno.test("a body goes on with its length, or in chunks", async () => {
  const bodies: string[] = [];
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    bodies.push(`${request.method} ${request.headers.get("content-length")} ${await request.text()}`);
    return new Response("taken");
  });
  await using daemon = await spawnDaemon({ config: OPEN });
  const start = (rest: string) =>
    `POST http://127.0.0.1:${server.addr.port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${rest}`;
  assertStringIncludes(await talk(daemon, start("Content-Length: 5\r\n\r\nhello")), "taken");
  const chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n";
  assertStringIncludes(await talk(daemon, start(chunked)), "taken");
  assertStringIncludes(
    await talk(daemon, start("Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi")),
    "100 Continue",
  );
  assertStringIncludes(await talk(daemon, start("Content-Length: 0\r\n\r\n")), "taken");
  assertEquals(bodies, ["POST 5 hello", "POST null hello", "POST 2 hi", "POST 0 "]);
});

for (
  const [what, text] of [
    ["two ways to read its length", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"],
    ["an overlong head", `X: ${"a".repeat(70_000)}\r\n\r\n`],
    ["bare line feeds", "X: y\nContent-Length: 2\n\nhi"],
  ]
) {
  Deno.test(`an origin's answer with ${what} is 502: the client's request was good`, async () => {
    await using echo = startEcho(`HTTP/1.1 200 OK\r\n${text}`);
    await using daemon = await spawnDaemon({ config: OPEN });
    const answer = await talk(daemon, `GET ${echo.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    assertEquals(statusOf(answer), 502, answer);
  });
}

for (
  const [what, request] of [
    ["both lengths", "GET URL HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["two Content-Length", "GET URL HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello"],
    ["a list of lengths", "GET URL HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\nhello"],
    ["a signed length", "GET URL HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello"],
    ["an odd coding", "GET URL HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"],
    ["a coding twice", "GET URL HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"],
    ["chunks in HTTP/1.0", "GET URL HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["a folded line", "GET URL HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n"],
    ["a blank before the colon", "GET URL HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello"],
    ["a bare line feed", "GET URL HTTP/1.1\r\nHost: x\nContent-Length: 5\r\n\r\nhello"],
    ["two hosts", "GET URL HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"],
    ["no host", "GET URL HTTP/1.1\r\n\r\n"],
    ["blanks in the target", "GET URL x HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["another version", "GET URL HTTP/2.0\r\nHost: x\r\n\r\n"],
    ["no HTTP at all", "\x16\x03\x01\x02\x00\x01"],
  ]
) {
  Deno.test(`a request with ${what} is refused, and nothing goes on to the origin`, async () => {
    await using echo = startEcho(PLAIN);
    await using daemon = await spawnDaemon({ config: OPEN });
    const answer = await talk(daemon, request!.replace("URL", `${echo.url}/`));
    assertEquals(statusOf(answer), 400, answer);
    assertEquals(answer.match(/HTTP\/1\.1 \d/g)?.length, 1);
    assertEquals(echo.seen, []);
  });
}

for (
  const chunks of [
    "5\nhello\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "5\r\nhelloo\r\n0\r\n\r\n",
    "-1\r\n\r\n",
    "\r\n",
  ]
) {
  Deno.test(`a body in the chunks ${JSON.stringify(chunks)} never reaches the origin whole`, async () => {
    await using echo = startEcho(PLAIN);
    await using daemon = await spawnDaemon({ config: OPEN });
    const head = `POST ${echo.url}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
    await talk(daemon, head + chunks);
    for (const text of echo.seen) assert(!text.includes("0\r\n\r\n"), text);
  });
}

Deno.test("the first rule that matches decides: swarm, straight on, or another host", async () => {
  await using origin = startOrigin();
  await using other = startOrigin();
  origin.put("/shared/a", { size: 700_000 });
  origin.put("/plain/a", { size: 10 });
  other.put("/moved/a", { size: 20, seed: 3 });
  await using daemon = await spawnDaemon({
    config: {
      proxy: {
        tcpListen: { port: 0 },
        proxies: [
          { regx: "/shared/secret", direct: true },
          { regx: "/shared/" },
          { regx: "/moved/", redirect: other.host },
        ],
      },
    },
  });
  using client = Deno.createHttpClient({ proxy: { url: `http://${daemon.proxy}` } });
  const get = (url: string) => fetch(url, { client });
  for (const source of ["origin", "local"]) {
    const shared = await get(origin.url("/shared/a"));
    assertEquals([shared.status, shared.headers.get("x-lacewing-source")], [200, source]);
    assertEquals((await shared.bytes()).length, 700_000);
  }
  assertEquals(origin.bytesSent("/shared/a"), 700_000);
  for (let times = 1; times <= 2; times++) {
    const plain = await get(origin.url("/plain/a"));
    assertEquals([(await plain.bytes()).length, plain.headers.get("x-lacewing-task")], [10, null]);
    assertEquals(origin.bytesSent("/plain/a"), 10 * times);
  }
  const moved = await get(origin.url("/moved/a"));
  assertEquals(await moved.bytes(), other.bytes("/moved/a"));
  const direct = await get(origin.url("/shared/secret"));
  assertEquals([direct.status, direct.headers.get("x-lacewing-task")], [404, null]);
  await direct.body?.cancel();
});

Deno.test("a tunnel carries bytes both ways, to listed ports only", async () => {
  await using echo = startEcho("pong");
  const config = (whiteList: unknown[]) => ({ proxy: { tcpListen: { port: 0 }, whiteList } });
  const request = (port: number) => `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\nping\r\n\r\n`;
  await using listed = await spawnDaemon({ config: config([{ host: "127.0.0.1", ports: [echo.port] }]) });
  assertEquals(await talk(listed, request(echo.port)), "HTTP/1.1 200 OK\r\n\r\npong");
  assertEquals(echo.seen, ["ping\r\n\r\n"]);
  assertEquals(statusOf(await talk(listed, request(echo.port + 1))), 403);
  assertEquals(statusOf(await talk(listed, "CONNECT other.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")), 403);
  assertEquals(statusOf(await talk(listed, "CONNECT nonsense HTTP/1.1\r\nHost: x\r\n\r\n")), 400);
  await using open = await spawnDaemon({ config: OPEN });
  assertEquals(statusOf(await talk(open, request(echo.port))), 403);
  const refused = await talk(open, "CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: x\r\n\r\n");
  assertEquals(statusOf(refused), 502, refused);
});

Deno.test("a proxy on all addresses knows itself by each of them", async () => {
  const config = { proxy: { listenIP: "0.0.0.0", tcpListen: { port: 0 }, whiteList: [{ regx: "." }] } };
  await using daemon = await spawnDaemon({ config });
  const port = daemon.proxy!.split(":")[1];
  for (const { address, family } of Deno.networkInterfaces()) {
    if (family !== "IPv4") continue;
    const answer = await talk(daemon, `GET http://${address}:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`, "}");
    assertEquals(statusOf(answer), 508, address);
  }
});

Deno.test("hosts that the white list leaves out, and metadata addresses, are refused", async () => {
  await using echo = startEcho(PLAIN);
  await using daemon = await spawnDaemon({
    config: { proxy: { tcpListen: { port: 0 }, whiteList: [{ regx: "^good\\." }, { host: "169.254.169.254" }] } },
  });
  assertEquals(statusOf(await talk(daemon, `GET ${echo.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)), 403);
  const metadata = "GET http://169.254.169.254/latest HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  assertEquals(statusOf(await talk(daemon, metadata)), 403);
  const named = "GET /v2/lab/app/manifests/v1?ns=bad.test HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  assertEquals(statusOf(await talk(daemon, named)), 403);
  assertEquals(echo.seen, []);
});

Deno.test("with basicAuth nothing is served without the password, which never travels on", async () => {
  await using echo = startEcho(PLAIN);
  const basicAuth = { username: "proxy", password: "secret" };
  await using daemon = await spawnDaemon({ config: { proxy: { tcpListen: { port: 0 }, basicAuth } } });
  const ask = (field: string) =>
    talk(daemon, `GET ${echo.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${field}\r\n`);
  for (
    const field of ["", `Proxy-Authorization: Basic ${btoa("proxy:wrong")}\r\n`, "Proxy-Authorization: Basic ===\r\n"]
  ) {
    const answer = await ask(field);
    assertEquals(statusOf(answer), 407);
    assertStringIncludes(answer, "Proxy-Authenticate: Basic");
  }
  assertEquals(statusOf(await talk(daemon, "GET /v2/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")), 407);
  assertEquals(echo.seen, []);
  assertEquals(statusOf(await ask(`Proxy-Authorization: Basic ${btoa("proxy:secret")}\r\n`)), 200);
  assert(!echo.seen[0]!.toLowerCase().includes("proxy-"), echo.seen[0]);
});

Deno.test("several requests go over one connection, also when they come at once", async () => {
  await using origin = startOrigin();
  origin.put("/a", { bytes: new TextEncoder().encode("first") });
  origin.put("/b", { bytes: new TextEncoder().encode("second") });
  await using daemon = await spawnDaemon({ config: OPEN });
  const get = (path: string, rest = "") => `GET ${origin.url(path)} HTTP/1.1\r\nHost: x\r\n${rest}\r\n`;
  const answer = await talk(daemon, get("/a") + get("/b") + get("/none", "Connection: close\r\n"));
  assertEquals(answer.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 404"]);
  assert(answer.indexOf("first") < answer.indexOf("second"));
});

Deno.test("a client that hangs up ends the download; one that comes back finds the pieces", async () => {
  await using origin = startOrigin();
  const gate = Promise.withResolvers<void>();
  const size = 3_000_000;
  origin.put("/shared/big", { size, gate: { after: 1_200_000, open: gate.promise } });
  await using daemon = await spawnDaemon({
    config: { proxy: { tcpListen: { port: 0 }, proxies: [{ regx: "/shared/" }] } },
  });
  const request = `GET ${origin.url("/shared/big")} HTTP/1.1\r\nHost: x\r\n\r\n`;
  await talk(daemon, request, "\r\n\r\n");
  while (!(await (await fetch(`http://${daemon.health}/metrics`)).text()).includes("tasks_active 0")) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  gate.resolve();
  using client = Deno.createHttpClient({ proxy: { url: `http://${daemon.proxy}` } });
  const again = await fetch(origin.url("/shared/big"), { client, headers: { range: "bytes=1000-" } });
  assertEquals(again.headers.get("content-range"), `bytes 1000-${size - 1}/${size}`);
  assertEquals(await again.bytes(), origin.bytes("/shared/big", { offset: 1000, length: size - 1000 }));
  assert(origin.bytesSent("/shared/big") < size * 1.5, `${origin.bytesSent("/shared/big")} B were sent`);
});
