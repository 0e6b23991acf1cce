// covers: peer/proxy/content_stream.ts
/** What goes wrong around a pull: signed URLs that run out, slow readers, hosts and schedulers that die. */
import { assert, assertEquals } from "@std/assert";
import { createHash } from "node:crypto";
import { pieceLengthFor } from "../../peer/core/piece.ts";
import { PROBE_LENGTH } from "../../peer/task/source_reader.ts";
import { startCluster } from "../testutil/cluster.ts";
import { contentBytes, contentDigest } from "../testutil/content.ts";
import { startOrigin } from "../testutil/origin.ts";
import { type DaemonProcess, spawnDaemon } from "../testutil/process.ts";

const OPEN = { proxy: { tcpListen: { port: 0 } } };
const MIB = 1024 * 1024;

function blob(size: number, seed = 7) {
  const digest = contentDigest({ seed, size });
  return { size, seed, digest, path: `/v2/lab/app/blobs/${digest}` };
}

async function digestOf(response: Response): Promise<string> {
  const hash = createHash("sha256");
  for await (const part of response.body!) hash.update(part);
  return `sha256:${hash.digest("hex")}`;
}

function urlOf(daemon: DaemonProcess, origin: { host: string }, path: string): string {
  return `http://${daemon.proxy}${path}?ns=${origin.host}`;
}

/**
 * A registry that redirects each GET of a blob to storage by a URL that is good for a few requests, and a storage that refuses
 * credentials, HEAD, and URLs that have run out.
 */
function startSigned(content: ReturnType<typeof blob>, { usesPerSignature }: { usesPerSignature: number }) {
  const uses = new Map<string, number>();
  const seen = { refused: 0, leaked: 0, redirects: 0 };
  const storage = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const signature = new URL(request.url).searchParams.get("Signature") ?? "";
    const left = uses.get(signature) ?? 0;
    if (request.headers.has("authorization")) seen.leaked += 1;
    if (left <= 0 || request.method !== "GET") {
      seen.refused += 1;
      return new Response("expired", { status: 403 });
    }
    uses.set(signature, left - 1);
    const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
    const first = Number(match?.[1] ?? 0);
    const last = Math.min(Number(match?.[2] ?? content.size), content.size - 1);
    const headers: Record<string, string> = match === null
      ? {}
      : { "content-range": `bytes ${first}-${last}/${content.size}` };
    return new Response(contentBytes(content.seed, first, last - first + 1), {
      status: match === null ? 200 : 206,
      headers,
    });
  });
  const registry = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    if (request.headers.get("authorization") !== "Bearer good") {
      return new Response(null, { status: 401, headers: { "www-authenticate": 'Bearer realm="http://auth.test/"' } });
    }
    const signature = crypto.randomUUID();
    seen.redirects += 1;
    // Every third one has run out before it is used.
    uses.set(signature, seen.redirects % 3 === 0 ? 0 : usesPerSignature);
    const location = `http://127.0.0.1:${storage.addr.port}/data?Expires=1&Signature=${signature}`;
    return new Response(null, { status: 307, headers: { location } });
  });
  return {
    host: `127.0.0.1:${registry.addr.port}`,
    seen,
    async [Symbol.asyncDispose]() {
      await Promise.all([registry.shutdown(), storage.shutdown()]);
    },
  };
}

Deno.test("signed URLs that run out are asked for anew; credentials stay with the registry", async () => {
  const content = blob(9 * MIB + 5);
  await using signed = startSigned(content, { usesPerSignature: 1 });
  await using daemon = await spawnDaemon({ config: { ...OPEN, download: { source: { maxConnections: 1 } } } });
  const response = await fetch(urlOf(daemon, signed, content.path), { headers: { authorization: "Bearer good" } });
  assertEquals([response.status, await digestOf(response)], [200, content.digest]);
  assert(signed.seen.refused > 0, "no URL had run out");
  assertEquals(signed.seen.leaked, 0);
  assert(!daemon.log().includes("Signature="), "a signature stands in the log");
  const stranger = await fetch(urlOf(daemon, signed, content.path), { headers: { authorization: "Bearer bad" } });
  assertEquals([stranger.status, await stranger.text()], [401, ""]);
});

/** `LACEWING_LARGE=1` takes a content of 5 GiB. */
const LARGE = Deno.env.get("LACEWING_LARGE") === "1" ? 5 * 1024 * MIB : 1024 * MIB;

Deno.test(`a slow reader of ${LARGE / MIB} MiB holds neither memory nor the other readers`, async () => {
  const content = blob(LARGE);
  await using origin = startOrigin();
  origin.put(content.path, { size: content.size, seed: content.seed });
  await using daemon = await spawnDaemon({ config: OPEN });
  const url = urlOf(daemon, origin, content.path);
  const slow = await fetch(url);
  const reader = slow.body!.getReader();
  let taken = 0;
  const take = async () => taken += (await reader.read()).value?.length ?? 0;
  await take();
  // Besides one that reads all, one that is far ahead, and the slow one goes on a little now and then.
  const [fast, end] = await Promise.all([fetch(url), fetch(url, { headers: { range: "bytes=-1000" } })]);
  assertEquals(await end.bytes(), contentBytes(content.seed, content.size - 1000, 1000));
  const hash = createHash("sha256");
  let passed = 0;
  for await (const part of fast.body!) {
    hash.update(part);
    passed += part.length;
    if (passed / LARGE > taken / (2 * MIB)) await take();
  }
  assertEquals(`sha256:${hash.digest("hex")}`, content.digest);
  const peakMib = daemon.rssMaxBytes() / MIB;
  console.log(`peak memory of the daemon: ${peakMib.toFixed(0)} MiB`);
  assert(peakMib < 300, `the daemon took ${peakMib.toFixed(0)} MiB`);
  await reader.cancel();
  // Pieces larger than the first request, which told the length, are read anew.
  const again = pieceLengthFor(content.size) > PROBE_LENGTH ? PROBE_LENGTH : 0;
  assertEquals(origin.bytesSent(content.path), content.size + again);
  // Who hangs up costs nothing: the daemon answers the next one.
  const next = await fetch(url, { headers: { range: "bytes=5-9" } });
  assertEquals([next.status, await next.bytes()], [206, contentBytes(content.seed, 5, 5)]);
});

Deno.test("50 readers at once of 200 small blobs get them right, each read once", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon({ config: OPEN });
  const blobs = Array.from({ length: 200 }, (_, index) => blob(2000 + index * 17, index + 1));
  for (const { path, size, seed } of blobs) origin.put(path, { size, seed });
  let right = 0;
  await Promise.all(Array.from({ length: 50 }, async (_, reader) => {
    for (let step = 0; step < blobs.length; step++) {
      const one = blobs[(step + reader * 4) % blobs.length]!;
      const response = await fetch(urlOf(daemon, origin, one.path));
      assertEquals([response.status, await digestOf(response)], [200, one.digest]);
      right += one.size;
    }
  }));
  for (const { path, size } of blobs) assertEquals(origin.bytesSent(path), size);
  assertEquals(right, 50 * blobs.reduce((sum, { size }) => sum + size, 0));
  const peakMib = daemon.rssMaxBytes() / MIB;
  console.log(`peak memory of the daemon: ${peakMib.toFixed(0)} MiB`);
  assert(peakMib < 300, `the daemon took ${peakMib.toFixed(0)} MiB`);
});

Deno.test("a pull goes on when its only parent and the manager die in the middle", async () => {
  const content = blob(24 * MIB);
  await using origin = startOrigin();
  origin.put(content.path, { size: content.size, seed: content.seed });
  await using cluster = await startCluster({
    daemons: 2,
    daemon: { config: { ...OPEN, upload: { rateLimit: "8Mi" } } },
  });
  const [parent, child] = cluster.daemons;
  assertEquals(await digestOf(await fetch(urlOf(parent!, origin, content.path))), content.digest);
  const response = await fetch(urlOf(child!, origin, content.path));
  assertEquals(response.headers.get("x-lacewing-source"), "peers");
  await Promise.all([parent!.kill(), cluster.manager.kill()]);
  assertEquals(await digestOf(response), content.digest);
});

Deno.test("a manager that hangs is waited for once; pulls go on, and are the swarm's again when it speaks", async () => {
  const contents = [1, 2, 3, 4].map((seed) => blob(300_000, seed));
  await using origin = startOrigin();
  for (const { path, size, seed } of contents) origin.put(path, { size, seed });
  await using cluster = await startCluster({ daemons: 2, daemon: { config: OPEN } });
  const [parent, child] = cluster.daemons;
  const [shared, ...others] = contents;
  assertEquals(await digestOf(await fetch(urlOf(parent!, origin, shared!.path))), shared!.digest);
  Deno.kill(cluster.manager.pid, "SIGSTOP");
  for (const { path, digest } of others) {
    const response = await fetch(urlOf(child!, origin, path));
    assertEquals([response.headers.get("x-lacewing-source"), await digestOf(response)], ["origin", digest]);
  }
  assertEquals(child!.log().split("the scheduler is silent").length, 2);
  Deno.kill(cluster.manager.pid, "SIGCONT");
  await child!.logged("the scheduler speaks again");
  const again = await fetch(urlOf(child!, origin, shared!.path));
  assertEquals([again.headers.get("x-lacewing-source"), await digestOf(again)], ["peers", shared!.digest]);
});

Deno.test("an origin that breaks every answer off still gives the whole blob, to the same reader", async () => {
  const content = blob(6 * MIB + 11);
  await using origin = startOrigin();
  origin.put(content.path, { size: content.size, seed: content.seed, cutAfter: 700_000 });
  await using daemon = await spawnDaemon({ config: OPEN });
  const response = await fetch(urlOf(daemon, origin, content.path));
  assertEquals([response.status, await digestOf(response)], [200, content.digest]);
});

Deno.test("a disk that takes nothing does not stop a pull", async () => {
  const content = blob(3 * MIB);
  await using origin = startOrigin();
  origin.put(content.path, { size: content.size, seed: content.seed });
  await using daemon = await spawnDaemon({ config: OPEN });
  // A file where the contents' folder was: nothing can be stored.
  await Deno.remove(`${daemon.folder}/data`, { recursive: true });
  await Deno.writeTextFile(`${daemon.folder}/data`, "");
  const response = await fetch(urlOf(daemon, origin, content.path));
  assertEquals([response.status, await digestOf(response)], [200, content.digest]);
  assertEquals(response.headers.get("x-lacewing-source"), "origin");
  await daemon.logged("a reader goes on by another way");
});
