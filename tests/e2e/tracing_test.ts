/** One trace over all processes that take part in a download, as a collector sees it. */
import { assert, assertEquals } from "@std/assert";
import { startCluster } from "../testutil/cluster.ts";
import { type CollectedSpan, startCollector } from "../testutil/collector.ts";
import { startOrigin } from "../testutil/origin.ts";
import { runClient, spawnDaemon } from "../testutil/process.ts";

const MIB = 1024 * 1024;
const OK = { code: 0 };

function named(spans: readonly CollectedSpan[], name: string): CollectedSpan[] {
  return spans.filter((span) => span.name === name);
}

Deno.test("one trace leads from the client through daemon, scheduler, peer and source", async () => {
  await using collector = startCollector();
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 4 * MIB });
  const args = ["--jaeger", collector.url];
  await using cluster = await startCluster({ daemons: 2, manager: { args }, daemon: { args } });
  const [holder, other] = cluster.daemons;
  const part = await holder!.client(url, "-O", holder!.out(), "--range", `0-${MIB - 1}`);
  assertEquals({ code: part.code }, OK, part.stderr);
  const result = await other!.client(url, "-O", other!.out(), ...args);
  assertEquals({ code: result.code }, OK, result.stderr);
  // What is left is sent when they stop.
  for (const process of [...cluster.daemons, cluster.manager]) await process.stop();

  const [root] = named(collector.spans, "download");
  assert(root !== undefined, "the client's span is there");
  assertEquals([root.service, root.parentSpanId], ["lacewing-client", undefined]);
  const trace = collector.spans.filter(({ traceId }) => traceId === root.traceId);
  const [task, ...more] = named(trace, "task");
  assertEquals([task?.service, task?.parentSpanId, more.length], ["lacewing-daemon", root.spanId, 0]);
  assertEquals(task?.attributes["lacewing.from_peers"], MIB);
  assertEquals(task?.attributes["lacewing.from_source"], 3 * MIB);

  const schedules = named(trace, "schedule");
  assert(schedules.length > 0);
  for (const span of schedules) assertEquals([span.service, span.parentSpanId], ["lacewing-manager", task?.spanId]);

  const reads = named(trace, "source.read");
  assert(reads.length > 0);
  for (const span of reads) assertEquals([span.service, span.parentSpanId], ["lacewing-daemon", task?.spanId]);

  const fetches = named(trace, "piece.fetch");
  for (const span of fetches) assertEquals(span.parentSpanId, task?.spanId);
  const serves = named(trace, "piece.serve");
  assert(serves.length >= 4, `${serves.length} pieces were sent`);
  const asked = new Set(fetches.map(({ spanId }) => spanId));
  for (const span of serves) {
    assert(asked.has(span.parentSpanId!), "each piece was sent for a request");
    assertEquals([span.service, span.attributes["lacewing.host_id"]], ["lacewing-daemon", holder!.hostId]);
  }
  assertEquals([root, task, ...schedules, ...reads].filter((span) => span?.status.code !== undefined), []);

  // The first download was asked for by a client that does not trace: it is a trace of its own.
  const [own] = named(collector.spans, "task").filter(({ traceId }) => traceId !== root.traceId);
  assertEquals(own?.parentSpanId, undefined);
});

Deno.test("a daemon that the client starts takes part in its trace", async () => {
  await using collector = startCollector();
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 1000 });
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(
      `${folder}/client.yaml`,
      "aliveTime: 100ms\nupload: { tcpListen: { port: 0 } }\nhealth: { tcpListen: { port: 0 } }\n",
    );
    const place = ["--daemon-sock", `${folder}/s`, "--workhome", folder, "--logdir", `${folder}/log`];
    const args = ["--config", `${folder}/client.yaml`, ...place, "--jaeger", collector.url, "--service-name", "ci"];
    const result = await runClient([url, "-O", `${folder}/out`, ...args]);
    assertEquals({ code: result.code }, OK, result.stderr);
    await collector.received(3);
    const [root] = named(collector.spans, "download");
    const [task] = named(collector.spans, "task");
    assertEquals([root?.service, task?.service], ["ci", "lacewing-daemon"]);
    assertEquals([task?.traceId, task?.parentSpanId], [root?.traceId, root?.spanId]);
    // It leaves by itself; its log is then complete.
    while (!(await Deno.readTextFile(`${folder}/log/core.log`)).includes("stopping")) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a client without a daemon traces its own reads, and a failure with its reason", async () => {
  await using collector = startCollector();
  await using origin = startOrigin();
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/file`, "");
    // No daemon can have its work home there.
    const place = ["--daemon-sock", `${folder}/file/s`, "--workhome", `${folder}/file/w`, "--logdir", folder];
    const args = [...place, "--jaeger", collector.url, "-O", `${folder}/out`];
    const good = await runClient([`${origin.put("/f", { size: 1000 })}?X-Signature=hidden1`, ...args]);
    assertEquals({ code: good.code }, OK, good.stderr);
    const bad = await runClient([origin.put("/none", { status: 404 }), ...args]);
    assertEquals(bad.code, 3, bad.stderr);
    const [first, second] = named(collector.spans, "download");
    const reads = named(collector.spans, "source.read");
    assertEquals(reads.map(({ parentSpanId }) => parentSpanId), [first?.spanId, second?.spanId]);
    assertEquals([first?.status, first?.attributes["lacewing.direct"]], [{}, true]);
    assertEquals([second?.status.code, second?.attributes["error.type"]], [2, "source_not_found"]);
    assert(!JSON.stringify(collector.spans).includes("hidden1"), "signed values stay here");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a collector that never answers fails no download, and holds it up by two seconds at most", async () => {
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 1000 });
  await using daemon = await spawnDaemon();
  using silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const collector = `http://127.0.0.1:${silent.addr.port}`;
  const startMs = performance.now();
  const plain = await daemon.client(url, "-O", daemon.out("a"));
  const plainMs = performance.now() - startMs;
  const traced = await daemon.client(url, "-O", daemon.out("b"), "--jaeger", collector, "--verbose");
  const tracedMs = performance.now() - startMs - plainMs;
  assertEquals([plain.code, traced.code], [0, 0], traced.stderr);
  assert(tracedMs < plainMs + 4_000, `${tracedMs} ms instead of ${plainMs} ms`);
  const log = await Deno.readTextFile(`${daemon.folder}/client-log/core.log`);
  assertEquals(log.split("cannot send traces").length, 2, log);
});
