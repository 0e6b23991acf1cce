// covers: peer/transfer/upload_connection.ts
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { LineReader } from "../../../../peer/core/wire/json_lines.ts";
import { piecePath } from "../../../../peer/core/wire/piece.ts";
import { systemClock } from "../../../../peer/core/clock.ts";
import { createPieceClient } from "../../../../peer/transfer/piece_client.ts";
import { readResponseHead } from "../../../../peer/transfer/http_head.ts";
import type { UploadServer } from "../../../../peer/transfer/upload_server.ts";
import {
  GENERATION,
  MemoryProvider,
  patternBytes,
  readToEnd,
  serve,
  TASK,
  until,
  writeText,
} from "./memory_provider.ts";

const PIECE_LENGTH = 256 * 1024;
const CONTENT = patternBytes(2 * PIECE_LENGTH + 100);

function urlOf(server: UploadServer, path: string): string {
  return `http://127.0.0.1:${server.address.port}${path}`;
}

function connect(server: UploadServer): Promise<Deno.TcpConn> {
  return Deno.connect({ hostname: "127.0.0.1", port: server.address.port });
}

/** Sends raw text and reads all until the server closes. */
async function converse(server: UploadServer, text: string): Promise<string> {
  using conn = await connect(server);
  await writeText(conn, text);
  return await readToEnd(conn);
}

function contentProvider(): MemoryProvider {
  const provider = new MemoryProvider();
  provider.add(CONTENT, { pieceLength: PIECE_LENGTH });
  return provider;
}

Deno.test("upload server sends exactly the bytes of each piece, the last one shorter", async () => {
  const provider = contentProvider();
  await using server = serve(provider);
  for (const number of [0, 1, 2]) {
    const response = await fetch(urlOf(server, piecePath(TASK, GENERATION, number)), {
      headers: { "x-lacewing-host": "child", "x-lacewing-need": "3" },
    });
    assertEquals(response.status, 200);
    const want = CONTENT.subarray(number * PIECE_LENGTH, (number + 1) * PIECE_LENGTH);
    assertEquals(response.headers.get("content-length"), String(want.length));
    assertEquals(new Uint8Array(await response.arrayBuffer()), want);
  }
  await until(() => provider.openCount === 0);
  assertEquals(server.stats().sentBytes, CONTENT.length);
  assertEquals(server.stats().activeUploads, 0);
  assertEquals(provider.served.get("child"), CONTENT.length);
});

for (
  const [what, path, status] of [
    ["another task", piecePath("cd".repeat(32), GENERATION, 0), 404],
    ["another generation", piecePath(TASK, "g2", 0), 404],
    ["a piece that is not valid yet", piecePath(TASK, GENERATION, 1), 404],
    ["a piece beyond the end", piecePath(TASK, GENERATION, 7), 404],
    ["an unknown path", "/v1/other", 404],
    ["a task id that is none", "/v1/tasks/XYZ/g1/pieces/0", 404],
    ["its health", "/healthz", 200],
  ] as const
) {
  Deno.test(`upload server asked for ${what} answers ${status} in JSON`, async () => {
    const provider = new MemoryProvider();
    provider.add(CONTENT, { pieceLength: PIECE_LENGTH, held: [0] });
    await using server = serve(provider);
    const response = await fetch(urlOf(server, path));
    const body = await response.json();
    assertEquals(response.status, status);
    if (status === 404) assertEquals([body.code, typeof body.message], ["not_found", "string"]);
    await until(() => provider.openCount === 0);
  });
}

const PIECE = piecePath(TASK, GENERATION, 2);

for (
  const [what, text] of [
    ["garbage", "\x16\x03\x01 hello\r\n\r\n"],
    ["a POST", `POST ${PIECE} HTTP/1.1\r\n\r\n`],
    ["a body", `GET ${PIECE} HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc`],
    ["a chunked body", `GET ${PIECE} HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n`],
    ["a head over 8 KiB", `GET ${PIECE} HTTP/1.1\r\na: ${"b".repeat(9000)}\r\n\r\n`],
    ["an endless line", "G".repeat(20_000)],
    ["an exchange without upgrade", "GET /v1/exchange HTTP/1.1\r\nx-lacewing-host: h\r\n\r\n"],
    [
      "an exchange without host",
      "GET /v1/exchange HTTP/1.1\r\nconnection: Upgrade\r\nupgrade: lacewing-exchange/1\r\n\r\n",
    ],
  ] as const
) {
  Deno.test(`upload server answers ${what} with 400 and closes`, async () => {
    await using server = serve(contentProvider());
    const answer = await converse(server, text);
    assertMatch(answer, /^HTTP\/1\.1 400 /);
    assertMatch(answer, /"code":"protocol"/);
    await until(() => server.stats().connections === 0);
  });
}

Deno.test("upload server answers one request after the other over one connection, and closes when asked", async () => {
  await using server = serve(contentProvider());
  const answer = await converse(
    server,
    `GET ${PIECE} HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n`,
  );
  assertEquals(answer.match(/HTTP\/1\.1 200 OK/g)?.length, 3);
  assertEquals(answer.match(/connection: close/g)?.length, 1);
});

Deno.test("upload server closes a connection whose head does not end in time", async () => {
  await using server = serve(contentProvider(), { limits: { headTimeoutMs: 30 } });
  assertEquals(await converse(server, "GET /healthz HTTP/1.1\r\n"), "");
});

Deno.test("upload server closes a kept connection whose next head comes too slowly", async () => {
  await using server = serve(contentProvider(), { limits: { headTimeoutMs: 30 } });
  using conn = await connect(server);
  await writeText(conn, "GET /healthz HTTP/1.1\r\n\r\n");
  await conn.read(new Uint8Array(1024));
  await writeText(conn, "GET /he");
  assertEquals(await readToEnd(conn), "");
});

Deno.test("upload server closes a connection that stays idle", async () => {
  await using server = serve(contentProvider(), { limits: { idleTimeoutMs: 30 } });
  assertMatch(await converse(server, "GET /healthz HTTP/1.1\r\n\r\n"), /server"}$/);
});

Deno.test("upload server ends a connection whose reader takes nothing", async () => {
  const provider = new MemoryProvider();
  provider.add(patternBytes(32 * 1024 * 1024), { pieceLength: 16 * 1024 * 1024 });
  await using server = serve(provider, { limits: { writeStallMs: 50 } });
  using conn = await connect(server);
  await writeText(conn, `GET ${piecePath(TASK, GENERATION, 0)} HTTP/1.1\r\n\r\n`);
  await until(() => server.stats().connections === 1);
  await until(() => server.stats().connections === 0);
  assert(server.stats().sentBytes < 16 * 1024 * 1024);
  assertEquals([server.stats().activeUploads, provider.openCount], [0, 0]);
});

Deno.test("upload server frees slot and task when the child vanishes in the middle", async () => {
  const provider = new MemoryProvider();
  provider.add(patternBytes(16 * 1024 * 1024), { pieceLength: 16 * 1024 * 1024 });
  await using server = serve(provider);
  const conn = await connect(server);
  await writeText(conn, `GET ${piecePath(TASK, GENERATION, 0)} HTTP/1.1\r\n\r\n`);
  await conn.read(new Uint8Array(1000));
  conn.close();
  await until(() => server.stats().connections === 0);
  assertEquals([server.stats().activeUploads, provider.openCount], [0, 0]);
});

Deno.test("upload server keeps the slot until the child says that it has the piece", async () => {
  await using server = serve(contentProvider(), { concurrent: 1 });
  const conn = await connect(server);
  await writeText(conn, `GET ${PIECE} HTTP/1.1\r\nx-lacewing-ack: 1\r\n\r\n`);
  const reader = new LineReader(conn);
  assertEquals((await readResponseHead(reader))?.status, 200);
  for (let left = 100; left > 0;) left -= await reader.readBytes(new Uint8Array(left)) ?? left;
  assertEquals(server.stats().activeUploads, 1);
  await writeText(conn, "\r\n");
  await until(() => server.stats().activeUploads === 0);
  conn.close();
});

Deno.test("upload server frees the slot of a child that never says so after a moment, and goes on with it", async () => {
  await using server = serve(contentProvider(), { concurrent: 1, limits: { ackWaitMs: 20 } });
  const conn = await connect(server);
  const request = `GET ${PIECE} HTTP/1.1\r\nx-lacewing-ack: 1\r\n\r\n`;
  await writeText(conn, request);
  const reader = new LineReader(conn);
  await readResponseHead(reader);
  for (let left = 100; left > 0;) left -= await reader.readBytes(new Uint8Array(left)) ?? left;
  await until(() => server.stats().activeUploads === 0);
  await writeText(conn, "\r\n" + request);
  assertEquals((await readResponseHead(reader))?.status, 200);
  conn.close();
});

Deno.test("upload server closes a connection that says something else than it promised", async () => {
  await using server = serve(contentProvider(), { concurrent: 1 });
  const conn = await connect(server);
  const request = `GET ${PIECE} HTTP/1.1\r\nx-lacewing-ack: 1\r\n\r\n`;
  await writeText(conn, request + request);
  const reader = new LineReader(conn);
  await readResponseHead(reader);
  for (let left = 100; left > 0;) left -= await reader.readBytes(new Uint8Array(left)) ?? left;
  assertEquals((await readResponseHead(reader))?.status, 400);
  await until(() => server.stats().connections === 0 && server.stats().activeUploads === 0);
  conn.close();
});

Deno.test("upload server with every slot taken answers 503 with the time to wait", async () => {
  const provider = contentProvider();
  const gate = Promise.withResolvers<void>();
  provider.beforeRead = () => gate.promise;
  await using server = serve(provider, { concurrent: 1, limits: { slotWaitMs: 20, retryAfterMs: 250 } });
  const first = fetch(urlOf(server, PIECE));
  await until(() => server.stats().activeUploads === 1);
  const refused = await fetch(urlOf(server, PIECE));
  assertEquals([refused.status, refused.headers.get("retry-after-ms")], [503, "250"]);
  assertEquals((await refused.json()).code, "unavailable");
  gate.resolve();
  assertEquals((await (await first).bytes()).length, 100);
});

Deno.test("upload server gives the free slot to the child that misses the most", async () => {
  const provider = contentProvider();
  const gate = Promise.withResolvers<void>();
  provider.beforeRead = () => gate.promise;
  await using server = serve(provider, { concurrent: 1 });
  const order: string[] = [];
  const ask = async (host: string, need: number) => {
    const headers = { "x-lacewing-host": host, "x-lacewing-need": String(need) };
    await (await fetch(urlOf(server, PIECE), { headers })).bytes();
    order.push(host);
  };
  const first = ask("first", 1);
  await until(() => server.stats().activeUploads === 1);
  const waiting = [ask("nearly-done", 2)];
  // Holdings tell that the requests have arrived: those that wait hold their task, too.
  await until(() => provider.openCount === 2);
  waiting.push(ask("needy", 900));
  await until(() => provider.openCount === 3);
  gate.resolve();
  await Promise.all([first, ...waiting]);
  assertEquals(order, ["first", "needy", "nearly-done"]);
});

Deno.test("upload server gives the free slot to a child that brings the piece over for its idc", async () => {
  const provider = contentProvider();
  const gate = Promise.withResolvers<void>();
  provider.beforeRead = () => gate.promise;
  await using server = serve(provider, { concurrent: 1 });
  const order: string[] = [];
  const ask = async (hostId: string, crosses: boolean) => {
    await using client = createPieceClient({ hostId, clock: systemClock, log: silentLogger }, {});
    const address = `127.0.0.1:${server.address.port}`;
    const piece = {
      address,
      taskId: TASK,
      generation: GENERATION,
      number: 0,
      length: PIECE_LENGTH,
      missing: 5,
      crosses,
    };
    await client.fetch(piece, () => {}, { signal: new AbortController().signal });
    order.push(hostId);
  };
  const asked = [ask("first", false)];
  for (const [hostId, crosses] of [["needy", false], ["carrier", true]] as const) {
    await until(() => provider.openCount === asked.length);
    asked.push(ask(hostId, crosses));
  }
  await until(() => provider.openCount === 3);
  gate.resolve();
  await Promise.all(asked);
  assertEquals(order, ["first", "carrier", "needy"]);
});

Deno.test("upload server does not send a piece that was dropped while the request waited", async () => {
  const provider = contentProvider();
  const gate = Promise.withResolvers<void>();
  provider.beforeRead = () => gate.promise;
  await using server = serve(provider, { concurrent: 1 });
  const first = fetch(urlOf(server, PIECE));
  await until(() => server.stats().activeUploads === 1);
  const second = fetch(urlOf(server, piecePath(TASK, GENERATION, 0)));
  await until(() => provider.openCount === 2);
  const holding = await provider.hold(TASK, GENERATION);
  holding?.pieces.delete(0);
  await holding?.[Symbol.asyncDispose]();
  gate.resolve();
  await (await first).bytes();
  const refused = await second;
  assertEquals(refused.status, 404);
  await refused.body?.cancel();
});

Deno.test("upload server keeps below its rate and still sends every few moments", async () => {
  const provider = contentProvider();
  await using server = serve(provider, { bytesPerSecond: 1024 * 1024 });
  const beganAtMs = performance.now();
  const response = await fetch(urlOf(server, piecePath(TASK, GENERATION, 0)));
  let longestMs = 0;
  let lastMs = performance.now();
  let length = 0;
  for await (const chunk of response.body ?? []) {
    longestMs = Math.max(longestMs, performance.now() - lastMs);
    lastMs = performance.now();
    length += chunk.length;
  }
  assertEquals(length, PIECE_LENGTH);
  // 256 KiB less the burst of 0.1 s at 1 MiB/s are 150 ms.
  assert(performance.now() - beganAtMs > 140);
  assert(longestMs < 400, `a gap of ${longestMs} ms`);
});

Deno.test("upload server closes rather than send a piece that it cannot read", async () => {
  const provider = contentProvider();
  provider.beforeRead = () => Promise.reject(new LacewingError("file", "Cannot read: the disk is gone"));
  await using server = serve(provider);
  assertEquals(await converse(server, `GET ${PIECE} HTTP/1.1\r\n\r\n`), "");
});

Deno.test("upload server turns away connections above its bound", async () => {
  await using server = serve(contentProvider(), { limits: { connectionsMax: 1 } });
  using _first = await connect(server);
  await until(() => server.stats().connections === 1);
  assertEquals(await converse(server, ""), "");
});

Deno.test("upload server that stops ends transfers and waiting requests", async () => {
  const provider = contentProvider();
  const gate = Promise.withResolvers<void>();
  provider.beforeRead = () => gate.promise;
  const server = serve(provider, { concurrent: 1 });
  const conns = [await connect(server), await connect(server), await connect(server)];
  for (const conn of conns.slice(0, 2)) await writeText(conn, `GET ${PIECE} HTTP/1.1\r\n\r\n`);
  await until(() => provider.openCount === 2);
  const stopped = server[Symbol.asyncDispose]();
  gate.resolve();
  await stopped;
  assertEquals([provider.openCount, server.stats().connections, server.stats().activeUploads], [0, 0, 0]);
  for (const conn of conns) conn.close();
});

Deno.test("startUploadServer() names the address that is taken", async () => {
  await using server = serve(contentProvider());
  const { port } = server.address;
  const error = assertThrows(() => serve(contentProvider(), { port }), LacewingError, String(port));
  assertEquals(error.code, "network");
});
