// covers: peer/task/own_reads.ts, peer/task/source_work.ts, peer/task/piece_picker.ts
/** A reader of the end of a large content that is on its way, with and without a scheduler: judged by what the origin sent. */
import { assert, assertEquals } from "@std/assert";
import { startCluster } from "../testutil/cluster.ts";
import { startOrigin } from "../testutil/origin.ts";
import { spawnDaemon } from "../testutil/process.ts";

const MIB = 1024 * 1024;
const SIZE = 512 * MIB;
const RATE = 32 * MIB;
const PROXY = { proxy: { tcpListen: { port: 0 }, proxies: [{ regx: "/archive$" }] } };

for (const isManaged of [false, true]) {
  Deno.test(`the end of a large content comes before its middle ${isManaged ? "under" : "without"} a scheduler`, async () => {
    await using origin = startOrigin({ bytesPerSecond: RATE });
    const url = origin.put("/archive", { size: SIZE, etag: '"1"' });
    await using stack = new AsyncDisposableStack();
    const daemon = isManaged
      ? stack.use(await startCluster({ daemons: 1, daemon: { config: PROXY } })).daemons[0]!
      : stack.use(await spawnDaemon({ config: PROXY }));
    using client = Deno.createHttpClient({ proxy: { url: `http://${daemon.proxy}` } });
    const enough = new AbortController();
    const whole = await fetch(url, { client, signal: enough.signal });
    const reading = whole.body!.pipeTo(new WritableStream()).catch(() => {});
    await origin.sent(4 * MIB, "/archive");
    for (const offset of [SIZE - 1_000, SIZE - 100 * MIB - 7]) {
      const part = await fetch(url, { client, headers: { range: `bytes=${offset}-${offset + 999}` } });
      assertEquals(part.status, 206);
      assertEquals(await part.bytes(), origin.bytes("/archive", { offset, length: 1_000 }));
    }
    const sent = origin.bytesSent("/archive");
    assert(sent < SIZE / 2, `the origin had sent ${sent} of ${SIZE} B`);
    enough.abort();
    await reading;
  });
}
