/** Profiles of this very process over HTTP, read back by pprof's own tool where Go is installed. */
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { startPprofServer } from "../../../../peer/core/pprof_server.ts";
import { pprofTop } from "../../../testutil/pprof.ts";

function busyWork(ms: number): number {
  let sum = 0;
  for (const endMs = performance.now() + ms; performance.now() < endMs;) sum += Math.sqrt(sum + 1);
  return sum;
}

async function status(url: string, init: RequestInit = {}): Promise<[number, string]> {
  const response = await fetch(url, init);
  return [response.status, await response.text()];
}

Deno.test("pprof server gives a CPU profile that names the function that was busy", async () => {
  await using server = await startPprofServer(0);
  assertMatch(server.url, /^http:\/\/127\.0\.0\.1:\d+\/debug\/pprof\/$/);
  const asked = fetch(`${server.url}profile?seconds=1`);
  const timer = setInterval(() => busyWork(20), 25);
  const response = await asked;
  clearInterval(timer);
  assertEquals(response.status, 200);
  const top = await pprofTop(new Uint8Array(await response.arrayBuffer()));
  if (top !== null) assertMatch(top, /Type: cpu[\s\S]*busyWork/);
});

Deno.test("pprof server gives a heap profile that names who allocated", async () => {
  await using server = await startPprofServer(0);
  const kept: unknown[] = [];
  (function allocateMuch() {
    for (let i = 0; i < 200_000; i++) kept.push({ i, text: `item ${i}` });
  })();
  const response = await fetch(`${server.url}heap`);
  assertEquals(response.status, 200);
  const top = await pprofTop(new Uint8Array(await response.arrayBuffer()));
  if (top !== null) assertMatch(top, /Type: inuse_space[\s\S]*allocateMuch/);
  assertEquals(kept.length, 200_000);
});

Deno.test("pprof server takes one CPU profile at a time, and ends it when it stops", async () => {
  const server = await startPprofServer(0);
  const running = fetch(`${server.url}profile?seconds=120`);
  // The second one is refused as soon as the first has begun.
  let second: [number, string];
  do second = await status(`${server.url}profile?seconds=120`, { signal: AbortSignal.timeout(5_000) }); while (
    second[0] !== 409
  );
  assertMatch(second[1], /another profile is being taken/);
  const startMs = performance.now();
  await server[Symbol.asyncDispose]();
  const response = await running;
  assertEquals(response.status, 200);
  assert((await response.arrayBuffer()).byteLength > 0);
  assert(performance.now() - startMs < 5_000);
});

const REFUSED: [string, string, number, RequestInit?][] = [
  ["seconds=0", "profile?seconds=0", 400],
  ["seconds=121", "profile?seconds=121", 400],
  ["seconds=-1", "profile?seconds=-1", 400],
  ["seconds=1.5", "profile?seconds=1.5", 400],
  ["no number", "profile?seconds=abc", 400],
  ["an empty number", "profile?seconds=", 400],
  ["another profile", "goroutine", 404],
  ["another path", "../../etc/passwd", 404],
  ["another method", "heap", 405, { method: "POST" }],
];
Deno.test("pprof server refuses what it has not", async () => {
  await using server = await startPprofServer(0);
  for (const [claim, path, want, init] of REFUSED) {
    assertEquals((await status(`${server.url}${path}`, init))[0], want, claim);
  }
  assertEquals((await status(server.url))[0], 200);
});

Deno.test("pprof server is nothing for a page that has its own name resolve to loopback", async () => {
  await using server = await startPprofServer(0);
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(server.url).port) });
  const request = "GET /debug/pprof/heap HTTP/1.1\r\nhost: rebound.example.com\r\nconnection: close\r\n\r\n";
  await connection.write(new TextEncoder().encode(request));
  assertMatch(await new Response(connection.readable).text(), /^HTTP\/1.1 403 /);
});

Deno.test("startPprofServer() says that a port is taken", async () => {
  await using server = await startPprofServer(0);
  const port = Number(new URL(server.url).port);
  const error = await assertRejects(() => startPprofServer(port), LacewingError, `127.0.0.1:${port}`);
  assertEquals(error.code, "network");
});
