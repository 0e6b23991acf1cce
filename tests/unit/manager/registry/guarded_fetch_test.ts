// covers: manager/registry/pinned_request.ts
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import {
  createGuardedFetch,
  type GuardedRequest,
  type GuardOptions,
} from "../../../../manager/registry/guarded_fetch.ts";
import { makeCertificates } from "../../../testutil/certificates.ts";
import { freePort, hasTools } from "../../../testutil/registry.ts";

const OPEN: GuardOptions = { allowPrivateNetworks: true, caCerts: [] };

/** A server that answers with `handler`, and remembers what it was asked. */
function serve(handler: (request: Request) => Response | Promise<Response>, tls: { cert?: string; key?: string } = {}) {
  const requests: { method: string; path: string; headers: Headers; body: string }[] = [];
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {}, ...tls } as Deno.ServeTcpOptions,
    async (request) => {
      const { pathname, search } = new URL(request.url);
      const copy = request.clone();
      requests.push({
        method: request.method,
        path: pathname + search,
        headers: request.headers,
        body: await copy.text(),
      });
      return handler(request);
    },
  );
  const { port } = server.addr as Deno.NetAddr;
  return { requests, port, url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

function request(init: Partial<GuardedRequest> = {}): GuardedRequest {
  return { method: "GET", headers: {}, signal: new AbortController().signal, maxBytes: 1000, ...init };
}

async function failure(promise: Promise<unknown>): Promise<LacewingError> {
  return await assertRejects(() => promise, LacewingError);
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

Deno.test("guarded fetch gives status, headers and bytes of any answer", async () => {
  await using server = serve(() => new Response("gone", { status: 410, headers: { "x-a": "1" } }));
  const answer = await createGuardedFetch(OPEN)(`${server.url}/p?q=1`, request({ headers: { "X-Own": "2" } }));
  assertEquals([answer.status, answer.headers.get("x-a"), text(answer.bytes)], [410, "1", "gone"]);
  const [asked] = server.requests;
  assertEquals([asked?.path, asked?.headers.get("x-own")], ["/p?q=1", "2"]);
  assertEquals([asked?.headers.get("host"), asked?.headers.get("accept-encoding")], [
    `127.0.0.1:${server.port}`,
    "identity",
  ]);
});

Deno.test("guarded fetch sends HEAD and POST", async () => {
  await using server = serve(() => new Response(null, { headers: { "docker-content-digest": "d" } }));
  const fetch = createGuardedFetch(OPEN);
  const head = await fetch(server.url, request({ method: "HEAD" }));
  assertEquals([head.headers.get("docker-content-digest"), head.bytes.length], ["d", 0]);
  await fetch(server.url, request({ method: "POST", body: "a=ä" }));
  assertEquals(server.requests.map(({ method, body }) => [method, body]), [["HEAD", ""], ["POST", "a=ä"]]);
});

Deno.test("guarded fetch connects to the address that was judged, and asks by name", async () => {
  await using server = serve(() => new Response("ok"));
  const names: string[] = [];
  const lookup = (name: string) => {
    names.push(name);
    return Promise.resolve(["127.0.0.1"]);
  };
  const answer = await createGuardedFetch({ ...OPEN, lookup })(`http://registry.invalid:${server.port}/`, request());
  assertEquals([text(answer.bytes), names], ["ok", ["registry.invalid"]]);
  assertEquals(server.requests[0]?.headers.get("host"), `registry.invalid:${server.port}`);
});

Deno.test("guarded fetch goes on to a name's next address when one refuses the connection", async () => {
  await using server = serve(() => new Response("ok"));
  // Linux takes all of 127.0.0.0/8 as this machine; the server listens on one of them.
  const lookup = () => Promise.resolve(["127.0.0.9", "127.0.0.1"]);
  const answer = await createGuardedFetch({ ...OPEN, lookup })(`http://registry.invalid:${server.port}/`, request());
  assertEquals(text(answer.bytes), "ok");
});

const REFUSED: [url: string, says: string, allowPrivateNetworks: boolean][] = [
  ["http://127.0.0.1/", "loopback", false],
  ["http://localhost/", "loopback", false],
  ["http://[::1]/", "loopback", false],
  ["http://0x7f.1/", "loopback", false],
  ["http://2130706433/", "loopback", false],
  ["http://10.1.2.3/", "private", false],
  ["http://[::ffff:192.168.1.1]/", "private", false],
  ["http://169.254.169.254/latest/meta-data", "link-local", true],
  ["http://[fe80::1]/", "link-local", true],
  ["http://[::ffff:169.254.169.254]/", "link-local", true],
  ["http://100.100.100.200/", "metadata", true],
  ["ftp://h.example.com/", "only http and https", true],
  ["file:///etc/passwd", "only http and https", true],
  ["http://user:secret@h.example.com/", "credentials", true],
];

for (const [url, says, allowPrivateNetworks] of REFUSED) {
  Deno.test(`guarded fetch refuses ${url} with allowPrivateNetworks ${allowPrivateNetworks}`, async () => {
    const error = await failure(createGuardedFetch({ allowPrivateNetworks, caCerts: [] })(url, request()));
    assertEquals(error.code, "policy");
    assertStringIncludes(error.message, says);
    assert(!error.message.includes("secret"));
  });
}

Deno.test("guarded fetch refuses a name that leads to a refused address only, and skips those of a mixed one", async () => {
  await using server = serve(() => new Response("ok"));
  const url = `http://rebind.invalid:${server.port}/`;
  const metadata = { ...OPEN, lookup: () => Promise.resolve(["169.254.169.254", "fe80::1"]) };
  assertEquals((await failure(createGuardedFetch(metadata)(url, request()))).code, "policy");
  const mixed = { ...OPEN, lookup: () => Promise.resolve(["169.254.169.254", "127.0.0.1"]) };
  assertEquals(text((await createGuardedFetch(mixed)(url, request())).bytes), "ok");
});

Deno.test("guarded fetch judges the target of a redirect anew", async () => {
  await using server = serve(() => Response.redirect("http://169.254.169.254/latest/meta-data"));
  const error = await failure(createGuardedFetch(OPEN)(server.url, request()));
  assertEquals(error.code, "policy");
  await using loop = serve(() => Response.redirect("file:///etc/passwd"));
  assertEquals((await failure(createGuardedFetch(OPEN)(loop.url, request()))).code, "policy");
});

Deno.test("guarded fetch resolves a name again for each hop, and refuses when it has turned", async () => {
  await using server = serve(() => Response.redirect("http://turn.invalid/next"));
  let asked = 0;
  const lookup = () => Promise.resolve([asked++ === 0 ? "127.0.0.1" : "169.254.1.1"]);
  const error = await failure(
    createGuardedFetch({ ...OPEN, lookup })(`http://turn.invalid:${server.port}/`, request()),
  );
  assertEquals([error.code, asked, server.requests.length], ["policy", 2, 1]);
});

Deno.test("guarded fetch keeps headers within an origin and drops them across origins", async () => {
  await using other = serve(() => new Response("there"));
  await using server = serve(({ url }) => {
    const to = new URL(url).pathname === "/a" ? "/b" : `${other.url}/c`;
    return new Response(null, { status: 307, headers: { location: to } });
  });
  const headers = { authorization: "Bearer x", cookie: "c=1", "x-token": "t", accept: "a/b" };
  const answer = await createGuardedFetch(OPEN)(`${server.url}/a`, request({ headers }));
  assertEquals(text(answer.bytes), "there");
  assertEquals(server.requests.map(({ headers }) => headers.get("authorization")), ["Bearer x", "Bearer x"]);
  const crossed = other.requests[0]?.headers;
  assertEquals(["authorization", "cookie", "x-token", "accept"].map((name) => crossed?.get(name)), [
    null,
    null,
    null,
    "a/b",
  ]);
});

Deno.test("guarded fetch follows 5 redirects and no more", async () => {
  await using server = serve(({ url }) => {
    const left = Number(new URL(url).pathname.slice(1));
    return left === 0
      ? new Response("end")
      : new Response(null, { status: 302, headers: { location: `/${left - 1}` } });
  });
  assertEquals(text((await createGuardedFetch(OPEN)(`${server.url}/5`, request())).bytes), "end");
  const error = await failure(createGuardedFetch(OPEN)(`${server.url}/6`, request()));
  assertEquals(error.code, "policy");
  assertStringIncludes(error.message, "more than 5 redirects");
});

Deno.test("guarded fetch repeats a form within an origin only", async () => {
  await using other = serve(() => new Response("there"));
  await using server = serve(({ url }) => {
    const { pathname } = new URL(url);
    if (pathname === "/end") return new Response("end");
    const location = pathname === "/same" ? "/end" : `${other.url}/`;
    return new Response(null, { status: 307, headers: { location } });
  });
  const post = request({ method: "POST", body: "password=p", headers: { "content-type": "x/y" } });
  assertEquals(text((await createGuardedFetch(OPEN)(`${server.url}/same`, post)).bytes), "end");
  assertEquals(server.requests[1]?.body, "password=p");
  assertEquals((await failure(createGuardedFetch(OPEN)(`${server.url}/other`, post))).code, "policy");
  assertEquals(other.requests.length, 0);
});

Deno.test("guarded fetch turns a form into GET after 303, without its body", async () => {
  await using server = serve(({ url }) =>
    new URL(url).pathname === "/end"
      ? new Response("end")
      : new Response(null, { status: 303, headers: { location: "/end" } })
  );
  const post = request({ method: "POST", body: "password=p", headers: { "content-type": "x/y" } });
  await createGuardedFetch(OPEN)(server.url, post);
  const last = server.requests[1];
  assertEquals([last?.method, last?.body, last?.headers.get("content-type")], ["GET", "", null]);
});

Deno.test("guarded fetch takes a body up to its bound", async () => {
  await using server = serve(() => new Response("x".repeat(1000)));
  assertEquals((await createGuardedFetch(OPEN)(server.url, request({ maxBytes: 1000 }))).bytes.length, 1000);
  const error = await failure(createGuardedFetch(OPEN)(server.url, request({ maxBytes: 999 })));
  assertEquals(error.code, "too_large");
});

Deno.test("guarded fetch says which connection was refused, and which name is not known", async () => {
  const port = freePort();
  const error = await failure(createGuardedFetch(OPEN)(`http://127.0.0.1:${port}/x`, request()));
  assertEquals(error.code, "network");
  assertStringIncludes(error.message, `http://127.0.0.1:${port}/x at 127.0.0.1: the connection was refused`);
  assert(error.cause instanceof Error);
  const unknown = await failure(createGuardedFetch(OPEN)("http://no-such-name.invalid/", request()));
  assertEquals(unknown.code, "network");
  assertStringIncludes(unknown.message, "no-such-name.invalid");
});

Deno.test("guarded fetch gives up a server that takes the connection and says nothing", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${listener.addr.port}/`;
  const error = await failure(createGuardedFetch({ ...OPEN, totalTimeoutMs: 50 })(url, request()));
  assertEquals(error.code, "timeout");
});

Deno.test("guarded fetch gives up a TLS handshake that never ends", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const url = `https://127.0.0.1:${listener.addr.port}/`;
  const error = await failure(createGuardedFetch({ ...OPEN, connectTimeoutMs: 50 })(url, request()));
  assertEquals(error.code, "timeout");
  assertStringIncludes(error.message, "no connection to 127.0.0.1");
});

Deno.test("guarded fetch rejects with the caller's own reason", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const abort = new AbortController();
  const pending = createGuardedFetch(OPEN)(
    `http://127.0.0.1:${listener.addr.port}/`,
    request({ signal: abort.signal }),
  );
  const connection = await listener.accept();
  abort.abort(new RangeError("enough"));
  assertEquals((await assertRejects(() => pending, RangeError)).message, "enough");
  connection.close();
  await assertRejects(
    () => createGuardedFetch(OPEN)("http://127.0.0.1:1/", request({ signal: abort.signal })),
    RangeError,
  );
});

for (const head of ["Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\na\r\nhalf", "Content-Le"]) {
  Deno.test(`guarded fetch calls an answer cut after ${JSON.stringify(head)} a network error`, async () => {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const pending = createGuardedFetch(OPEN)(`http://127.0.0.1:${listener.addr.port}/`, request());
    const connection = await listener.accept();
    await connection.read(new Uint8Array(4096));
    await connection.write(new TextEncoder().encode(`HTTP/1.1 200 OK\r\n${head}`));
    connection.close();
    assertEquals((await failure(pending)).code, "network");
  });
}

Deno.test({
  name: "guarded fetch trusts a private authority only when it is given, and only for the name asked",
  ignore: !hasTools(["openssl"]),
  async fn() {
    const folder = await Deno.makeTempDir();
    try {
      const { cert, key, ca } = await makeCertificates(folder, ["DNS:registry.invalid"]);
      await using server = serve(() => new Response("secure"), { cert, key });
      const lookup = () => Promise.resolve(["127.0.0.1"]);
      const trusting = createGuardedFetch({ ...OPEN, caCerts: [ca], lookup });
      const url = `https://registry.invalid:${server.port}/`;
      assertEquals(text((await trusting(url, request())).bytes), "secure");
      const unknown = await failure(createGuardedFetch({ ...OPEN, lookup })(url, request()));
      assertEquals(unknown.code, "tls");
      assertStringIncludes(unknown.message, "job.caCerts");
      assertEquals((await failure(trusting(`https://other.invalid:${server.port}/`, request()))).code, "tls");
      await using downgrade = serve(() => Response.redirect("http://registry.invalid/"), { cert, key });
      assertEquals((await failure(trusting(`https://registry.invalid:${downgrade.port}/`, request()))).code, "policy");
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
