// covers: peer/transfer/piece_client.ts
/** A trace over the wire between two hosts: piece client and upload server. */
import { assertEquals } from "@std/assert";
import { systemClock } from "../../../../peer/core/clock.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { RateLimiter } from "../../../../peer/core/rate_limit.ts";
import { createTracer, type EndedSpan, noTracer, type Tracer } from "../../../../peer/core/telemetry.ts";
import { createPieceClient } from "../../../../peer/transfer/piece_client.ts";
import { startUploadServer } from "../../../../peer/transfer/upload_server.ts";
import { GENERATION, MemoryProvider, patternBytes, TASK, until } from "./memory_provider.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;

/** Asks for the one piece with each of the contexts. */
async function ask(tracer: Tracer | undefined, contexts: (string | undefined)[]): Promise<void> {
  const provider = new MemoryProvider();
  provider.add(patternBytes(1000), { pieceLength: 1000 });
  await using server = startUploadServer(
    { provider, limiter: new RateLimiter(systemClock, 0), log: silentLogger, clock: systemClock, tracer },
    { listenIP: "127.0.0.1", port: 0, hostId: "server" },
  );
  await using client = createPieceClient({ hostId: "child", clock: systemClock, log: silentLogger });
  const address = `127.0.0.1:${server.address.port}`;
  let received = 0;
  for (const traceparent of contexts) {
    await client.fetch(
      { address, taskId: TASK, generation: GENERATION, number: 0, length: 1000, missing: 1, traceparent },
      (bytes) => void (received += bytes.length),
      { signal: new AbortController().signal },
    );
  }
  assertEquals(received, 1000 * contexts.length);
  await until(() => provider.openCount === 0);
}

Deno.test("upload server records a piece that was asked for within a trace, and no other", async () => {
  const spans: EndedSpan[] = [];
  await ask(createTracer((span) => spans.push(span)), [undefined, PARENT, undefined]);
  assertEquals(spans.map(({ name, kind, traceId, parentSpanId }) => [name, kind, traceId, parentSpanId]), [
    ["piece.serve", "server", TRACE, "b7ad6b7169203331"],
  ]);
  assertEquals(spans[0]?.attributes, {
    "lacewing.task_id": TASK,
    "lacewing.piece": 0,
    "lacewing.host_id": "server",
    "lacewing.child_id": "child",
  });
});

Deno.test("upload server without a tracer takes no notice of a context, nor of a broken one", async () => {
  for (const tracer of [undefined, noTracer]) await ask(tracer, [PARENT, "not a context"]);
});
