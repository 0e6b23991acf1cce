/** Trace contexts as the W3C writes them, spans, and which collector a URL means. */
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import {
  createTracer,
  type EndedSpan,
  formatTraceparent,
  noTracer,
  parseCollector,
  parseTraceparent,
  traced,
} from "../../../../peer/core/telemetry.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const PARENT = `00-${TRACE}-${SPAN}-01`;

const GOOD: [string, string, boolean][] = [
  ["sampled", PARENT, true],
  ["not sampled", `00-${TRACE}-${SPAN}-00`, false],
  ["other flags beside the sampled one", `00-${TRACE}-${SPAN}-03`, true],
  ["a later version", `01-${TRACE}-${SPAN}-01`, true],
  ["a later version with more fields", `cc-${TRACE}-${SPAN}-01-what-the-future-brings`, true],
];
for (const [claim, text, isSampled] of GOOD) {
  Deno.test(`parseTraceparent() reads ${claim}`, () => {
    assertEquals(parseTraceparent(text), { traceId: TRACE, spanId: SPAN, isSampled });
  });
}

const BAD: [string, string | undefined][] = [
  ["none", undefined],
  ["an empty one", ""],
  ["version ff", `ff-${TRACE}-${SPAN}-01`],
  ["version 00 with more fields", `${PARENT}-more`],
  ["upper case", PARENT.toUpperCase()],
  ["a trace id of zeros", `00-${"0".repeat(32)}-${SPAN}-01`],
  ["a span id of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
  ["a short trace id", `00-${TRACE.slice(1)}-${SPAN}-01`],
  ["a long span id", `00-${TRACE}-${SPAN}0-01`],
  ["no flags", `00-${TRACE}-${SPAN}`],
  ["white space around it", ` ${PARENT}`],
  ["a line end after it", `${PARENT}\n`],
];
for (const [claim, text] of BAD) {
  Deno.test(`parseTraceparent() takes ${claim} for no context`, () => assertEquals(parseTraceparent(text), null));
}

Deno.test("formatTraceparent() writes what parseTraceparent() reads", () => {
  for (const [, text] of GOOD.slice(0, 2)) assertEquals(formatTraceparent(parseTraceparent(text)!), text);
});

function recorder() {
  const spans: EndedSpan[] = [];
  return { spans, tracer: createTracer((span) => spans.push(span)) };
}

Deno.test("a span without a parent begins a trace, its children belong to it", () => {
  const { spans, tracer } = recorder();
  const above = tracer.start("above", { kind: "client", attributes: { a: 1 } });
  const below = tracer.start("below", { parent: above.traceparent });
  below.set({ b: true });
  below.end();
  above.end();
  const [child, parent] = spans;
  assert(child !== undefined && parent !== undefined);
  assertEquals([parent.parentSpanId, parent.kind, parent.attributes], [undefined, "client", { a: 1 }]);
  assertEquals([child.traceId, child.parentSpanId], [parent.traceId, parent.spanId]);
  assertEquals([child.kind, child.attributes], ["internal", { b: true }]);
  assert(child.spanId !== parent.spanId);
  assertMatch(parent.traceId, /^[0-9a-f]{32}$/);
  assert(child.startMs >= parent.startMs && child.endMs <= parent.endMs);
  assert(Math.abs(parent.startMs - Date.now()) < 60_000, "the time is that of the calendar");
});

Deno.test("a span ends once, with its first error", () => {
  const { spans, tracer } = recorder();
  const span = tracer.start("x");
  span.end(new Error("first"));
  span.end(new Error("second"));
  span.end();
  assertEquals(spans.map(({ error }) => (error as Error).message), ["first"]);
});

Deno.test("a parent that is not sampled is passed on, and nothing recorded", () => {
  const { spans, tracer } = recorder();
  const parent = `00-${TRACE}-${SPAN}-00`;
  const span = tracer.start("x", { parent });
  assertEquals(span.traceparent, parent);
  span.end();
  assertEquals(spans, []);
});

Deno.test("noTracer passes the caller's context on", () => {
  assertEquals(noTracer.start("x").traceparent, undefined);
  const span = noTracer.start("x", { parent: PARENT });
  span.set({ a: 1 });
  span.end();
  assertEquals([span.traceparent, noTracer.isOn], [PARENT, false]);
});

Deno.test("traced() ends the span with what the work gives or throws", async () => {
  const { spans, tracer } = recorder();
  assertEquals(await traced(tracer.start("good"), () => Promise.resolve(7)), 7);
  const error = new Error("no");
  const caught = await traced(tracer.start("bad"), () => Promise.reject(error)).catch((reason) => reason);
  assertEquals(caught, error);
  assertEquals(spans.map((span) => [span.name, span.error]), [["good", undefined], ["bad", error]]);
});

const COLLECTORS: [string, string, string | undefined][] = [
  ["http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces", undefined],
  ["http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces", undefined],
  [
    "https://traces.example.com/otlp/v1/traces?tenant=a#x",
    "https://traces.example.com/otlp/v1/traces?tenant=a",
    undefined,
  ],
  ["http://me:p%40ss@[::1]:4318", "http://[::1]:4318/v1/traces", `Basic ${btoa("me:p@ss")}`],
  ["http://me:%zz@host", "http://host/v1/traces", `Basic ${btoa("me:%zz")}`],
];
for (const [text, url, authorization] of COLLECTORS) {
  Deno.test(`parseCollector() reads ${text}`, () => assertEquals(parseCollector(text), { url, authorization }));
}

for (const text of ["", "127.0.0.1:4318", "localhost:4318", "grpc://h:4317", "/v1/traces", "unix:///x"]) {
  Deno.test(`parseCollector() refuses ${JSON.stringify(text)}`, () => {
    const error = assertThrows(() => parseCollector(text), LacewingError, "want the http or https URL");
    assertEquals(error.code, "usage");
  });
}
