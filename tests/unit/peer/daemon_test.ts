/** A whole daemon in this process: what it opens, what it gives back, and how it leaves. */
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { validateDaemonConfig } from "../../../peer/config.ts";
import { LacewingError } from "../../../peer/core/errors.ts";
import { createLogger, silentLogger } from "../../../peer/core/log.ts";
import { VERSION } from "../../../peer/core/version.ts";
import { type PeerOptions, type RunningPeer, startPeer } from "../../../peer/daemon.ts";
import { connectDaemon } from "../../../peer/ipc/client.ts";
import { contentBytes } from "../../testutil/content.ts";
import { startOrigin } from "../../testutil/origin.ts";
import { Place } from "../../testutil/place.ts";

const KIB = 1024;

function options(place: Place, config: Record<string, unknown> = {}, over: Partial<PeerOptions> = {}): PeerOptions {
  const whole = {
    host: { listenIP: "127.0.0.1" },
    upload: { tcpListen: { port: 0 } },
    health: { tcpListen: { port: 0 } },
    ...config,
  };
  return {
    config: validateDaemonConfig(whole, "the test"),
    workHome: place.path("home"),
    socket: place.path("d.sock"),
    log: silentLogger,
    aliveTimeMs: 0,
    ...over,
  };
}

/** Downloads a content to its end. @returns its bytes on the daemon's disk, and where they came from */
async function download(peer: RunningPeer, url: string) {
  const request = {
    url,
    headers: [],
    tag: "",
    filter: "",
    digest: null,
    range: null,
    disableBackSource: false,
    rateLimitBytesPerSecond: 0,
  };
  await using run = peer.tasks.start(request, { signal: AbortSignal.timeout(30_000) });
  const { stats, path } = await run.finished;
  return { stats, bytes: await Deno.readFile(path) };
}

async function metric(peer: RunningPeer, name: string): Promise<number> {
  const text = await (await fetch(`http://${peer.addresses.health}/metrics`)).text();
  return Number(new RegExp(`^lacewing_daemon_${name} (\\S+)$`, "m").exec(text)?.[1]);
}

Deno.test("a daemon tells where it listens, and who it is", async () => {
  await using place = new Place();
  await using peer = await startPeer(options(place));
  const { host_id, socket, upload, proxy, health } = peer.addresses;
  assertMatch(host_id, /^[0-9a-f-]{36}$/);
  assertEquals([socket, proxy], [place.path("d.sock"), null]);
  assertMatch(upload, /^127\.0\.0\.1:\d+$/);
  assertMatch(health ?? "", /^127\.0\.0\.1:\d+$/);
  using connection = await connectDaemon(socket);
  assertEquals(await connection.status(), {
    version: VERSION,
    host_id,
    tasks: 0,
    schedulers: 0,
    proxy: null,
    pid: Deno.pid,
  });
});

Deno.test("an upload address of IPv6 is written as a URL wants it", async () => {
  await using place = new Place();
  const config = { host: { listenIP: "::1" } };
  await using peer = await startPeer(options(place, config));
  assertMatch(peer.addresses.upload, /^\[::1\]:\d+$/);
});

Deno.test("a daemon keeps contents over a restart, under dataDir where one is set", async () => {
  await using place = new Place();
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 300 * KIB });
  const config = { dataDir: place.path("contents") };
  let id: string;
  {
    await using peer = await startPeer(options(place, config));
    id = peer.addresses.host_id;
    assertEquals((await download(peer, url)).stats.from_source, 300 * KIB);
    assertEquals(await metric(peer, "source_bytes"), 300 * KIB);
    assertEquals(await metric(peer, "stored_bytes"), 300 * KIB);
  }
  const sent = origin.bytesSent("/f");
  await using peer = await startPeer(options(place, config));
  assertEquals(peer.addresses.host_id, id);
  const { stats } = await download(peer, url);
  assertEquals([stats.from_local, stats.from_source, origin.bytesSent("/f") - sent], [300 * KIB, 0, 0]);
  assert((await Deno.stat(place.path("contents"))).isDirectory);
  await assertRejects(() => Deno.stat(place.path("home/data")), Deno.errors.NotFound);
});

Deno.test("a daemon with keepStorage: false begins empty", async () => {
  await using place = new Place();
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 10 });
  for (let count = 0; count < 2; count++) {
    await using peer = await startPeer(options(place, { storage: { keepStorage: false } }));
    assertEquals((await download(peer, url)).stats.from_source, 10);
  }
});

Deno.test("a start that fails half-way gives everything back, so that the next one works", async () => {
  await using place = new Place();
  const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const port = taken.addr.port;
  await Deno.writeTextFile(place.path("no-pem"), "proxy: {}\n");
  const failures: [Record<string, unknown>, string, string][] = [
    [{ upload: { tcpListen: { port } } }, "network", "upload.tcpListen.port"],
    [{ health: { tcpListen: { port } } }, "network", "health.tcpListen.port"],
    [{ download: { source: { caCerts: ["/no/ca.pem"] } } }, "config_invalid", "/no/ca.pem"],
    [{ download: { source: { caCerts: [place.path("no-pem")] } } }, "config_invalid", "no certificate"],
    [{ scheduler: { netAddrs: ["a b"] } }, "config_invalid", "scheduler.netAddrs"],
    [{ dataDir: place.path("no-folder/x") }, "file", "no-folder/x"],
  ];
  for (const [config, code, wanted] of failures) {
    const error = await assertRejects(() => startPeer(options(place, config)), LacewingError) as LacewingError;
    assertEquals(error.code, code, error.message);
    assertStringIncludes(error.message, wanted);
  }
  taken.close();
  await using _peer = await startPeer(options(place, { upload: { tcpListen: { port } } }));
});

Deno.test("a second daemon on the work home, or on the socket, is refused and the first goes on", async () => {
  await using place = new Place();
  await using first = await startPeer(options(place));
  for (const over of [{}, { workHome: place.path("other") }]) {
    const error = await assertRejects(() => startPeer(options(place, {}, over)), LacewingError) as LacewingError;
    assertEquals(error.code, "already_running", error.message);
  }
  using connection = await connectDaemon(first.addresses.socket);
  assertEquals((await connection.status()).host_id, first.addresses.host_id);
});

Deno.test("a daemon without work is idle after its alive time, and not while a client is connected", async () => {
  await using place = new Place();
  const lines: string[] = [];
  const log = createLogger((line) => lines.push(line));
  await using peer = await startPeer(options(place, {}, { aliveTimeMs: 200, log }));
  let isIdle = false;
  void peer.idle.then(() => isIdle = true);
  {
    using _client = await connectDaemon(peer.addresses.socket);
    // One that began later and has no client shows that the time is over.
    const later = options(place, {}, { workHome: place.path("b"), socket: place.path("b.sock"), aliveTimeMs: 200 });
    await using other = await startPeer(later);
    await other.idle;
    assertEquals(isIdle, false);
  }
  await peer.idle;
  assert(lines.some((line) => line.includes("leaving after 200 ms without work")), lines.join("\n"));
});

Deno.test("two daemons that read the same content have the same bytes", async () => {
  await using place = new Place();
  await using origin = startOrigin();
  const url = origin.put("/f", { bytes: contentBytes(3, 0, 600 * KIB) });
  await using one = await startPeer(options(place));
  await using two = await startPeer(options(place, {}, { workHome: place.path("b"), socket: place.path("b.sock") }));
  const [first, second] = await Promise.all([download(one, url), download(two, url)]);
  assertEquals(first.bytes, contentBytes(3, 0, 600 * KIB));
  assertEquals(second.bytes, first.bytes);
});
