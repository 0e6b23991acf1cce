import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { Bitmap } from "../../../../../peer/core/bitmap.ts";
import { PIECE_COUNT_MAX } from "../../../../../peer/core/piece.ts";
import {
  EXCHANGE_PATH,
  EXCHANGE_UPGRADE,
  exchangeEvent,
  exchangeRequest,
  HOST_HEADER,
  NEED_HEADER,
  parsePiecePath,
  piecePath,
} from "../../../../../peer/core/wire/piece.ts";
import { decodeMessage, generationText } from "../../../../../peer/core/wire/scheduler.ts";
import { type BadRow, type GoodRow, testBadRows, testGoodRows } from "./rows.ts";

const TASK = "0123456789abcdef".repeat(4);
const OF = { task_id: TASK, generation: "g1" };

const REQUESTS: GoodRow[] = [
  { message: { type: "subscribe", ...OF } },
  { message: { type: "unsubscribe", task_id: TASK } },
];
testGoodRows("exchangeRequest", exchangeRequest, REQUESTS);

const EVENTS: GoodRow[] = [
  { message: { type: "bitmap", ...OF, known: true, pieces: "AQ==" } },
  { message: { type: "have", ...OF, pieces: [0, 7, 1_000_000] } },
  { message: { type: "gone", ...OF } },
  { message: { type: "error", error: { code: "policy", message: "too many subscriptions" } } },
];
testGoodRows("exchangeEvent", exchangeEvent, EVENTS);

Deno.test("there is a good row for every type of request and event", () => {
  const typesOf = (rows: GoodRow[]) => rows.map(({ message }) => String(message.type)).sort();
  assertEquals(typesOf(REQUESTS), exchangeRequest.options.map((option) => option.shape.type.value as string).sort());
  assertEquals(typesOf(EVENTS), exchangeEvent.options.map((option) => option.shape.type.value as string).sort());
});

const BAD_REQUESTS: BadRow[] = [
  ["an unknown type", { type: "steal", ...OF }, "type"],
  ["an event", { type: "gone", ...OF }, "type"],
  ["a task id that is none", { type: "subscribe", ...OF, task_id: "../../etc" }, "task_id"],
  ["an empty generation", { type: "subscribe", ...OF, generation: "" }, "generation"],
  ["a generation that climbs", { type: "subscribe", ...OF, generation: ".." }, "generation"],
  ["a generation that is too long", { type: "subscribe", ...OF, generation: "g".repeat(65) }, "generation"],
  ["a short task id", { type: "unsubscribe", task_id: TASK.slice(1) }, "task_id"],
];
testBadRows("exchangeRequest", exchangeRequest, BAD_REQUESTS);

const BAD_EVENTS: BadRow[] = [
  ["a request", { type: "subscribe", ...OF }, "type"],
  ["a bitmap that is too long", { type: "bitmap", ...OF, known: true, pieces: "A".repeat(65_537) }, "pieces"],
  ["a bitmap as a list", { type: "bitmap", ...OF, known: true, pieces: [1] }, "pieces"],
  ["a known that is no boolean", { type: "bitmap", ...OF, known: 1, pieces: "" }, "known"],
  ["a piece below 0", { type: "have", ...OF, pieces: [-1] }, "pieces.0"],
  ["a fraction of a piece", { type: "have", ...OF, pieces: [0, 1.5] }, "pieces.1"],
  ["an unsafe piece number", { type: "have", ...OF, pieces: [2 ** 53] }, "pieces.0"],
  ["4,097 pieces", { type: "have", ...OF, pieces: Array.from({ length: 4097 }, () => 1) }, "pieces"],
  ["gone without generation", { type: "gone", task_id: TASK }, "generation"],
];
testBadRows("exchangeEvent", exchangeEvent, BAD_EVENTS);

Deno.test("a bitmap of the most pieces fits its event", () => {
  const bitmap = new Bitmap(PIECE_COUNT_MAX);
  bitmap.add(PIECE_COUNT_MAX - 1);
  const event = decodeMessage(
    exchangeEvent,
    JSON.stringify({ type: "bitmap", ...OF, known: true, pieces: bitmap.toBase64() }),
  );
  assert(event.type === "bitmap");
  assertEquals([...Bitmap.fromBase64(event.pieces, PIECE_COUNT_MAX)], [PIECE_COUNT_MAX - 1]);
});

Deno.test("what is sent in HTTP heads is valid there", () => {
  new Headers({ [HOST_HEADER]: "id", [NEED_HEADER]: "5", upgrade: EXCHANGE_UPGRADE });
  assertEquals(new URL(EXCHANGE_PATH, "http://host").pathname, EXCHANGE_PATH);
});

Deno.test("piecePath() names task, generation and number", () => {
  assertEquals(piecePath(TASK, "g1", 7), `/v1/tasks/${TASK}/g1/pieces/7`);
});

const taskIds = fc.stringMatching(/^[0-9a-f]{64}$/);
const generations = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._~-]{0,63}$/);

Deno.test("parsePiecePath() reads back every path of piecePath(), also through a URL", () => {
  fc.assert(fc.property(taskIds, generations, fc.nat({ max: 9_999_999 }), (taskId, generation, number) => {
    assert(generationText.safeParse(generation).success);
    const path = piecePath(taskId, generation, number);
    assertEquals(parsePiecePath(path), { taskId, generation, number });
    assertEquals(new URL(path, "http://host").pathname, path);
  }));
});

const NO_PATHS = [
  "",
  "/",
  `/v1/tasks/${TASK}/g1/pieces/`,
  `/v1/tasks/${TASK}/g1/pieces/-1`,
  `/v1/tasks/${TASK}/g1/pieces/1.5`,
  `/v1/tasks/${TASK}/g1/pieces/0x1`,
  `/v1/tasks/${TASK}/g1/pieces/12345678`,
  `/v1/tasks/${TASK}/g1/pieces/1/`,
  `/v1/tasks/${TASK}/g1/pieces/1?x=1`,
  `/v1/tasks/${TASK}/g1/pieces/1\n`,
  `/v1/tasks/${TASK}/g1/1`,
  `/v1/tasks/${TASK}//pieces/1`,
  `/v1/tasks/${TASK}/../pieces/1`,
  `/v1/tasks/${TASK}/a%2Fb/pieces/1`,
  `/v1/tasks/${TASK}/%zz/pieces/1`,
  `/v1/tasks/${TASK}/${"g".repeat(65)}/pieces/1`,
  `/v1/tasks/${TASK.toUpperCase()}/g1/pieces/1`,
  `/v1/tasks/${TASK.slice(1)}/g1/pieces/1`,
  `/v2/tasks/${TASK}/g1/pieces/1`,
  `//v1/tasks/${TASK}/g1/pieces/1`,
  `/x/v1/tasks/${TASK}/g1/pieces/1`,
];
for (const path of NO_PATHS) {
  Deno.test(`parsePiecePath() knows no ${JSON.stringify(path.replaceAll(TASK, "TASK"))}`, () => {
    assertEquals(parsePiecePath(path), null);
  });
}

Deno.test("parsePiecePath() of any text is null or a path that piecePath() makes", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), fc.string(), (generation, number) => {
    const path = `/v1/tasks/${TASK}/${generation}/pieces/${number}`;
    const parsed = parsePiecePath(path);
    if (parsed !== null) assert(generationText.safeParse(parsed.generation).success);
  }));
});
