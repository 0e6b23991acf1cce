// covers: peer/transfer/piece_connection.ts
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { systemClock } from "../../../../peer/core/clock.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { createPieceClient, type PieceClientConfig } from "../../../../peer/transfer/piece_client.ts";
import type { PieceClient, PieceRequest, PieceSink } from "../../../../peer/transfer/piece_transfer.ts";
import {
  fakeNeighbour,
  GENERATION,
  MemoryProvider,
  patternBytes,
  readHeadText,
  serve,
  TASK,
  until,
  writeText,
} from "./memory_provider.ts";

const NEVER = { signal: new AbortController().signal };
const PIECE_LENGTH = 1024 * 1024;

function clientOf(config: PieceClientConfig = {}): PieceClient {
  return createPieceClient({ hostId: "child", clock: systemClock, log: silentLogger }, config);
}

function requestOf(address: string, number: number, length: number): PieceRequest {
  return { address, taskId: TASK, generation: GENERATION, number, length, missing: 5 };
}

/** A sink that keeps a copy of what it gets. */
function collector(): { bytes(): Uint8Array; sink: PieceSink; calls: number } {
  const parts: Uint8Array[] = [];
  const result = {
    calls: 0,
    sink: (bytes: Uint8Array) => {
      result.calls += 1;
      parts.push(bytes.slice());
    },
    bytes: () => Uint8Array.from(parts.flatMap((part) => [...part])),
  };
  return result;
}

function answer(body: string, length = body.length): string {
  return `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n${body}`;
}

async function failureOf(work: Promise<unknown>): Promise<LacewingError> {
  return await assertRejects(() => work, LacewingError);
}

Deno.test("piece client gets exactly the piece, over one connection for all", async () => {
  const content = patternBytes(2 * PIECE_LENGTH + 1);
  const provider = new MemoryProvider();
  provider.add(content, { pieceLength: PIECE_LENGTH });
  await using server = serve(provider);
  await using client = clientOf();
  const address = `127.0.0.1:${server.address.port}`;
  for (const [number, length] of [[0, PIECE_LENGTH], [1, PIECE_LENGTH], [2, 1]] as const) {
    const got = collector();
    await client.fetch(requestOf(address, number, length), got.sink, NEVER);
    assertEquals(
      got.bytes().length === length &&
        got.bytes().every((byte, at) => byte === content[number * PIECE_LENGTH + at]),
      true,
    );
  }
  assertEquals(server.stats().connections, 1);
  assertEquals(provider.served.get("child"), content.length);
});

Deno.test("piece client does not fill the buffer before a slow sink is done with it", async () => {
  const content = patternBytes(PIECE_LENGTH);
  const provider = new MemoryProvider();
  provider.add(content, { pieceLength: PIECE_LENGTH });
  await using server = serve(provider);
  await using client = clientOf();
  let at = 0;
  const wrong: number[] = [];
  await client.fetch(requestOf(`127.0.0.1:${server.address.port}`, 0, PIECE_LENGTH), async (bytes) => {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
    if (!bytes.every((byte, index) => byte === content[at + index])) wrong.push(at);
    at += bytes.length;
  }, NEVER);
  assertEquals([at, wrong], [PIECE_LENGTH, []]);
});

Deno.test("piece client does not blame the neighbour for a slow sink", async () => {
  const provider = new MemoryProvider();
  provider.add(patternBytes(PIECE_LENGTH), { pieceLength: PIECE_LENGTH });
  await using server = serve(provider);
  await using client = clientOf({ stallTimeoutMs: 40 });
  const address = `127.0.0.1:${server.address.port}`;
  await client.fetch(requestOf(address, 0, PIECE_LENGTH), () => systemClock.sleep(60), NEVER);
});

Deno.test("piece client fetches many pieces at once and keeps few connections", async () => {
  const content = patternBytes(32 * 1000);
  const provider = new MemoryProvider();
  provider.add(content, { pieceLength: 1000 });
  await using server = serve(provider);
  await using client = clientOf({ idleConnectionsPerNeighbour: 3 });
  const address = `127.0.0.1:${server.address.port}`;
  // Four at once is what a host asks of one neighbour.
  await Promise.all([0, 1, 2, 3].map(async (lane) => {
    for (let number = lane; number < 32; number += 4) {
      const got = collector();
      await client.fetch(requestOf(address, number, 1000), got.sink, NEVER);
      assertEquals(got.bytes(), content.subarray(number * 1000, (number + 1) * 1000));
    }
  }));
  await until(() => server.stats().connections === 3);
});

Deno.test("piece client closes connections that stay idle", async () => {
  const provider = new MemoryProvider();
  provider.add(patternBytes(10), { pieceLength: 10 });
  await using server = serve(provider);
  await using client = clientOf({ idleTimeoutMs: 30 });
  await client.fetch(requestOf(`127.0.0.1:${server.address.port}`, 0, 10), () => {}, NEVER);
  assertEquals(server.stats().connections, 1);
  await until(() => server.stats().connections === 0);
});

for (
  const [what, number, status] of [["does not hold the piece", 1, "404"], ["has no free slot", 0, "503"]] as const
) {
  Deno.test(`piece client says unavailable when the neighbour ${what}, and keeps the connection`, async () => {
    const provider = new MemoryProvider();
    provider.add(patternBytes(20), { pieceLength: 10, held: [0] });
    const gate = Promise.withResolvers<void>();
    provider.beforeRead = () => gate.promise;
    await using server = serve(provider, { concurrent: 1, limits: { slotWaitMs: 10 } });
    await using client = clientOf();
    const address = `127.0.0.1:${server.address.port}`;
    const first = client.fetch(requestOf(address, 0, 10), () => {}, NEVER);
    await until(() => server.stats().activeUploads === 1);
    const error = await failureOf(client.fetch(requestOf(address, number, 10), () => {}, NEVER));
    assertEquals(error.code, "unavailable");
    assertMatch(error.message, new RegExp(`${address} answered ${status} \\(`));
    gate.resolve();
    await first;
    assertEquals(server.stats().connections, 2);
  });
}

for (
  const [what, text, pattern] of [
    ["a shorter length", answer("abc"), /sent 3 bytes instead of 10/],
    ["a longer length", answer("a".repeat(11)), /sent 11 bytes instead of 10/],
    ["no length", "HTTP/1.1 200 OK\r\n\r\n0123456789", /sent no bytes instead of 10/],
    ["a chunked body", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n", /sent no/],
    ["another status", "HTTP/1.1 500 Oops\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}", /answered 500/],
    ["garbage", "SSH-2.0-OpenSSH\r\n", /want HTTP/],
    ["an endless head", "HTTP/1.1 200 OK\r\n" + "a: b\r\n".repeat(3000), /twice|more than/],
    ["an endless line", "x".repeat(20_000), /longer than/],
    ["a refusal without end", "HTTP/1.1 503 No\r\ncontent-length: 99999999\r\n\r\n", /answered 503/],
  ] as const
) {
  Deno.test(`piece client refuses ${what} and drops the connection`, async () => {
    await using neighbour = fakeNeighbour(async (conn) => {
      await readHeadText(conn);
      await writeText(conn, text);
    });
    await using client = clientOf();
    const got = collector();
    const error = await failureOf(client.fetch(requestOf(neighbour.address, 0, 10), got.sink, NEVER));
    assertEquals(error.code, what.startsWith("a refusal") ? "unavailable" : "peer_failed");
    assertMatch(error.message, pattern);
    assertEquals(got.calls, 0);
    await failureOf(client.fetch(requestOf(neighbour.address, 0, 10), got.sink, NEVER));
    assertEquals(neighbour.connectionCount, 2);
  });
}

Deno.test("piece client fails when the neighbour closes in the middle of a piece", async () => {
  await using neighbour = fakeNeighbour(async (conn) => {
    await readHeadText(conn);
    await writeText(conn, answer("01234", 10));
    conn.close();
  });
  await using client = clientOf();
  const error = await failureOf(client.fetch(requestOf(neighbour.address, 0, 10), () => {}, NEVER));
  assertEquals(error.code, "peer_failed");
  assertMatch(error.message, /in the middle of the piece/);
  assertEquals(neighbour.connectionCount, 1);
});

Deno.test("piece client takes no more than the piece, and does not use the connection again", async () => {
  await using neighbour = fakeNeighbour(async (conn) => {
    while (await readHeadText(conn) !== "") await writeText(conn, answer("0123456789 and more", 10));
  });
  await using client = clientOf();
  for (let turn = 0; turn < 2; turn++) {
    const got = collector();
    await client.fetch(requestOf(neighbour.address, 0, 10), got.sink, NEVER);
    assertEquals(new TextDecoder().decode(got.bytes()), "0123456789");
  }
  assertEquals(neighbour.connectionCount, 2);
});

for (const sent of ["", "HTTP/1.1 200 OK\r\n", answer("01234", 10)]) {
  Deno.test(`piece client gives up a neighbour that stalls after ${sent.length} bytes`, async () => {
    await using neighbour = fakeNeighbour(async (conn) => {
      await readHeadText(conn);
      await writeText(conn, sent);
    });
    await using client = clientOf({ stallTimeoutMs: 30 });
    const error = await failureOf(client.fetch(requestOf(neighbour.address, 0, 10), () => {}, NEVER));
    assertEquals(error.code, "peer_failed");
    assertMatch(error.message, /sent no byte for 30 ms/);
    assertEquals(neighbour.connectionCount, 1);
  });
}

Deno.test("piece client fails when nobody listens", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const address = `127.0.0.1:${listener.addr.port}`;
  listener.close();
  await using client = clientOf();
  const error = await failureOf(client.fetch(requestOf(address, 0, 10), () => {}, NEVER));
  assertEquals(error.code, "peer_failed");
});

Deno.test("piece client asks once more over a new connection when the kept one is dead", async () => {
  await using neighbour = fakeNeighbour(async (conn) => {
    await readHeadText(conn);
    await writeText(conn, answer("0123456789"));
    conn.close();
  });
  await using client = clientOf();
  for (let turn = 0; turn < 3; turn++) await client.fetch(requestOf(neighbour.address, 0, 10), () => {}, NEVER);
  assertEquals(neighbour.connectionCount, 3);
});

Deno.test("piece client does not ask again when a kept connection breaks after the first byte", async () => {
  await using neighbour = fakeNeighbour(async (conn) => {
    await readHeadText(conn);
    await writeText(conn, answer("0123456789"));
    await readHeadText(conn);
    await writeText(conn, answer("012", 10));
    conn.close();
  });
  await using client = clientOf();
  await client.fetch(requestOf(neighbour.address, 0, 10), () => {}, NEVER);
  const error = await failureOf(client.fetch(requestOf(neighbour.address, 0, 10), () => {}, NEVER));
  assertEquals([error.code, neighbour.connectionCount], ["peer_failed", 1]);
});

Deno.test("piece client that is aborted closes the connection and rethrows the reason", async () => {
  const closed = Promise.withResolvers<void>();
  await using neighbour = fakeNeighbour(async (conn) => {
    await readHeadText(conn);
    await writeText(conn, answer("01234", 10));
    await readHeadText(conn).catch(() => {});
    closed.resolve();
  });
  await using client = clientOf();
  const controller = new AbortController();
  const reason = new DOMException("the loser of the end game", "AbortError");
  const work = client.fetch(requestOf(neighbour.address, 0, 10), () => {}, { signal: controller.signal });
  await until(() => neighbour.connectionCount === 1);
  controller.abort(reason);
  assert(await work.catch((error) => error) === reason);
  await closed.promise;
});

Deno.test("piece client that is aborted before it begins dials nobody", async () => {
  await using neighbour = fakeNeighbour(() => Promise.resolve());
  await using client = clientOf();
  const signal = AbortSignal.abort(new Error("too late"));
  await assertRejects(
    () => client.fetch(requestOf(neighbour.address, 0, 10), () => {}, { signal }),
    Error,
    "too late",
  );
  assertEquals(neighbour.connectionCount, 0);
});

Deno.test("piece client rethrows what the sink throws, and drops the connection", async () => {
  const provider = new MemoryProvider();
  provider.add(patternBytes(PIECE_LENGTH), { pieceLength: PIECE_LENGTH });
  await using server = serve(provider);
  await using client = clientOf();
  const full = new LacewingError("disk_full", "Cannot write");
  const work = client.fetch(
    requestOf(`127.0.0.1:${server.address.port}`, 0, PIECE_LENGTH),
    () => Promise.reject(full),
    NEVER,
  );
  assert(await work.catch((error) => error) === full);
  await until(() => server.stats().connections === 0);
});

Deno.test("piece client that is disposed ends what runs", async () => {
  await using neighbour = fakeNeighbour(async (conn) => void await readHeadText(conn));
  const client = clientOf();
  const work = failureOf(client.fetch(requestOf(neighbour.address, 0, 10), () => {}, NEVER));
  await until(() => neighbour.connectionCount === 1);
  await client[Symbol.asyncDispose]();
  assertEquals((await work).code, "unavailable");
});
