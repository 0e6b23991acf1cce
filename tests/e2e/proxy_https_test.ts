// covers: peer/proxy/origin_link.ts
/** The forward proxy in front of an origin that speaks TLS with a certificate of its own authority. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { makeCertificates } from "../testutil/certificates.ts";
import { Place } from "../testutil/place.ts";
import { spawnDaemon } from "../testutil/process.ts";
import { hasTools } from "../testutil/registry.ts";

const hasOpenssl = hasTools(["openssl"]);
if (!hasOpenssl) console.log("proxy_https_test: skipped, openssl is not installed");
const TYPE = "text/x-test; charset=utf-8";
const TEXT = "from the origin with TLS";

/** An origin with TLS, and a daemon whose clients name it by http: with useHTTPS, and by a redirect. */
async function stage(place: Place, stack: AsyncDisposableStack, { isTrusted }: { isTrusted: boolean }) {
  const made = await makeCertificates(place.path("certs"));
  const origin = Deno.serve(
    { port: 0, hostname: "127.0.0.1", cert: made.cert, key: made.key, onListen: () => {} },
    () => new Response(TEXT, { headers: { etag: '"1"', "content-type": TYPE } }),
  );
  stack.defer(() => origin.shutdown());
  const host = `localhost:${origin.addr.port}`;
  const other = await makeCertificates(place.path("other"));
  const proxies = [
    { regx: "^http://localhost:", useHTTPS: true },
    { regx: "^http://scheme[.]test/", redirect: `https://${host}` },
    { regx: "^http://bare[.]test/", redirect: host, useHTTPS: true },
    { regx: "^http://direct[.]test/", redirect: host, useHTTPS: true, direct: true },
  ];
  const caCerts = [isTrusted ? made.caPath : other.caPath];
  const daemon = stack.use(
    await spawnDaemon({
      config: { download: { source: { caCerts } }, proxy: { tcpListen: { port: 0 }, proxies } },
    }),
  );
  const client = Deno.createHttpClient({ proxy: { url: `http://${daemon.proxy}` } });
  stack.defer(() => client.close());
  const ask = async (url: string) => {
    const response = await fetch(url, { client });
    const { headers } = response;
    return {
      status: response.status,
      task: headers.get("x-lacewing-task"),
      type: headers.get("content-type"),
      text: await response.text(),
    };
  };
  return { host, ask };
}

Deno.test({
  name: "useHTTPS and redirects reach an origin by TLS, as one content with its type, whatever it was called",
  ignore: !hasOpenssl,
  async fn() {
    await using place = new Place();
    await using stack = new AsyncDisposableStack();
    const { host, ask } = await stage(place, stack, { isTrusted: true });
    const tasks = new Set<string | null>();
    for (const base of [`http://${host}`, "http://scheme.test", "http://bare.test"]) {
      const { status, task, type, text } = await ask(`${base}/f`);
      assertEquals([status, text, type], [200, TEXT, TYPE], base);
      tasks.add(task);
    }
    assert(tasks.size === 1 && !tasks.has(null));
    assertEquals(await ask("http://direct.test/f"), { status: 200, task: null, type: TYPE, text: TEXT });
  },
});

Deno.test({
  name: "an origin of an unknown authority is 502 with the reason and what to do",
  ignore: !hasOpenssl,
  async fn() {
    await using place = new Place();
    await using stack = new AsyncDisposableStack();
    const { host, ask } = await stage(place, stack, { isTrusted: false });
    for (const base of [`http://${host}`, "http://direct.test"]) {
      const { status, text } = await ask(`${base}/f`);
      assertEquals(status, 502);
      assertStringIncludes(text, `Cannot trust ${host}`);
      assertStringIncludes(text, "download.source.caCerts");
    }
  },
});
