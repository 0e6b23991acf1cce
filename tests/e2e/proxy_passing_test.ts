// covers: peer/proxy/pass_through.ts
/** What passes through the mirror untouched: lists in pages, referrers, warnings, every Accept line. */
import { assertEquals } from "@std/assert";
import { HttpReader } from "../../peer/proxy/http_reader.ts";
import { type Field, parseAnswerHead, parseRequestHead, valuesOf } from "../../peer/proxy/http_message.ts";
import { type DaemonProcess, spawnDaemon } from "../testutil/process.ts";

const CONFIG = { proxy: { tcpListen: { port: 0 } } };
const SUBJECT = `sha256:${"5".repeat(64)}`;

interface Answer {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: string;
}

/** An origin that answers every request with this, byte by byte, and keeps the heads. */
function startRaw({ status, fields, body, length = body.length, after }: Answer & {
  /** What it announces; default: the truth. */
  readonly length?: number;
  /** Lets the body come; default: at once. */
  readonly after?: Promise<void>;
}) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const heads: { target: string; fields: readonly Field[] }[] = [];
  const serve = async (conn: Deno.Conn) => {
    using _owned = conn;
    const text = await new HttpReader(conn).readHead();
    if (text === null) return;
    heads.push(parseRequestHead(text));
    const lines = [...fields, ["Content-Length", String(length)], ["Connection", "close"]];
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    await conn.write(new TextEncoder().encode(`HTTP/1.1 ${status} Said So\r\n${head}\r\n`));
    await after;
    await conn.write(new TextEncoder().encode(body));
  };
  const running = (async () => {
    const served: Promise<void>[] = [];
    for await (const conn of listener) served.push(serve(conn));
    await Promise.all(served);
  })();
  return {
    host: `127.0.0.1:${listener.addr.port}`,
    heads,
    async [Symbol.asyncDispose]() {
      listener.close();
      await running;
    },
  };
}

/** One request over a connection of its own, fields exactly as they are. */
async function ask(daemon: DaemonProcess, target: string, fields: readonly Field[] = []): Promise<Answer> {
  const [hostname = "", port = ""] = daemon.proxy!.split(":");
  using conn = await Deno.connect({ hostname, port: Number(port) });
  const lines = [["Host", "mirror"], ...fields, ["Connection", "close"]];
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  await conn.write(new TextEncoder().encode(`GET ${target} HTTP/1.1\r\n${head}\r\n`));
  const reader = new HttpReader(conn);
  const { status, fields: told } = parseAnswerHead((await reader.readHead())!);
  const body = reader.body({ kind: "length", length: Number(valuesOf(told, "content-length")[0]) });
  let text = "";
  for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) {
    text += new TextDecoder().decode(bytes);
  }
  return { status, fields: told, body: text };
}

const LINK: Field = ["Link", '</v2/lab/app/tags/list?n=2&last=b>; rel="next"'];
const JSON_TYPE: Field = ["Content-Type", "application/json"];

for (
  const [what, path, answer] of [
    ["a page of tags with its Link", "/v2/lab/app/tags/list?n=2&last=a%2Bb", {
      status: 200,
      fields: [JSON_TYPE, LINK, ["Warning", '299 - "old"'], ["Warning", '299 - "older"']],
      body: '{"name":"lab/app","tags":["a","b"]}',
    }],
    ["referrers with their Link and filter", `/v2/lab/app/referrers/${SUBJECT}?artifactType=application%2Fx`, {
      status: 200,
      fields: [
        ["Content-Type", "application/vnd.oci.image.index.v1+json"],
        ["Link", `</v2/lab/app/referrers/${SUBJECT}?artifactType=application%2Fx&page=2>; rel="next"`],
        ["OCI-Filters-Applied", "artifactType"],
      ],
      body: '{"schemaVersion":2,"manifests":[]}',
    }],
    ["referrers that the registry does not know", `/v2/lab/app/referrers/${SUBJECT}`, {
      status: 404,
      fields: [JSON_TYPE],
      body: '{"errors":[{"code":"NOT_FOUND"}]}',
    }],
    ["a sign-in", "/v2/", {
      status: 401,
      fields: [
        ["WWW-Authenticate", 'Bearer realm="https://auth.test/token",service="s"'],
        ["WWW-Authenticate", 'Basic realm="r"'],
      ],
      body: '{"errors":[{"code":"UNAUTHORIZED"}]}',
    }],
    ["a pause", "/v2/lab/app/manifests/v1", { status: 429, fields: [["Retry-After", "7"]], body: "slow" }],
  ] as [string, string, Answer][]
) {
  Deno.test(`${what} passes as the registry gives it, and the registry sees the path as it was asked`, async () => {
    await using origin = startRaw(answer);
    await using daemon = await spawnDaemon({ config: CONFIG });
    const joint = path.includes("?") ? "&" : "?";
    const target = `${path}${joint}ns=${encodeURIComponent(origin.host)}`;
    const { status, fields, body } = await ask(daemon, target);
    assertEquals([status, body], [answer.status, answer.body]);
    for (const name of new Set(answer.fields.map(([name]) => name))) {
      assertEquals(valuesOf(fields, name.toLowerCase()), valuesOf(answer.fields, name.toLowerCase()), name);
    }
    assertEquals(valuesOf(fields, "oci-namespace"), [origin.host]);
    assertEquals(origin.heads.map(({ target }) => target), [target]);
  });
}

Deno.test("every Accept line reaches the registry in its order, and the overrides never do", async () => {
  await using origin = startRaw({ status: 200, fields: [JSON_TYPE], body: "{}" });
  await using daemon = await spawnDaemon({ config: CONFIG });
  const accepts = ["application/vnd.oci.image.index.v1+json", "application/json;q=0.5, */*", "text/x"];
  const lines: Field[] = accepts.map((value) => ["Accept", value]);
  await ask(daemon, `/v2/lab/app/manifests/v1?ns=${origin.host}`, [
    ...lines,
    ["X-Dragonfly-Filter", "a"],
    ["X-Lacewing-Tag", "b"],
    ["Accept-Encoding", "gzip"],
    ["Proxy-Authorization", "Basic eDp5"],
  ]);
  const [head] = origin.heads;
  assertEquals(valuesOf(head!.fields, "accept"), accepts);
  assertEquals(valuesOf(head!.fields, "accept-encoding"), ["identity"]);
  for (const name of ["x-dragonfly-filter", "x-lacewing-tag", "proxy-authorization"]) {
    assertEquals(valuesOf(head!.fields, name), [], name);
  }
});

Deno.test("an origin that takes its time for a body has its head told before", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await using origin = startRaw({ status: 200, fields: [], body: "late", after: promise });
  await using daemon = await spawnDaemon({ config: CONFIG });
  const response = await fetch(`http://${daemon.proxy}/v2/lab/app/tags/list?ns=${origin.host}`);
  assertEquals(response.status, 200);
  resolve();
  assertEquals(await response.text(), "late");
});

for (
  const [what, path, answer, status] of [
    ["a sign-in that is cut off before its text is still a sign-in", "/v2/", { status: 401, length: 9, body: "" }, 401],
    ["a list that is cut off before its first byte is 502", "/v2/_catalog", { status: 200, length: 9, body: "" }, 502],
    ["a wrong manifest is 502", `/v2/lab/app/manifests/${SUBJECT}`, { status: 200, body: "{}" }, 502],
  ] as const
) {
  Deno.test(`${what}, so that a runtime has a place to go to`, async () => {
    await using origin = startRaw({ fields: [["WWW-Authenticate", 'Basic realm="r"']], ...answer });
    await using daemon = await spawnDaemon({ config: CONFIG });
    const response = await fetch(`http://${daemon.proxy}${path}?ns=${origin.host}`);
    assertEquals(response.status, status);
    await response.text().catch(() => "");
    if (status === 401) assertEquals(response.headers.get("www-authenticate"), 'Basic realm="r"');
  });
}
