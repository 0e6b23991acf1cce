import { assertEquals, assertMatch } from "@std/assert";
import { Bitmap } from "../../../../peer/core/bitmap.ts";
import { LineReader, LineWriter } from "../../../../peer/core/wire/json_lines.ts";
import { type ExchangeEvent, exchangeEvent } from "../../../../peer/core/wire/piece.ts";
import type { UploadServer } from "../../../../peer/transfer/upload_server.ts";
import {
  GENERATION,
  MemoryProvider,
  patternBytes,
  readHeadText,
  serve,
  TASK,
  until,
  writeText,
} from "./memory_provider.ts";

const UPGRADE = "GET /v1/exchange HTTP/1.1\r\nConnection: keep-alive, Upgrade\r\nUpgrade: lacewing-exchange/1\r\n" +
  "x-lacewing-host: child\r\n\r\n";

/** The dialling side, by hand. */
class Talk implements Disposable {
  readonly #reader: LineReader;
  readonly #writer: LineWriter;

  private constructor(readonly conn: Deno.TcpConn) {
    this.#reader = new LineReader(conn);
    this.#writer = new LineWriter(conn);
  }

  static async open(server: UploadServer): Promise<Talk> {
    const conn = await Deno.connect({ hostname: "127.0.0.1", port: server.address.port });
    await writeText(conn, UPGRADE);
    const head = await readHeadText(conn);
    assertMatch(head, /^HTTP\/1\.1 101 /);
    assertMatch(head, /x-lacewing-host: server/);
    return new Talk(conn);
  }

  say(value: unknown): Promise<void> {
    return this.#writer.writeJson(value);
  }

  subscribe(taskId = TASK, generation = GENERATION): Promise<void> {
    return this.say({ type: "subscribe", task_id: taskId, generation });
  }

  /** The next event, or undefined at the end. */
  async hear(): Promise<ExchangeEvent | undefined> {
    const value = await this.#reader.readJson().catch(() => undefined);
    return value === undefined ? undefined : exchangeEvent.parse(value);
  }

  [Symbol.dispose](): void {
    this.conn.close();
  }
}

function providerOf(held: readonly number[] | undefined, count = 100): MemoryProvider {
  const provider = new MemoryProvider();
  provider.add(patternBytes(count), { pieceLength: 1, ...(held === undefined ? {} : { held }) });
  return provider;
}

function bitmapEvent(held: readonly number[], size = 100, generation = GENERATION): ExchangeEvent {
  const bitmap = new Bitmap(size);
  for (const piece of held) bitmap.add(piece);
  return { type: "bitmap", task_id: TASK, generation, known: true, pieces: bitmap.toBase64() };
}

const UNKNOWN: ExchangeEvent = { type: "bitmap", task_id: TASK, generation: GENERATION, known: false, pieces: "" };
const GONE: ExchangeEvent = { type: "gone", task_id: TASK, generation: GENERATION };

Deno.test("exchange answers subscribe with a bitmap, then tells what becomes valid in one line a turn", async () => {
  const provider = providerOf([3, 7]);
  await using server = serve(provider);
  using talk = await Talk.open(server);
  await talk.subscribe();
  assertEquals(await talk.hear(), bitmapEvent([3, 7]));
  for (const piece of [1, 2, 50]) provider.commit(piece);
  assertEquals(await talk.hear(), { type: "have", task_id: TASK, generation: GENERATION, pieces: [1, 2, 50] });
});

Deno.test("exchange does not tell a neighbour of pieces that it has itself", async () => {
  const provider = providerOf([]);
  provider.isKnownTo = (hostId, piece) => hostId === "child" && piece < 10;
  await using server = serve(provider);
  using talk = await Talk.open(server);
  await talk.subscribe();
  await talk.hear();
  for (const piece of [1, 9]) provider.commit(piece);
  for (const piece of [2, 10, 11]) provider.commit(piece);
  assertEquals(await talk.hear(), { type: "have", task_id: TASK, generation: GENERATION, pieces: [10, 11] });
  await talk.subscribe();
  assertEquals(await talk.hear(), bitmapEvent([1, 2, 9, 10, 11]));
});

Deno.test("exchange answers a second subscribe with everything anew", async () => {
  const provider = providerOf([3]);
  await using server = serve(provider);
  using talk = await Talk.open(server);
  await talk.subscribe();
  await talk.hear();
  await talk.subscribe();
  assertEquals(await talk.hear(), bitmapEvent([3]));
  assertEquals(provider.openCount, 1);
});

Deno.test("exchange remembers an unknown task and tells of it when it is announced", async () => {
  const provider = new MemoryProvider();
  await using server = serve(provider);
  using talk = await Talk.open(server);
  await talk.subscribe();
  assertEquals(await talk.hear(), UNKNOWN);
  provider.add(patternBytes(100), { pieceLength: 1, held: [9] });
  server.announce("cd".repeat(32), GENERATION);
  server.announce(TASK, "another");
  server.announce(TASK, GENERATION);
  assertEquals(await talk.hear(), bitmapEvent([9]));
  provider.commit(10);
  assertEquals((await talk.hear())?.type, "have");
  server.announce(TASK, GENERATION);
  assertEquals(provider.openCount, 1);
});

Deno.test("exchange misses no announcement while it looks for the task", async () => {
  const provider = new MemoryProvider();
  const gate = Promise.withResolvers<void>();
  const hold = provider.hold.bind(provider);
  let looks = 0;
  // The first look finds nothing, and its answer comes after the task began and was announced.
  provider.hold = async (...place) => {
    looks += 1;
    if (looks > 1) return await hold(...place);
    await gate.promise;
    return null;
  };
  await using server = serve(provider);
  using talk = await Talk.open(server);
  await talk.subscribe();
  await until(() => looks === 1);
  provider.add(patternBytes(100), { pieceLength: 1, held: [4] });
  server.announce(TASK, GENERATION);
  gate.resolve();
  assertEquals(await talk.hear(), bitmapEvent([4]));
});

Deno.test("exchange lets go of a task that it finds after it was unsubscribed", async () => {
  const provider = new MemoryProvider();
  await using server = serve(provider);
  using talk = await Talk.open(server);
  await talk.subscribe();
  assertEquals(await talk.hear(), UNKNOWN);
  const gate = Promise.withResolvers<void>();
  let isLooking = false;
  provider.beforeHold = () => {
    isLooking = true;
    return gate.promise;
  };
  provider.add(patternBytes(100), { pieceLength: 1 });
  server.announce(TASK, GENERATION);
  await until(() => isLooking);
  provider.beforeHold = () => {};
  await talk.say({ type: "unsubscribe", task_id: TASK });
  // The answer to the next request tells that this one was read.
  await talk.subscribe("cd".repeat(32));
  assertEquals((await talk.hear())?.type, "bitmap");
  gate.resolve();
  await until(() => provider.holdCount === 1 && provider.openCount === 0);
});

Deno.test("exchange says gone when a task is dropped, and hears of its return", async () => {
  const provider = providerOf([3]);
  await using server = serve(provider);
  using talk = await Talk.open(server);
  await talk.subscribe();
  await talk.hear();
  provider.commit(4);
  provider.drop();
  assertEquals(await talk.hear(), GONE);
  assertEquals(provider.openCount, 0);
  provider.add(patternBytes(100), { pieceLength: 1, held: [1] });
  server.announce(TASK, GENERATION);
  assertEquals(await talk.hear(), bitmapEvent([1]));
});

Deno.test("exchange follows the newest generation that was asked for", async () => {
  const provider = providerOf([3]);
  provider.add(patternBytes(100), { pieceLength: 1, generation: "g2", held: [8] });
  await using server = serve(provider);
  using talk = await Talk.open(server);
  await talk.subscribe();
  await talk.hear();
  await talk.subscribe(TASK, "g2");
  assertEquals(await talk.hear(), bitmapEvent([8], 100, "g2"));
  provider.commit(5);
  provider.commit(9, { generation: "g2" });
  assertEquals(await talk.hear(), { type: "have", task_id: TASK, generation: "g2", pieces: [9] });
  assertEquals(provider.openCount, 1);
});

Deno.test("exchange says nothing more after unsubscribe", async () => {
  const provider = providerOf([3]);
  await using server = serve(provider);
  using talk = await Talk.open(server);
  await talk.subscribe();
  await talk.hear();
  await talk.say({ type: "unsubscribe", task_id: TASK });
  await talk.say({ type: "unsubscribe", task_id: "cd".repeat(32) });
  await until(() => provider.openCount === 0);
  provider.commit(5);
  await talk.subscribe("cd".repeat(32));
  assertEquals((await talk.hear())?.type, "bitmap");
});

Deno.test("exchange sends a bitmap instead of more numbers than a line holds", async () => {
  const provider = providerOf([], 10_000);
  await using server = serve(provider);
  using talk = await Talk.open(server);
  await talk.subscribe();
  await talk.hear();
  const pieces = Array.from({ length: 5000 }, (_, piece) => piece);
  for (const piece of pieces) provider.commit(piece);
  assertEquals(await talk.hear(), bitmapEvent(pieces, 10_000));
  for (const piece of pieces.slice(0, 4096)) provider.commit(piece);
  const event = await talk.hear();
  assertEquals(event?.type === "have" && event.pieces.length, 4096);
});

Deno.test("exchange with a neighbour that does not read keeps no queue, and catches up later", async () => {
  const provider = providerOf([], 390_000);
  await using server = serve(provider);
  using talk = await Talk.open(server);
  await talk.subscribe();
  await talk.hear();
  // 200 bitmaps of 64 KiB of text do not fit the kernel's buffers: the server waits in a write.
  for (let turn = 0; turn < 200; turn++) {
    for (let i = 0; i < 1900; i++) provider.commit(turn * 1900 + i);
    await talk.subscribe();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const seen = new Bitmap(390_000);
  let events = 0;
  while (seen.count < 380_000) {
    const event = await talk.hear();
    events += 1;
    if (event?.type === "bitmap") { for (const piece of Bitmap.fromBase64(event.pieces, 390_000)) seen.add(piece); }
    if (event?.type === "have") { for (const piece of event.pieces) seen.add(piece); }
  }
  assertEquals(events <= 400, true);
});

for (
  const [what, value] of [
    ["an unknown type", { type: "shout" }],
    ["a task id that is none", { type: "subscribe", task_id: "x", generation: "g" }],
    ["no object", 5],
    ["a line over the bound", { type: "subscribe", task_id: TASK, generation: "g".repeat(9000) }],
  ] as const
) {
  Deno.test(`exchange ends with an error line at ${what}`, async () => {
    const provider = providerOf([1]);
    await using server = serve(provider);
    using talk = await Talk.open(server);
    await talk.subscribe();
    await talk.hear();
    await talk.say(value);
    const event = await talk.hear();
    assertEquals(event?.type === "error" && event.error.code, "protocol");
    assertEquals(await talk.hear(), undefined);
    await until(() => provider.openCount === 0 && server.stats().connections === 0);
  });
}

Deno.test("exchange ends with an error line above 2,000 subscriptions", async () => {
  await using server = serve(new MemoryProvider());
  using talk = await Talk.open(server);
  const subscribing = (async () => {
    for (let i = 0; i <= 2000; i++) await talk.subscribe(i.toString(16).padStart(64, "0"));
  })().catch(() => {});
  let bitmaps = 0;
  let event = await talk.hear();
  while (event?.type === "bitmap") {
    bitmaps += 1;
    event = await talk.hear();
  }
  assertEquals([bitmaps > 0, event?.type === "error" && event.error.code], [true, "protocol"]);
  await subscribing;
});

Deno.test("exchange lets go of every task when the neighbour goes away", async () => {
  const provider = providerOf([1]);
  await using server = serve(provider);
  {
    using talk = await Talk.open(server);
    await talk.subscribe();
    await talk.hear();
    assertEquals(provider.openCount, 1);
  }
  await until(() => provider.openCount === 0);
});

Deno.test("exchange stays open while nobody says anything for longer than an idle request may", async () => {
  const provider = providerOf([1]);
  await using server = serve(provider, { limits: { idleTimeoutMs: 10, headTimeoutMs: 10 } });
  using talk = await Talk.open(server);
  await talk.subscribe();
  await talk.hear();
  await until(() => server.stats().connections === 1);
  await new Promise((resolve) => setTimeout(resolve, 40));
  provider.commit(2);
  assertEquals((await talk.hear())?.type, "have");
});
