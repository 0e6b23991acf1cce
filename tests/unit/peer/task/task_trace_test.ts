// covers: peer/source/traced_source.ts
/** The spans of one task, around ports in memory. */
import { assertEquals, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { createTracer, type EndedSpan, parseTraceparent } from "../../../../peer/core/telemetry.ts";
import type { EngineDeps } from "../../../../peer/task/engine_deps.ts";
import type { TaskRequest, TaskResult, TaskRun } from "../../../../peer/task/task.ts";
import { TaskTrace } from "../../../../peer/task/task_trace.ts";
import { FakeNeighbourhood } from "../../../testutil/fake_neighbour.ts";
import { FakeSource } from "../../../testutil/fake_source.ts";

const PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const SIGNAL = new AbortController().signal;
const REQUEST: TaskRequest = {
  url: "http://origin/f",
  headers: [],
  tag: "",
  filter: "",
  digest: null,
  range: null,
  disableBackSource: false,
  rateLimitBytesPerSecond: 0,
  traceparent: PARENT,
};
const PIECE = { address: "host-1", taskId: "t", generation: "g", number: 0, length: 10, missing: 1 };

function rig() {
  const spans: EndedSpan[] = [];
  const source = new FakeSource(new Uint8Array(100));
  const neighbours = new FakeNeighbourhood(source.bytes, 10, new Map([["host-1", { pieces: [0] }]]));
  const trace = new TaskTrace(createTracer((span) => spans.push(span)), "t");
  // The other ports are passed on as they are.
  const ports = trace.wrap({ source, client: neighbours } as unknown as EngineDeps);
  return { spans, source, neighbours, trace, ports };
}

/** A run that ends when the test says so. */
function runOf() {
  const ending = Promise.withResolvers<TaskResult>();
  ending.promise.catch(() => {});
  const stats = { length: 10, from_local: 1, from_peers: 2, from_source: 7, peers: 1 };
  return {
    run: { taskId: "t", finished: ending.promise } as unknown as TaskRun,
    succeed: () => ending.resolve({ path: "/x", stats } as unknown as TaskResult),
    fail: (error: unknown) => ending.reject(error),
  };
}

const turn = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("a request's span is below the client's, and tells where the bytes came from", async () => {
  const { spans, trace } = rig();
  const { request, follow } = trace.begin(REQUEST);
  const { run, succeed } = runOf();
  assertEquals(follow(run), run);
  succeed();
  await turn();
  const [task] = spans;
  const above = parseTraceparent(PARENT)!;
  assertEquals([task?.name, task?.traceId, task?.parentSpanId], ["task", above.traceId, above.spanId]);
  assertEquals(parseTraceparent(request.traceparent)?.spanId, task?.spanId);
  assertEquals([task?.attributes["lacewing.from_source"], task?.attributes["lacewing.from_peers"]], [7, 2]);
});

Deno.test("a request that fails ends its span with the reason", async () => {
  const { spans, trace } = rig();
  const { run, fail } = runOf();
  trace.begin({ ...REQUEST, traceparent: undefined } as TaskRequest).follow(run);
  const error = new LacewingError("network", "gone");
  fail(error);
  await turn();
  assertEquals([spans[0]?.error, spans[0]?.parentSpanId], [error, undefined]);
});

Deno.test("reads of the origin are below the oldest request under way, else below the last one", async () => {
  const { spans, trace, ports } = rig();
  const read = async () => {
    await using body = await ports.source.open({ url: "http://origin/f", headers: [], range: null }, {
      signal: SIGNAL,
    });
    while (await body.read() !== null);
  };
  const [one, two] = [runOf(), runOf()];
  const first = trace.begin(REQUEST);
  first.follow(one.run);
  const second = trace.begin(REQUEST);
  second.follow(two.run);
  await read();
  one.succeed();
  await turn();
  await read();
  two.succeed();
  await turn();
  await read();
  const reads = spans.filter(({ name }) => name === "source.read");
  const idOf = ({ request }: typeof first) => parseTraceparent(request.traceparent)?.spanId;
  assertEquals(reads.map(({ parentSpanId }) => parentSpanId), [idOf(first), idOf(second), idOf(second)]);
  assertEquals(reads[0]?.attributes["lacewing.received"], 100);
});

Deno.test("a read of the origin that fails or breaks off says so", async () => {
  const { spans, source, ports } = rig();
  const open = () =>
    ports.source.open({ url: "http://h/f", headers: [], range: { offset: 20, length: 50 } }, { signal: SIGNAL });
  source.failures = [new LacewingError("tls", "no")];
  await assertRejects(open, LacewingError, "no");
  source.cutAfter = [5];
  await assertRejects(async () => {
    await using body = await open();
    while (await body.read() !== null);
  }, LacewingError);
  assertEquals(spans.map(({ error }) => (error as LacewingError).code), ["tls", "network"]);
  assertEquals(spans.map(({ attributes }) => attributes["lacewing.offset"]), [20, 20]);
  assertEquals(spans[1]?.attributes["lacewing.received"], 5);
});

Deno.test("a body keeps what it says of itself", async () => {
  const { ports } = rig();
  await using body = await ports.source.open(
    { url: "http://h/f", headers: [], range: { offset: 20, length: 50 } },
    { signal: SIGNAL },
  );
  const { contentLength, ranges, version, offset, length } = body;
  assertEquals([contentLength, ranges, version, offset, length], [100, true, { etag: '"1"' }, 20, 50]);
});

Deno.test("a piece is asked for with the context of its own span", async () => {
  const { spans, neighbours, trace, ports } = rig();
  const { request } = trace.begin(REQUEST);
  let received = 0;
  await ports.client.fetch(PIECE, (bytes) => void (received += bytes.length), { signal: SIGNAL });
  await assertRejects(() => ports.client.fetch({ ...PIECE, address: "nobody" }, () => {}, { signal: SIGNAL }));
  const [good, bad] = spans;
  assertEquals([received, good?.error, (bad?.error as LacewingError).code], [10, undefined, "peer_failed"]);
  assertEquals(good?.parentSpanId, parseTraceparent(request.traceparent)?.spanId);
  assertEquals(neighbours.requests.map(({ traceparent }) => parseTraceparent(traceparent)?.spanId), [
    good?.spanId,
    bad?.spanId,
  ]);
});
