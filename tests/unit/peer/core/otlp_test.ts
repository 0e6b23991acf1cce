/** The exporter against a real HTTP server, and the JSON form of spans. */
import { assert, assertEquals } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { createLogger, silentLogger } from "../../../../peer/core/log.ts";
import { openTelemetry, type TelemetryLimits, toOtlp } from "../../../../peer/core/otlp.ts";
import type { EndedSpan } from "../../../../peer/core/telemetry.ts";
import { startCollector } from "../../../testutil/collector.ts";

const ENDED: EndedSpan = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  isSampled: true,
  name: "source.read",
  parentSpanId: undefined,
  kind: "client",
  startMs: 1_700_000_000_000.25,
  endMs: 1_700_000_000_001.5,
  attributes: {},
  error: undefined,
};

// deno-lint-ignore no-explicit-any
function spanOf(span: Partial<EndedSpan>): any {
  // deno-lint-ignore no-explicit-any
  return (toOtlp([{ ...ENDED, ...span }], "name") as any).resourceSpans[0].scopeSpans[0].spans[0];
}

Deno.test("toOtlp() names the service and writes ids in hex, kinds as numbers, times as text", () => {
  const message = JSON.parse(JSON.stringify(toOtlp([ENDED], "my-service")));
  const [resource] = message.resourceSpans;
  assertEquals(resource.resource.attributes[0], { key: "service.name", value: { stringValue: "my-service" } });
  assertEquals(resource.scopeSpans[0].spans, [{
    traceId: ENDED.traceId,
    spanId: ENDED.spanId,
    name: "source.read",
    kind: 3,
    startTimeUnixNano: "1700000000000250000",
    endTimeUnixNano: "1700000000001500000",
    attributes: [],
    status: {},
  }]);
});

Deno.test("toOtlp() writes each kind of attribute, and leaves out undefined ones", () => {
  const { attributes } = spanOf({ attributes: { text: "a", whole: 7, part: 0.5, flag: false, none: undefined } });
  assertEquals(attributes, [
    { key: "text", value: { stringValue: "a" } },
    { key: "whole", value: { intValue: "7" } },
    { key: "part", value: { doubleValue: 0.5 } },
    { key: "flag", value: { boolValue: false } },
  ]);
});

Deno.test("toOtlp() tells the code and the message of an error; a cancelled span has not failed", () => {
  const failed = spanOf({ error: new LacewingError("disk_full", "Cannot write") });
  assertEquals(failed.status, { code: 2, message: "Cannot write" });
  assertEquals(failed.attributes, [{ key: "error.type", value: { stringValue: "disk_full" } }]);
  assertEquals(spanOf({ error: new DOMException("stop", "AbortError") }).status, {});
});

Deno.test("toOtlp() blots out signed query values and passwords, and cuts long texts", () => {
  const text = JSON.stringify(spanOf({
    attributes: { url: "https://me:hunter2@h/x?X-Amz-Signature=abc123&a=1", long: "x".repeat(100_000) },
    error: new Error("got 403 for https://h/x?sig=topsecret"),
  }));
  for (const secret of ["hunter2", "abc123", "topsecret"]) assert(!text.includes(secret), secret);
  assert(text.includes("a=1") && text.length < 5_000);
});

Deno.test("disposing sends the spans that wait, with credentials from the URL", async () => {
  await using collector = startCollector();
  const url = new URL(collector.url);
  [url.username, url.password] = ["me", "secret"];
  {
    await using telemetry = openTelemetry({ collector: url.href, serviceName: "s", log: silentLogger });
    const above = telemetry.tracer.start("above");
    telemetry.tracer.start("below", { parent: above.traceparent }).end();
    above.end();
    telemetry.tracer.start("never ended");
  }
  assertEquals(collector.spans.map(({ name, service }) => [name, service]), [["below", "s"], ["above", "s"]]);
  assertEquals(collector.requests, [{ path: "/v1/traces", authorization: `Basic ${btoa("me:secret")}`, spans: 2 }]);
});

Deno.test("spans leave in batches, and before the end", async () => {
  await using collector = startCollector();
  await using telemetry = openTelemetry(
    { collector: collector.url, serviceName: "s", log: silentLogger },
    { batchMax: 10, delayMs: 10 },
  );
  for (let i = 0; i < 25; i++) telemetry.tracer.start("x").end();
  await collector.received(25);
  assertEquals(collector.requests.map(({ spans }) => spans), [10, 10, 5]);
});

/** Sends three spans to a collector that is not there as it should be. */
async function sendTo(collector: string, limits: TelemetryLimits = {}) {
  const lines: string[] = [];
  const log = createLogger((line) => lines.push(line), { level: "debug" });
  const telemetry = openTelemetry({ collector, serviceName: "s", log }, { batchMax: 1, ...limits });
  for (let i = 0; i < 3; i++) telemetry.tracer.start("x").end();
  const startMs = performance.now();
  await telemetry[Symbol.asyncDispose]();
  return { lines, dropped: telemetry.droppedCount, tookMs: performance.now() - startMs };
}

Deno.test("a collector that is not there costs one debug record, and the spans", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const { lines, dropped } = await sendTo(`http://127.0.0.1:${port}`);
  assertEquals(lines.filter((line) => line.includes("cannot send traces")).length, 1);
  assertEquals(dropped, 3);
});

Deno.test("a collector that refuses costs one debug record, and the spans", async () => {
  await using collector = startCollector({ status: 400 });
  const { lines, dropped } = await sendTo(collector.url);
  assertEquals(lines.filter((line) => line.includes("answered 400")).length, 1);
  assertEquals([dropped, collector.requests.length], [3, 1]);
});

Deno.test("a collector that never answers holds up the end no longer than the limit", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections: Deno.Conn[] = [];
  const accepting = (async () => {
    for await (const connection of listener) connections.push(connection);
  })();
  const { dropped, tookMs } = await sendTo(`http://127.0.0.1:${listener.addr.port}`, { flushTimeoutMs: 100 });
  assertEquals(dropped, 3);
  assert(tookMs < 1_000, `${tookMs} ms`);
  listener.close();
  await accepting;
  for (const connection of connections) connection.close();
});

Deno.test("spans beyond the queue are dropped and counted", async () => {
  await using collector = startCollector();
  const telemetry = openTelemetry({ collector: collector.url, serviceName: "s", log: silentLogger }, { queueMax: 5 });
  for (let i = 0; i < 8; i++) telemetry.tracer.start("x").end();
  await telemetry[Symbol.asyncDispose]();
  telemetry.tracer.start("too late").end();
  assertEquals([collector.spans.length, telemetry.droppedCount], [5, 4]);
});
