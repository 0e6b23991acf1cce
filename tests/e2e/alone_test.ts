/** Without a scheduler, and two daemons that want the same place. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { assertDownloaded } from "../testutil/cluster.ts";
import { startOrigin } from "../testutil/origin.ts";
import { spawnDaemon } from "../testutil/process.ts";

const MIB = 1024 * 1024;

Deno.test("a daemon without any scheduler downloads from the origin, and then from its cache", async () => {
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 20 * MIB });
  await using daemon = await spawnDaemon();
  const first = await daemon.client(url, "-O", daemon.out());
  await assertDownloaded(first, daemon.out(), origin.digest("/f"));
  assertStringIncludes(first.stderr, "20.0 MiB from the origin");
  assert(origin.bytesSent("/f") <= 20 * MIB * 1.01);
  origin.put("/f", { status: 500 });
  const second = await daemon.client(url, "-O", daemon.out("second"));
  assertEquals(second.code, 0, second.stderr);
  assertStringIncludes(second.stderr, "from this host");
});

Deno.test("a daemon whose schedulers are not there downloads from the origin", async () => {
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 3 * MIB });
  await using daemon = await spawnDaemon({ schedulers: ["127.0.0.1:9"] });
  await assertDownloaded(await daemon.client(url, "-O", daemon.out()), daemon.out(), origin.digest("/f"));
});

Deno.test("without holders and with back-source disabled a download fails with exit code 5", async () => {
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 10 });
  await using daemon = await spawnDaemon();
  const result = await daemon.client(url, "-O", daemon.out(), "--disable-back-source");
  assertEquals(result.code, 5, result.stderr);
  assertEquals(origin.requests.length, 0);
});

Deno.test("a second daemon on one work home says so and leaves with exit code 1", async () => {
  await using daemon = await spawnDaemon();
  const error = await spawnDaemon({ workHome: daemon.folder }).then(() => null, (reason) => String(reason));
  assert(error !== null);
  assertStringIncludes(error, "already runs on work home");
});

Deno.test("a daemon starts where a killed one left its socket, and keeps its host id", async () => {
  await using daemon = await spawnDaemon();
  const id = daemon.hostId;
  await daemon.kill("SIGKILL");
  assert((await Deno.lstat(daemon.socket)).isSocket);
  await daemon.start();
  assertEquals(daemon.hostId, id);
});

Deno.test("a daemon stops cleanly on SIGTERM while it downloads", async () => {
  await using origin = startOrigin({ bytesPerSecond: MIB });
  const url = origin.put("/f", { size: 16 * MIB });
  await using daemon = await spawnDaemon();
  const download = daemon.client(url, "-O", daemon.out(), "--disable-back-source");
  const other = daemon.client(url, "-O", daemon.out("other"), "--timeout", "20s");
  await origin.sent(MIB, "/f");
  assertEquals(await daemon.stop(), 0);
  origin.setRate(0);
  assertEquals(await Deno.lstat(daemon.socket).catch(() => null), null, "the socket is still there");
  await Promise.all([download, other]);
});
