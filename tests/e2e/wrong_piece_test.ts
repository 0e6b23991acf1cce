/** A neighbour that sends wrong bytes. */
import { assert } from "@std/assert";
import { taskId } from "../../peer/core/task_id.ts";
import { metaOf } from "../../peer/task/generation.ts";
import { assertDownloaded, startCluster } from "../testutil/cluster.ts";
import { startLyingHost } from "../testutil/lying_host.ts";
import { startOrigin } from "../testutil/origin.ts";

const MIB = 1024 * 1024;

Deno.test("a neighbour that sends wrong bytes is found out, dropped, and the download is right", async () => {
  await using origin = startOrigin();
  const size = 16 * MIB;
  const url = origin.put("/f", { size, seed: 3 });
  await using cluster = await startCluster({ daemons: 2 });
  const [honest, victim] = cluster.daemons;
  await assertDownloaded(await honest!.client(url, "-O", honest!.out()), honest!.out(), origin.digest("/f"));
  const meta = metaOf({ url, contentLength: size, ranges: true, version: { etag: `"3-${size}"` } }, "");
  await using liar = await startLyingHost(cluster.manager.http, {
    task_id: taskId(url),
    url,
    tag: "",
    filter: "",
    meta,
  });
  const result = await victim!.client(
    url,
    "-O",
    victim!.out(),
    "--disable-back-source",
    "--digest",
    origin.digest("/f"),
  );
  await assertDownloaded(result, victim!.out(), origin.digest("/f"));
  assert(liar.sentBytes() > 0, "the liar was never asked: the test shows nothing");
  // A few pieces may be under way at once when the first is found wrong.
  assert(liar.sentBytes() <= 8 * meta.piece_length, `the liar was asked for ${liar.sentBytes()} bytes`);
  assert(victim!.log().includes("neighbour sent a wrong piece"));
});
