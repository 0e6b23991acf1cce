// covers: peer/transfer/exchange_link.ts
import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { Bitmap } from "../../../../peer/core/bitmap.ts";
import { seededRandom, systemClock } from "../../../../peer/core/clock.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { createExchange } from "../../../../peer/transfer/exchange.ts";
import type { ExchangeLimits } from "../../../../peer/transfer/exchange_link.ts";
import type { Exchange, OfferListener } from "../../../../peer/transfer/piece_transfer.ts";
import type { UploadServer } from "../../../../peer/transfer/upload_server.ts";
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

const OTHER = "cd".repeat(32);

function exchangeOf(limits: Partial<ExchangeLimits> = {}): Exchange {
  return createExchange(
    { hostId: "child", clock: systemClock, random: seededRandom(1), log: silentLogger },
    { backoffMinMs: 5, backoffMaxMs: 40, ...limits },
  );
}

/** Writes down what it is told: `bitmap 1,2`, `bitmap null`, `have 3`, `lost`. */
class Notes implements OfferListener {
  readonly lines: string[] = [];

  onBitmap(hostId: string, pieces: Bitmap | null): void {
    this.lines.push(`${hostId} bitmap ${pieces === null ? null : [...pieces].join()}`);
  }

  onHave(hostId: string, pieces: readonly number[]): void {
    this.lines.push(`${hostId} have ${pieces.join()}`);
  }

  onLost(hostId: string): void {
    this.lines.push(`${hostId} lost`);
  }

  heard(line: string): Promise<void> {
    return until(() => this.lines.includes(line));
  }
}

function neighbourOf(server: UploadServer): { hostId: string; address: string } {
  return { hostId: "n", address: `127.0.0.1:${server.address.port}` };
}

const taskOf = (taskId = TASK, generation = GENERATION) => ({ taskId, generation, pieceCount: 10 });

function providerOf(...held: number[]): MemoryProvider {
  const provider = new MemoryProvider();
  provider.add(patternBytes(10), { pieceLength: 1, held });
  return provider;
}

const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: lacewing-exchange/1\r\n\r\n";

function bitmapLine(pieces: number[], generation = GENERATION): string {
  const bitmap = new Bitmap(10);
  for (const piece of pieces) bitmap.add(piece);
  return JSON.stringify({ type: "bitmap", task_id: TASK, generation, known: true, pieces: bitmap.toBase64() }) + "\n";
}

/** A neighbour that switches and then says `text` on each connection. */
function saying(text: (index: number) => string) {
  return fakeNeighbour(async (conn, index) => {
    await readHeadText(conn);
    await writeText(conn, SWITCHED + text(index));
  });
}

Deno.test("exchange hears what a neighbour has and what it gets", async () => {
  const provider = providerOf(1, 2);
  await using server = serve(provider);
  await using exchange = exchangeOf();
  const notes = new Notes();
  exchange.subscribe(neighbourOf(server), taskOf(), notes);
  await notes.heard("n bitmap 1,2");
  provider.commit(5);
  await notes.heard("n have 5");
  provider.drop();
  await notes.heard("n bitmap null");
});

Deno.test("exchange says null for a task that the neighbour does not know, until it does", async () => {
  const provider = new MemoryProvider();
  await using server = serve(provider);
  await using exchange = exchangeOf();
  const notes = new Notes();
  exchange.subscribe(neighbourOf(server), taskOf(), notes);
  await notes.heard("n bitmap null");
  provider.add(patternBytes(10), { pieceLength: 1, held: [7] });
  server.announce(TASK, GENERATION);
  await notes.heard("n bitmap 7");
});

Deno.test("exchange shares one link between all tasks of a neighbour", async () => {
  const provider = providerOf(1);
  provider.add(patternBytes(10), { pieceLength: 1, taskId: OTHER, held: [2] });
  await using server = serve(provider);
  await using exchange = exchangeOf();
  const [a, b] = [new Notes(), new Notes()];
  const stop = exchange.subscribe(neighbourOf(server), taskOf(), a);
  await a.heard("n bitmap 1");
  exchange.subscribe(neighbourOf(server), taskOf(OTHER), b);
  await b.heard("n bitmap 2");
  assertEquals(server.stats().connections, 1);
  stop();
  stop();
  provider.commit(3);
  provider.commit(4, { taskId: OTHER });
  await b.heard("n have 4");
  assertEquals([a.lines, b.lines], [["n bitmap 1"], ["n bitmap 2", "n have 4"]]);
});

Deno.test("exchange tells a second listener of the same task everything, too", async () => {
  const provider = providerOf(1);
  await using server = serve(provider);
  await using exchange = exchangeOf();
  const [a, b] = [new Notes(), new Notes()];
  exchange.subscribe(neighbourOf(server), taskOf(), a);
  await a.heard("n bitmap 1");
  const stop = exchange.subscribe(neighbourOf(server), taskOf(), b);
  await b.heard("n bitmap 1");
  stop();
  provider.commit(6);
  await a.heard("n have 6");
  assertEquals(provider.openCount, 1);
});

Deno.test("exchange goes back to the older generation when only that is still wanted", async () => {
  const provider = providerOf(1);
  provider.add(patternBytes(10), { pieceLength: 1, generation: "g2", held: [2] });
  await using server = serve(provider);
  await using exchange = exchangeOf();
  const [a, b] = [new Notes(), new Notes()];
  exchange.subscribe(neighbourOf(server), taskOf(), a);
  await a.heard("n bitmap 1");
  const stop = exchange.subscribe(neighbourOf(server), taskOf(TASK, "g2"), b);
  await b.heard("n bitmap 2");
  stop();
  await until(() => a.lines.length === 2);
  assertEquals(a.lines, ["n bitmap 1", "n bitmap 1"]);
});

Deno.test("exchange dials again after a neighbour went away, and tells of the loss", async () => {
  const provider = providerOf(1);
  const first = serve(provider);
  const neighbour = neighbourOf(first);
  await using exchange = exchangeOf();
  const notes = new Notes();
  exchange.subscribe(neighbour, taskOf(), notes);
  await notes.heard("n bitmap 1");
  await first[Symbol.asyncDispose]();
  await notes.heard("n lost");
  provider.commit(2);
  await using _second = serve(provider, { port: first.address.port });
  await notes.heard("n bitmap 1,2");
});

Deno.test("exchange keeps dialling a neighbour that is not there yet", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  await using exchange = exchangeOf();
  const notes = new Notes();
  exchange.subscribe({ hostId: "n", address: `127.0.0.1:${port}` }, taskOf(), notes);
  await using _server = serve(providerOf(4), { port });
  await notes.heard("n bitmap 4");
  assertEquals(notes.lines, ["n bitmap 4"]);
});

Deno.test("exchange closes a link a while after its last subscription, and dials anew for the next", async () => {
  const provider = providerOf(1);
  await using server = serve(provider);
  await using exchange = exchangeOf({ lingerMs: 20 });
  const notes = new Notes();
  exchange.subscribe(neighbourOf(server), taskOf(), notes)();
  await until(() => server.stats().connections === 1);
  await until(() => server.stats().connections === 0);
  exchange.subscribe(neighbourOf(server), taskOf(), notes);
  await notes.heard("n bitmap 1");
});

Deno.test("exchange keeps the link when the next task comes in time", async () => {
  await using server = serve(providerOf(1));
  await using exchange = exchangeOf({ lingerMs: 60_000 });
  const notes = new Notes();
  const stop = exchange.subscribe(neighbourOf(server), taskOf(), notes);
  await notes.heard("n bitmap 1");
  stop();
  exchange.subscribe(neighbourOf(server), taskOf(), notes);
  await until(() => notes.lines.length === 2);
  assertEquals([server.stats().connections, notes.lines], [1, ["n bitmap 1", "n bitmap 1"]]);
});

Deno.test("exchange ignores other tasks, other generations and pieces that do not exist", async () => {
  const have = (pieces: number[], task = TASK, generation = GENERATION) =>
    JSON.stringify({ type: "have", task_id: task, generation, pieces }) + "\n";
  await using neighbour = saying(() =>
    bitmapLine([9], "g0") + have([1], OTHER) + have([2], TASK, "g0") + have([10, 4000]) +
    JSON.stringify({ type: "gone", task_id: TASK, generation: "g0" }) + "\n" + have([3, 99])
  );
  await using exchange = exchangeOf();
  const notes = new Notes();
  exchange.subscribe({ hostId: "n", address: neighbour.address }, taskOf(), notes);
  await notes.heard("n have 3");
  assertEquals(notes.lines, ["n have 3"]);
});

for (
  const [what, rubbish] of [
    ["no JSON", "hello\n"],
    ["an unknown event", '{"type":"shout"}\n'],
    ["a negative piece", `{"type":"have","task_id":"${TASK}","generation":"g1","pieces":[-1]}\n`],
    ["too many pieces", `{"type":"have","task_id":"${TASK}","generation":"g1","pieces":[${"1,".repeat(4096)}1]}\n`],
    ["an endless line", "x".repeat(200_000)],
    ["an error line", '{"type":"error","error":{"code":"protocol","message":"no"}}\n'],
  ] as const
) {
  Deno.test(`exchange drops the link of a neighbour that sends ${what}, and dials later`, async () => {
    await using neighbour = saying((index) => index === 0 ? bitmapLine([1]) + rubbish : bitmapLine([2]));
    await using exchange = exchangeOf();
    const notes = new Notes();
    exchange.subscribe({ hostId: "n", address: neighbour.address }, taskOf(), notes);
    await notes.heard("n bitmap 2");
    assertEquals(notes.lines, ["n bitmap 1", "n lost", "n bitmap 2"]);
  });
}

for (
  const [what, head] of [
    ["refuses", "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"],
    ["switches to something else", "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"],
    ["speaks no HTTP", "220 mail ready\r\n"],
    ["closes", ""],
  ] as const
) {
  Deno.test(`exchange waits longer each time for a neighbour that ${what}`, async () => {
    const atMs: number[] = [];
    await using neighbour = fakeNeighbour(async (conn) => {
      atMs.push(performance.now());
      assertMatch(await readHeadText(conn), /^GET \/v1\/exchange HTTP\/1\.1\r\n/);
      await writeText(conn, head);
      conn.close();
    });
    await using exchange = exchangeOf({ backoffMinMs: 10, backoffMaxMs: 80 });
    const notes = new Notes();
    exchange.subscribe({ hostId: "n", address: neighbour.address }, taskOf(), notes);
    await until(() => atMs.length === 4);
    assertEquals(notes.lines, []);
    // Pauses of 10, 20 and 40 ms, each shortened by half at most.
    const passedMs = (atMs[3] ?? 0) - (atMs[0] ?? 0);
    assertEquals(passedMs >= 34, true, `${passedMs} ms`);
  });
}

Deno.test("exchange asks a silent neighbour, and leaves one that does not answer", async () => {
  let asked = 0;
  await using neighbour = fakeNeighbour(async (conn, index) => {
    await readHeadText(conn);
    await writeText(conn, SWITCHED + bitmapLine([index]));
    const buffer = new Uint8Array(4096);
    // The first subscribe was answered above; the ones that follow are not.
    while (true) {
      const read = await conn.read(buffer);
      if (read === null) return;
      asked += new TextDecoder().decode(buffer.subarray(0, read)).split("subscribe").length - 1;
    }
  });
  await using exchange = exchangeOf({ silenceMs: 20, answerTimeoutMs: 20 });
  const notes = new Notes();
  exchange.subscribe({ hostId: "n", address: neighbour.address }, taskOf(), notes);
  await notes.heard("n bitmap 1");
  assertEquals(notes.lines, ["n bitmap 0", "n lost", "n bitmap 1"]);
  assertEquals(asked >= 2, true);
});

Deno.test("exchange stays with a neighbour that is silent but answers", async () => {
  await using server = serve(providerOf(1));
  await using exchange = exchangeOf({ silenceMs: 10, answerTimeoutMs: 1000 });
  const notes = new Notes();
  exchange.subscribe(neighbourOf(server), taskOf(), notes);
  await until(() => notes.lines.length >= 4);
  assertEquals(new Set(notes.lines), new Set(["n bitmap 1"]));
});

Deno.test("exchange that is disposed is silent, leaves no link and takes no subscription", async () => {
  const provider = providerOf(1);
  await using server = serve(provider);
  const exchange = exchangeOf();
  const notes = new Notes();
  const stop = exchange.subscribe(neighbourOf(server), taskOf(), notes);
  exchange.subscribe({ hostId: "gone", address: "127.0.0.1:1" }, taskOf(), notes);
  await notes.heard("n bitmap 1");
  await exchange[Symbol.asyncDispose]();
  stop();
  await until(() => server.stats().connections === 0);
  assertEquals(notes.lines, ["n bitmap 1"]);
  assertThrows(() => exchange.subscribe(neighbourOf(server), taskOf(), notes), TypeError);
});
