/** Contents of every shape, and origins that change or lie, through two daemons. */
import { assert, assertEquals } from "@std/assert";
import { pieceLengthFor } from "../../peer/core/piece.ts";
import { assertDownloaded, startCluster } from "../testutil/cluster.ts";
import { type OriginContent, startOrigin } from "../testutil/origin.ts";

const MIB = 1024 * 1024;
const PIECE = pieceLengthFor(0);

const SHAPES: Record<string, OriginContent> = {
  "empty": { size: 0 },
  "of 1 byte": { size: 1 },
  "of exactly one piece": { size: PIECE },
  "of one piece and one byte": { size: PIECE + 1 },
  "of one piece less one byte": { size: PIECE - 1 },
  "of exactly the first request": { size: MIB },
  "of 3 MiB without ranges": { size: 3 * MIB, ranges: false },
  "of 3 MiB without length": { size: 3 * MIB, chunked: true, ranges: false },
  "empty and without length": { size: 0, chunked: true, ranges: false },
  "of 3 MiB without validators": { size: 3 * MIB, etag: false },
  "of 3 MiB with a weak ETag only": { size: 3 * MIB, etag: 'W/"1"' },
  "of 3 MiB with a modification time only": {
    size: 3 * MIB,
    etag: false,
    lastModified: "Mon, 01 Jan 2024 00:00:00 GMT",
  },
  "whose origin fails twice with 503 first": { size: 3 * MIB, status: 503, failures: 2 },
  "whose origin cuts three answers": { size: 3 * MIB, cutAfter: 300_000, cuts: 3 },
};

Deno.test("a content of any shape is right on two hosts at once", async (test) => {
  await using origin = startOrigin();
  await using cluster = await startCluster({ daemons: 2 });
  for (const [index, [what, content]] of Object.entries(SHAPES).entries()) {
    await test.step(what, async () => {
      const path = `/shape-${index}`;
      const url = origin.put(path, { seed: index + 1, ...content });
      const digest = origin.digest(path);
      const results = await Promise.all(
        cluster.daemons.map((daemon) => daemon.client(url, "-O", daemon.out(`out-${index}`))),
      );
      for (const [number, daemon] of cluster.daemons.entries()) {
        await assertDownloaded(results[number]!, daemon.out(`out-${index}`), digest);
      }
    });
  }
});

Deno.test("content that changes at the origin during a wave is never mixed", async () => {
  await using origin = startOrigin({ bytesPerSecond: 8 * MIB });
  const url = origin.put("/f", { size: 16 * MIB, seed: 1 });
  await using cluster = await startCluster({ daemons: 3 });
  const before = origin.digest("/f");
  const downloads = cluster.daemons.map((daemon) => daemon.client(url, "-O", daemon.out()));
  await origin.sent(5 * MIB, "/f");
  origin.put("/f", { size: 16 * MIB, seed: 2 });
  const after = origin.digest("/f");
  const results = await Promise.all(downloads);
  for (const [index, daemon] of cluster.daemons.entries()) {
    const { code, stderr } = results[index]!;
    if (code === 0) await assertDownloaded(results[index]!, daemon.out(), after);
    else {
      assertEquals(code, 13, stderr);
      assertEquals(await Deno.stat(daemon.out()).catch(() => null), null, "half a file was left");
    }
  }
  assert(before !== after);
});

Deno.test("a digest that is wrong leaves no file, and one that is right is reported", async () => {
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 2 * MIB });
  await using cluster = await startCluster({ daemons: 1 });
  const [daemon] = cluster.daemons;
  const wrong = await daemon!.client(url, "-O", daemon!.out(), "--digest", `sha256:${"0".repeat(64)}`);
  assertEquals(wrong.code, 12, wrong.stderr);
  assertEquals(await Deno.stat(daemon!.out()).catch(() => null), null);
  const right = await daemon!.client(url, "-O", daemon!.out(), "--digest", origin.digest("/f"));
  await assertDownloaded(right, daemon!.out(), origin.digest("/f"));
  assert(right.stderr.includes(`verified ${origin.digest("/f").slice(0, 11)}`), right.stderr);
  const md5 = await daemon!.client(url, "-O", daemon!.out("md5"), "--digest", origin.digest("/f", "md5"));
  assertEquals(md5.code, 0, md5.stderr);
});

for (
  const [status, code] of [[404, 3], [410, 3], [401, 4], [403, 4], [500, 8], [429, 8]] as const
) {
  Deno.test(`an origin that answers ${status} ends the download with exit code ${code}`, async () => {
    await using origin = startOrigin();
    const url = origin.put("/f", { status, headers: status === 429 ? { "retry-after": "0" } : {} });
    await using cluster = await startCluster({ daemons: 1 });
    const [daemon] = cluster.daemons;
    const result = await daemon!.client(url, "-O", daemon!.out());
    assertEquals(result.code, code, result.stderr);
    assert(result.stderr.includes(String(status)), result.stderr);
    assertEquals(await Deno.stat(daemon!.out()).catch(() => null), null);
  });
}

Deno.test("a content that was replaced at the origin since is not taken from hosts that still have the old one", async () => {
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 3 * MIB, seed: 1 });
  await using cluster = await startCluster({ daemons: 2 });
  const [first, second] = cluster.daemons;
  await assertDownloaded(await first!.client(url, "-O", first!.out()), first!.out(), origin.digest("/f"));
  // A scheduler that is new does not know when the origin was asked last.
  await cluster.manager.kill("SIGKILL");
  await cluster.manager.start();
  await cluster.manager.hosts(2);
  origin.put("/f", { size: 3 * MIB, seed: 2 });
  await assertDownloaded(await second!.client(url, "-O", second!.out()), second!.out(), origin.digest("/f"));
});
