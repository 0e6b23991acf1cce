// covers: peer/proxy/proxy.ts, peer/proxy/registry_mirror.ts, peer/proxy/shared_content.ts, peer/proxy/pass_through.ts
/** The registry mirror of a real daemon, against a small registry that counts what it sends. */
import { assert, assertEquals } from "@std/assert";
import { createHash } from "node:crypto";
import { taskId } from "../../peer/core/task_id.ts";
import { jobEnded, startCluster } from "../testutil/cluster.ts";
import { makeImage } from "../testutil/image.ts";
import { type DaemonProcess, spawnDaemon } from "../testutil/process.ts";
import { type SmallRegistry, startSmallRegistry } from "../testutil/small_registry.ts";

const IMAGE = makeImage({ scale: 2 });
const NAME = "lab/app";
const PROXY = { proxy: { tcpListen: { port: 0 } } };
const MANIFEST = "application/vnd.oci.image.index.v1+json";

function largest(): { digest: string; bytes: Uint8Array } {
  return [...IMAGE.blobs.values()].reduce((one, two) => one.bytes.length >= two.bytes.length ? one : two);
}

function registryWithImage(options: Parameters<typeof startSmallRegistry>[0] = {}): SmallRegistry {
  const registry = startSmallRegistry(options);
  registry.add(IMAGE, { name: NAME, tag: "v1" });
  return registry;
}

function blobUrl(daemon: DaemonProcess, registry: SmallRegistry, digest: string): string {
  return `http://${daemon.proxy}/v2/${NAME}/blobs/${digest}?ns=${encodeURIComponent(registry.host)}`;
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

Deno.test("a blob is right, comes from the cache the second time, and is told apart by its headers", async () => {
  await using registry = registryWithImage();
  await using daemon = await spawnDaemon({ config: PROXY });
  const { digest, bytes } = largest();
  const url = blobUrl(daemon, registry, digest);
  for (const source of ["origin", "local"]) {
    const response = await fetch(url);
    assertEquals([response.status, digestOf(await response.bytes())], [200, digest]);
    const { headers } = response;
    assertEquals(headers.get("content-length"), String(bytes.length));
    assertEquals(headers.get("docker-content-digest"), digest);
    assertEquals(headers.get("oci-namespace"), registry.host);
    assertEquals(headers.get("x-lacewing-source"), source);
    assertEquals(headers.get("x-lacewing-task"), taskId(registry.blobUrl(NAME, digest)));
  }
  assertEquals(registry.sent.blobs, bytes.length);
});

Deno.test("ranges are pieces of the one task, with the true total", async () => {
  await using registry = registryWithImage();
  await using daemon = await spawnDaemon({ config: PROXY });
  const { digest, bytes } = largest();
  const url = blobUrl(daemon, registry, digest);
  const total = bytes.length;
  const rows: [Record<string, string>, number, string | null, Uint8Array][] = [
    [{ range: "bytes=0-9" }, 206, `bytes 0-9/${total}`, bytes.slice(0, 10)],
    [{ range: "bytes=300000-" }, 206, `bytes 300000-${total - 1}/${total}`, bytes.slice(300000)],
    [{ range: "bytes=-50" }, 206, `bytes ${total - 50}-${total - 1}/${total}`, bytes.slice(-50)],
    [{ range: `bytes=5-${total * 2}` }, 206, `bytes 5-${total - 1}/${total}`, bytes.slice(5)],
    [{ range: `bytes=${total}-` }, 416, `bytes */${total}`, new Uint8Array()],
    [{ range: "bytes=0-1,5-6" }, 200, null, bytes],
    [{ range: "lines=0-1" }, 200, null, bytes],
    [{ range: "bytes=9-5" }, 200, null, bytes],
    [{ range: "bytes=0-9", "if-range": `"${digest}"` }, 206, `bytes 0-9/${total}`, bytes.slice(0, 10)],
    [{ range: "bytes=0-9", "if-range": `"another"` }, 200, null, bytes],
  ];
  for (const [headers, status, contentRange, body] of rows) {
    const response = await fetch(url, { headers });
    const got = await response.bytes();
    assertEquals([response.status, response.headers.get("content-range")], [status, contentRange], headers.range);
    assert(got.length === body.length && digestOf(got) === digestOf(body), headers.range);
  }
  assertEquals(registry.sent.blobs, total);
});

Deno.test("several readers of one blob at different offsets share one read of the registry", async () => {
  await using registry = registryWithImage();
  await using daemon = await spawnDaemon({ config: PROXY });
  const { digest, bytes } = largest();
  const url = blobUrl(daemon, registry, digest);
  const offsets = [0, 1, 100_000, 262_144, 500_001, 0];
  const bodies = await Promise.all(offsets.map(async (offset) => {
    const response = await fetch(url, { headers: offset === 0 ? {} : { range: `bytes=${offset}-` } });
    return await response.bytes();
  }));
  for (const [index, offset] of offsets.entries()) {
    assertEquals(digestOf(bodies[index]!), digestOf(bytes.slice(offset)));
  }
  assertEquals(registry.sent.blobs, bytes.length);
});

Deno.test("manifests, tags, errors and refused methods pass as the registry gives them", async () => {
  await using registry = registryWithImage();
  await using daemon = await spawnDaemon({ config: PROXY });
  const ask = async (path: string, init: RequestInit = {}) => {
    const through = await fetch(`http://${daemon.proxy}${path}?ns=${registry.host}`, init);
    const direct = await fetch(`${registry.url}${path}`, init);
    const kept = ["content-type", "content-length", "docker-content-digest", "etag"];
    assertEquals(through.status, direct.status, path);
    assertEquals(kept.map((name) => through.headers.get(name)), kept.map((name) => direct.headers.get(name)), path);
    assertEquals(await through.text(), await direct.text(), path);
  };
  const headers = { accept: MANIFEST };
  await ask("/v2/");
  await ask(`/v2/${NAME}/manifests/v1`, { headers });
  await ask(`/v2/${NAME}/manifests/v1`, { headers, method: "HEAD" });
  await ask(`/v2/${NAME}/manifests/${IMAGE.index.digest}`, { headers });
  await ask(`/v2/${NAME}/manifests/v1`, { headers: { accept: "text/plain" } });
  await ask(`/v2/${NAME}/tags/list`);
  await ask(`/v2/${NAME}/blobs/${largest().digest}`, { method: "HEAD" });
  await ask(`/v2/${NAME}/blobs/sha256:${"0".repeat(64)}`);
  await ask(`/v2/none/such/manifests/v1`);
  const refused = await fetch(`http://${daemon.proxy}/v2/${NAME}/blobs/uploads/`, { method: "POST", body: "x" });
  assertEquals([refused.status, (await refused.json()).errors[0].code], [405, "UNSUPPORTED"]);
});

Deno.test("429 with Retry-After and 5xx come through; an unreachable registry is 502, never 404", async () => {
  await using registry = registryWithImage();
  await using daemon = await spawnDaemon({ config: PROXY });
  const url = `http://${daemon.proxy}/v2/${NAME}/manifests/v1?ns=${registry.host}`;
  registry.fault("v1", { status: 429, times: 1, headers: { "retry-after": "7" } });
  const busy = await fetch(url);
  assertEquals([busy.status, busy.headers.get("retry-after")], [429, "7"]);
  await busy.body?.cancel();
  registry.fault("v1", { status: 500, times: 1 });
  const broken = await fetch(url);
  assertEquals(broken.status, 500);
  await broken.body?.cancel();
  await registry.stop();
  for (const path of [`manifests/v1`, `blobs/${largest().digest}`]) {
    const away = await fetch(`http://${daemon.proxy}/v2/${NAME}/${path}?ns=${registry.host}`);
    assertEquals(away.status, 502);
    await away.body?.cancel();
  }
});

Deno.test("the registry is taken from the header, from ns, from the path, or from the configuration", async () => {
  await using registry = registryWithImage();
  await using other = startSmallRegistry();
  await using daemon = await spawnDaemon({
    config: {
      proxy: {
        tcpListen: { port: 0 },
        registryMirror: { url: registry.url, registries: [{ host: "registry.test", url: registry.url }] },
      },
    },
  });
  const status = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://${daemon.proxy}${path}`, { headers: { accept: MANIFEST, ...headers } });
    await response.body?.cancel();
    return response.status;
  };
  assertEquals(await status(`/v2/${NAME}/manifests/v1`), 200, "configured");
  assertEquals(await status(`/v2/${NAME}/manifests/v1?ns=registry.test`), 200, "ns");
  assertEquals(await status(`/v2/registry.test/${NAME}/manifests/v1`), 200, "path");
  assertEquals(await status(`/v2/${other.host}/${NAME}/manifests/v1`), 404, "another by path");
  assertEquals(await status(`/v2/${NAME}/manifests/v1`, { "x-dragonfly-registry": other.url }), 404, "header");
  assertEquals(await status(`/v2/${NAME}/manifests/v1`, { "x-lacewing-registry": registry.url }), 200, "own header");
  assertEquals(await status(`/v2/${NAME}/manifests/v1?ns=a%20b`), 400, "no host");
  assertEquals(await status(`/v2/${NAME}/manifests/v1?ns=${daemon.proxy}`), 508, "itself");
  assertEquals(other.requests.map(({ path }) => path), [`/v2/${NAME}/manifests/v1`, `/v2/${NAME}/manifests/v1`]);
});

Deno.test("the second of two users, who has no rights, gets no byte of a blob in the cache or the swarm", async () => {
  await using registry = registryWithImage({ auth: "basic" });
  await using cluster = await startCluster({ daemons: 2, daemon: { config: PROXY } });
  const { digest, bytes } = largest();
  const authorization = `Basic ${btoa("user:pass")}`;
  const [first, second] = cluster.daemons;
  const right = await fetch(blobUrl(first!, registry, digest), { headers: { authorization } });
  assertEquals([right.status, digestOf(await right.bytes())], [200, digest]);
  for (const daemon of [first!, second!]) {
    const others: Record<string, string>[] = [{}, { authorization: `Basic ${btoa("user:wrong")}` }];
    for (const headers of others) {
      const wrong = await fetch(blobUrl(daemon, registry, digest), { headers });
      assertEquals([wrong.status, wrong.headers.get("www-authenticate")], [401, `Basic realm="small registry"`]);
      const text = await wrong.text();
      assert(text.length < 200, text);
    }
  }
  const swarm = await fetch(blobUrl(second!, registry, digest), { headers: { authorization } });
  assertEquals([swarm.headers.get("x-lacewing-source"), digestOf(await swarm.bytes())], ["peers", digest]);
  assertEquals(registry.sent.blobs, bytes.length);
});

Deno.test("who may only list a repository's tags, or asks by a longer way, gets no blob of it", async () => {
  await using registry = registryWithImage({ auth: "basic" });
  await using open = startSmallRegistry();
  await using daemon = await spawnDaemon({ config: PROXY });
  const { digest } = largest();
  const authorization = `Basic ${btoa("user:pass")}`;
  await (await fetch(blobUrl(daemon, registry, digest), { headers: { authorization } })).body?.cancel();
  open.add(IMAGE, { name: "public", tag: "v1" });
  const paths = [
    `/v2/public/manifests/v1?ns=${open.host}`,
    `/v2/${registry.host}/${NAME}/blobs/${digest}`,
    `/v2/public/%2e%2e/${NAME}/blobs/${digest}?ns=${registry.host}`,
    `/v2/lab%2Fapp/blobs/${digest}?ns=${registry.host}`,
  ];
  const statuses = [];
  for (const path of paths) {
    const response = await fetch(`http://${daemon.proxy}${path}`, { headers: { accept: MANIFEST } });
    statuses.push(response.status);
    await response.body?.cancel();
  }
  assertEquals(statuses, [200, 401, 401, 401]);
});

Deno.test("an overlong tag is no matter for the swarm", async () => {
  await using registry = registryWithImage();
  await using daemon = await spawnDaemon({ config: PROXY });
  const { digest } = largest();
  const ask = async (tag: string) => {
    const response = await fetch(blobUrl(daemon, registry, digest), { headers: { "x-dragonfly-tag": tag } });
    assertEquals(digestOf(await response.bytes()), digest);
    return response.headers.get("x-lacewing-task");
  };
  assertEquals(await ask("t"), taskId(registry.blobUrl(NAME, digest), { tag: "t" }));
  assertEquals(await ask("t".repeat(257)), null);
});

Deno.test("wrong bytes at the registry never look like a whole blob", async () => {
  await using registry = registryWithImage();
  const { digest, bytes } = largest();
  const wrong = bytes.slice() as Uint8Array<ArrayBuffer>;
  wrong[wrong.length - 1]! ^= 1;
  registry.addBlob(NAME, { digest, bytes: wrong, mediaType: "application/octet-stream" });
  await using daemon = await spawnDaemon({ config: PROXY });
  const outcome = await fetch(blobUrl(daemon, registry, digest)).then(async (response) => {
    const status = response.status;
    return await response.bytes().then((body) => `${status} ${body.length}`, () => "cut");
  });
  assert(outcome === "cut" || outcome.startsWith("502 "), outcome);
});

Deno.test("a registry that stops in the middle is waited for; the answer goes on", async () => {
  await using registry = registryWithImage();
  await using daemon = await spawnDaemon({ config: PROXY });
  const { digest, bytes } = largest();
  // The engine's next requests fail while its first answer is read.
  registry.fault(digest, { status: 503, times: 3 });
  const response = await fetch(blobUrl(daemon, registry, digest));
  assertEquals([response.status, digestOf(await response.bytes())], [200, digest]);
  assertEquals(registry.sent.blobs, bytes.length);
});

Deno.test("manifests and blobs that are here are served while their public registry is away", async () => {
  await using registry = registryWithImage();
  await using cluster = await startCluster({ daemons: 1, daemon: { config: PROXY } });
  const [daemon] = cluster.daemons;
  const job = await cluster.manager.api("POST", "/api/v1/jobs", {
    type: "preheat",
    args: { type: "image", url: registry.manifestUrl(NAME, "v1"), platform: "all", scope: "all_peers" },
  });
  assertEquals((await jobEnded(cluster.manager, job.body.id)).status, "SUCCESS");
  const before = registry.sent.blobs;
  const base = `http://${daemon!.proxy}/v2/${NAME}`;
  const tag = await fetch(`${base}/manifests/v1?ns=${registry.host}`, { headers: { accept: MANIFEST } });
  assertEquals(tag.status, 200);
  await tag.body?.cancel();
  await registry.stop();
  const response = await fetch(`${base}/manifests/${IMAGE.index.digest}?ns=${registry.host}`);
  assertEquals([response.status, response.headers.get("content-type")], [200, MANIFEST]);
  assertEquals(digestOf(await response.bytes()), IMAGE.index.digest);
  for (const { digest } of IMAGE.blobs.values()) {
    const blob = await fetch(`${base}/blobs/${digest}?ns=${registry.host}`);
    assertEquals([blob.status, digestOf(await blob.bytes())], [200, digest]);
  }
  assertEquals(registry.sent.blobs, before);
});

for (const auth of ["none", "basic"] as const) {
  Deno.test(`after a crash of the daemon, while the registry (auth: ${auth}) is away, only what is public is served`, async () => {
    await using registry = registryWithImage({ auth });
    await using daemon = await spawnDaemon({ config: PROXY });
    const { digest, bytes } = largest();
    const headers: HeadersInit = auth === "none" ? {} : { authorization: `Basic ${btoa("user:pass")}` };
    const first = await fetch(blobUrl(daemon, registry, digest), { headers });
    assertEquals([first.status, digestOf(await first.bytes())], [200, digest]);
    await daemon.kill();
    await registry.stop();
    await daemon.start();
    for (const [fields, isServed] of [[{}, auth === "none"], [headers, auth === "none"]] as const) {
      const response = await fetch(blobUrl(daemon, registry, digest), { headers: fields });
      const body = await response.bytes();
      assertEquals([response.status, digestOf(body) === digest], isServed ? [200, true] : [502, false]);
    }
    registry.start();
    const again = await fetch(blobUrl(daemon, registry, digest), { headers });
    assertEquals([again.status, again.headers.get("x-lacewing-source")], [200, "local"]);
    assertEquals(digestOf(await again.bytes()), digest);
    const stranger = await fetch(blobUrl(daemon, registry, digest));
    await stranger.body?.cancel();
    assertEquals([stranger.status, registry.sent.blobs], [auth === "none" ? 200 : 401, bytes.length]);
  });
}
