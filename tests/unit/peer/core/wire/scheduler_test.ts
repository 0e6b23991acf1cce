import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import fc from "fast-check";
import { z } from "zod";
import { LacewingError } from "../../../../../peer/core/errors.ts";
import { PIECE_COUNT_MAX } from "../../../../../peer/core/piece.ts";
import {
  BATCH_MAX,
  batches,
  decodeMessage,
  FIND_MAX,
  FOUND_MAX,
  generationText,
  hostMessage,
  MESSAGE_LENGTH_MAX,
  schedulerMessage,
  taskIdText,
} from "../../../../../peer/core/wire/scheduler.ts";
import { type BadRow, type GoodRow, testBadRows, testGoodRows } from "./rows.ts";

const TASK = "0123456789abcdef".repeat(4);
const SHA = "f".repeat(64);
const META = {
  generation: "0a1b2c3d",
  content_length: 67_108_864,
  piece_length: 262_144,
  ranges: true,
  etag: '"abc"',
  last_modified: "Mon, 01 Jan 2024 00:00:00 GMT",
};
const SPEC = { task_id: TASK, url: "https://host/x", tag: "t", filter: "a&b", digest: `sha256:${SHA}` };
const HOST = {
  id: "5f0c7a52-5e5d-4f8e-9d3c-000000000001",
  hostname: "host-1",
  ip: "10.0.0.1",
  upload_port: 65002,
  type: "normal",
  idc: "a",
  location: "x|y",
  platform: "linux/amd64",
  version: "0.1.0",
  cluster_id: 1,
};
const ERROR = { code: "source_failed", message: "the origin answered 500" };
const HELD = { ...SPEC, meta: META, piece_count: 256, complete: true, last_used_at: "2024-01-01T00:00:00Z" };
const NEIGHBOUR = { host_id: "h2", address: "10.0.0.2:65002", type: "seed", idc: "" };

const FOUND = {
  task_id: TASK,
  content_length: 10,
  piece_length: 262_144,
  host_count: 1,
  hosts: [{ host_id: "h2", hostname: "n", complete: true, piece_count: 1 }],
};
const JOB = { task_id: TASK, job_id: 1, cluster_id: 1, job_state: "SUCCESS", state: "SUCCESS", host_count: 1 };

const HOST_MESSAGES: GoodRow[] = [
  { message: { type: "hello", v: 1, host: HOST, join_token: "t0k" }, optional: ["join_token"] },
  { message: { type: "held", tasks: [HELD] } },
  { message: { type: "dropped", task_ids: [TASK] } },
  { message: { type: "heartbeat", uploads: 0, downloads: 3, free_bytes: 2 ** 50 } },
  {
    message: {
      type: "join",
      task: SPEC,
      meta: META,
      piece_count: 7,
      can_source: true,
      anonymous: false,
      partial: true,
    },
    optional: ["meta", "piece_count", "partial"],
  },
  { message: { type: "leave", task_id: TASK } },
  { message: { type: "meta", task_id: TASK, meta: META } },
  { message: { type: "pieces", task_id: TASK, generation: "g1", pieces: [[0, SHA], [1, SHA]] } },
  { message: { type: "lease_end", task_id: TASK, lease_id: 3, error: ERROR }, optional: ["error"] },
  { message: { type: "starving", task_id: TASK, generation: "g1", pieces: [0, 5] } },
  { message: { type: "bad_peer", task_id: TASK, host_id: "h2", piece: 5 } },
  { message: { type: "checked", task_id: TASK, generation: "g1", changed: true } },
  { message: { type: "complete", task_id: TASK, generation: "g1" } },
  { message: { type: "find", find_id: 1, task_ids: [TASK] } },
  {
    message: {
      type: "order_progress",
      order_id: "o1",
      state: "running",
      content_length: 10,
      done: 5,
      from_source: 3,
      from_peers: 2,
      error: ERROR,
    },
    optional: ["error"],
  },
];
testGoodRows("hostMessage", hostMessage, HOST_MESSAGES);

const SCHEDULER_MESSAGES: GoodRow[] = [
  { message: { type: "welcome", v: 1, cluster_id: 1, heartbeat_ms: 2000 } },
  {
    message: { type: "task", task_id: TASK, meta: META, neighbours: [NEIGHBOUR], carriers: ["h1", "h2"] },
    optional: ["carriers"],
  },
  { message: { type: "meta", task_id: TASK, meta: META } },
  {
    message: { type: "neighbours", task_id: TASK, add: [NEIGHBOUR], remove: ["h3"], carriers: null },
    optional: ["carriers"],
  },
  { message: { type: "digests", task_id: TASK, generation: "g1", pieces: [[0, SHA]] } },
  { message: { type: "lease", task_id: TASK, lease_id: 1, generation: "g1", first: 0, count: 4 } },
  { message: { type: "revoke", task_id: TASK, lease_id: 1 } },
  { message: { type: "want_digests", task_id: TASK, generation: "g1" } },
  { message: { type: "order", order_id: "o1", kind: "preheat", task: { ...SPEC, headers: { accept: "*/*" } } } },
  { message: { type: "cancel_order", order_id: "o1" } },
  { message: { type: "found", find_id: 1, tasks: [FOUND], jobs: [JOB] } },
  { message: { type: "failed", task_id: TASK, error: ERROR } },
  { message: { type: "error", error: ERROR } },
];
testGoodRows("schedulerMessage", schedulerMessage, SCHEDULER_MESSAGES);

Deno.test("there is a good row for every type of message", () => {
  const typesOf = (schema: typeof hostMessage | typeof schedulerMessage) =>
    schema.options.map((option) => option.shape.type.value as string).sort();
  assertEquals(HOST_MESSAGES.map(({ message }) => String(message.type)).sort(), typesOf(hostMessage));
  assertEquals(SCHEDULER_MESSAGES.map(({ message }) => String(message.type)).sort(), typesOf(schedulerMessage));
});

/** A message of HOST_MESSAGES or SCHEDULER_MESSAGES with some fields changed. */
function changed(rows: GoodRow[], type: string, fields: Record<string, unknown>) {
  return { ...rows.find(({ message }) => message.type === type)!.message, ...fields };
}
const host = (type: string, fields: Record<string, unknown>) => changed(HOST_MESSAGES, type, fields);
const scheduler = (type: string, fields: Record<string, unknown>) => changed(SCHEDULER_MESSAGES, type, fields);
const many = (count: number, item: unknown) => Array.from({ length: count }, () => item);

const BAD_HOST: BadRow[] = [
  ["a message without type", {}, "type"],
  ["an unknown type", { type: "no_such" }, "type"],
  ["a scheduler's type", { type: "welcome", v: 1, cluster_id: 1, heartbeat_ms: 1 }, "type"],
  ["another version", host("hello", { v: 2 }), "v"],
  ["a version as text", host("hello", { v: "1" }), "v"],
  ["a host without id", host("hello", { host: { ...HOST, id: "" } }), "host.id"],
  ["a host id that is too long", host("hello", { host: { ...HOST, id: "x".repeat(65) } }), "host.id"],
  ["upload port 0", host("hello", { host: { ...HOST, upload_port: 0 } }), "host.upload_port"],
  ["upload port 65536", host("hello", { host: { ...HOST, upload_port: 65536 } }), "host.upload_port"],
  ["an unknown host type", host("hello", { host: { ...HOST, type: "super" } }), "host.type"],
  ["cluster 0", host("hello", { host: { ...HOST, cluster_id: 0 } }), "host.cluster_id"],
  ["a long join token", host("hello", { join_token: "x".repeat(4097) }), "join_token"],
  ["too many held tasks", host("held", { tasks: many(BATCH_MAX + 1, HELD) }), "tasks"],
  ["a held task without meta", host("held", { tasks: [{ ...HELD, meta: null }] }), "tasks.0.meta"],
  ["a task id of 63 digits", host("leave", { task_id: TASK.slice(1) }), "task_id"],
  ["a task id in upper case", host("leave", { task_id: TASK.toUpperCase() }), "task_id"],
  ["a task id with a newline behind", host("leave", { task_id: `${TASK}\n` }), "task_id"],
  ["too many dropped tasks", host("dropped", { task_ids: many(BATCH_MAX + 1, TASK) }), "task_ids"],
  ["a negative count", host("heartbeat", { uploads: -1 }), "uploads"],
  ["a count of 2^53", host("heartbeat", { free_bytes: 2 ** 53 }), "free_bytes"],
  ["a count as text", host("heartbeat", { downloads: "3" }), "downloads"],
  ["an empty URL", host("join", { task: { ...SPEC, url: "" } }), "task.url"],
  ["a URL that is too long", host("join", { task: { ...SPEC, url: "x".repeat(8193) } }), "task.url"],
  ["a tag that is too long", host("join", { task: { ...SPEC, tag: "x".repeat(257) } }), "task.tag"],
  ["a filter that is too long", host("join", { task: { ...SPEC, filter: "x".repeat(1025) } }), "task.filter"],
  ["a digest that is too long", host("join", { task: { ...SPEC, digest: "x".repeat(141) } }), "task.digest"],
  ["a generation that is empty", host("complete", { generation: "" }), "generation"],
  ["a generation that climbs", host("complete", { generation: ".." }), "generation"],
  ["a generation with a slash", host("complete", { generation: "a/b" }), "generation"],
  ["a generation that is too long", host("complete", { generation: "g".repeat(65) }), "generation"],
  ["a piece length of 0", host("meta", { meta: { ...META, piece_length: 0 } }), "meta.piece_length"],
  ["a layout of too many pieces", host("meta", { meta: { ...META, piece_length: 1 } }), "meta"],
  ["an ETag that is too long", host("meta", { meta: { ...META, etag: "x".repeat(513) } }), "meta.etag"],
  ["too many pieces", host("pieces", { pieces: many(BATCH_MAX + 1, [0, SHA]) }), "pieces"],
  ["a piece without digest", host("pieces", { pieces: [[0]] }), "pieces.0"],
  ["a piece with more than a digest", host("pieces", { pieces: [[0, SHA, 1]] }), "pieces.0"],
  ["a piece digest that is none", host("pieces", { pieces: [[0, "sha256"]] }), "pieces.0.1"],
  ["a piece number below 0", host("pieces", { pieces: [[-1, SHA]] }), "pieces.0.0"],
  ["too many starving pieces", host("starving", { pieces: many(BATCH_MAX + 1, 1) }), "pieces"],
  ["an error without code", host("lease_end", { error: { message: "x" } }), "error.code"],
  ["an error that is too long", host("lease_end", { error: { ...ERROR, message: "x".repeat(4001) } }), "error.message"],
  ["a question about no task", host("find", { task_ids: [] }), "task_ids"],
  ["a question about too many tasks", host("find", { task_ids: many(FIND_MAX + 1, TASK) }), "task_ids"],
  ["a question about what is no task", host("find", { task_ids: ["x"] }), "task_ids.0"],
  ["an unknown order state", host("order_progress", { state: "paused" }), "state"],
];
testBadRows("hostMessage", hostMessage, BAD_HOST);

const BAD_SCHEDULER: BadRow[] = [
  ["a host's type", { type: "leave", task_id: TASK }, "type"],
  ["another version", scheduler("welcome", { v: 0 }), "v"],
  ["cluster 0", scheduler("welcome", { cluster_id: 0 }), "cluster_id"],
  ["a heartbeat of 0 ms", scheduler("welcome", { heartbeat_ms: 0 }), "heartbeat_ms"],
  ["too many neighbours", scheduler("task", { neighbours: many(BATCH_MAX + 1, NEIGHBOUR) }), "neighbours"],
  ["a neighbour without host", scheduler("neighbours", { add: [{ ...NEIGHBOUR, host_id: "" }] }), "add.0.host_id"],
  ["a long address", scheduler("neighbours", { add: [{ ...NEIGHBOUR, address: "x".repeat(81) }] }), "add.0.address"],
  ["too many gone neighbours", scheduler("neighbours", { remove: many(BATCH_MAX + 1, "h") }), "remove"],
  ["too many carriers", scheduler("neighbours", { carriers: many(BATCH_MAX + 1, "h") }), "carriers"],
  ["a carrier without a name", scheduler("task", { carriers: [""] }), "carriers.0"],
  ["too many digests", scheduler("digests", { pieces: many(BATCH_MAX + 1, [0, SHA]) }), "pieces"],
  ["a digest in upper case", scheduler("digests", { pieces: [[0, SHA.toUpperCase()]] }), "pieces.0.1"],
  ["a lease of a fraction", scheduler("lease", { count: 1.5 }), "count"],
  ["a lease from below 0", scheduler("lease", { first: -1 }), "first"],
  ["an unknown kind of order", scheduler("order", { kind: "format" }), "kind"],
  ["an order without headers", scheduler("order", { task: SPEC }), "task.headers"],
  ["a header that is no text", scheduler("order", { task: { ...SPEC, headers: { a: 1 } } }), "task.headers.a"],
  ["a long header", scheduler("order", { task: { ...SPEC, headers: { a: "x".repeat(8193) } } }), "task.headers.a"],
  ["a long header name", scheduler("order", { task: { ...SPEC, headers: { ["x".repeat(257)]: "" } } }), "task.headers"],
  [
    "too many hosts found",
    scheduler("found", { tasks: [{ ...FOUND, hosts: many(FOUND_MAX + 1, FOUND.hosts[0]) }] }),
    "tasks.0.hosts",
  ],
  ["too many jobs found", scheduler("found", { jobs: many(FOUND_MAX + 1, JOB) }), "jobs"],
  ["a job without number", scheduler("found", { jobs: [{ ...JOB, job_id: "1" }] }), "jobs.0.job_id"],
  ["an empty order id", scheduler("cancel_order", { order_id: "" }), "order_id"],
  ["a code that is too long", scheduler("failed", { error: { code: "x".repeat(65), message: "" } }), "error.code"],
];
testBadRows("schedulerMessage", schedulerMessage, BAD_SCHEDULER);

Deno.test("what a sender may leave out has its default", () => {
  const join = { type: "join", task: { task_id: TASK, url: "u" }, can_source: true, anonymous: true };
  assertEquals(decodeMessage(hostMessage, JSON.stringify(join)), {
    ...join,
    task: { ...join.task, tag: "", filter: "" },
    piece_count: 0,
    partial: false,
  } as z.output<typeof hostMessage>);
});

Deno.test("a lease without generation and a task without meta are read", () => {
  decodeMessage(schedulerMessage, JSON.stringify(scheduler("lease", { generation: null })));
  decodeMessage(schedulerMessage, JSON.stringify(scheduler("task", { meta: null })));
});

Deno.test("a layout of the most pieces is read", () => {
  const meta = { ...META, content_length: PIECE_COUNT_MAX * 4, piece_length: 4 };
  decodeMessage(hostMessage, JSON.stringify(host("meta", { meta })));
});

const GENERATIONS: [string, boolean][] = [
  ["g", true],
  ["0a1b2c", true],
  ["5f0c7a52-5e5d-4f8e-9d3c-0123456789ab", true],
  ["a.b_c~d", true],
  ["g".repeat(64), true],
  ["", false],
  [".", false],
  ["..", false],
  ["-a", false],
  ["a b", false],
  ["a%2Fb", false],
  ["é", false],
  ["a\n", false],
];
for (const [text, good] of GENERATIONS) {
  Deno.test(`generationText ${good ? "takes" : "refuses"} ${JSON.stringify(text.slice(0, 40))}`, () => {
    assertEquals(generationText.safeParse(text).success, good);
  });
}

Deno.test("taskIdText takes 64 lower-case hex digits only", () => {
  assert(taskIdText.safeParse(TASK).success);
  for (const text of ["", TASK + "0", TASK.replace("a", "g"), TASK.toUpperCase(), 5]) {
    assert(!taskIdText.safeParse(text).success);
  }
});

for (const text of ["", "{", "null x", "undefined", "\u0000", "{'type':1}", "[1,]", '{"type":"leave"', "NaN"]) {
  Deno.test(`decodeMessage() refuses ${JSON.stringify(text)} as no JSON`, () => {
    const error = assertThrows(() => decodeMessage(hostMessage, text), LacewingError, "not JSON");
    assertEquals(error.code, "protocol");
  });
}

for (const text of ["null", "1", '"leave"', "[]", "true", "[[]]", "{}", '{"type":null}', '{"type":["leave"]}']) {
  Deno.test(`decodeMessage() refuses ${text}: no message`, () => {
    assertEquals(assertThrows(() => decodeMessage(hostMessage, text), LacewingError).code, "protocol");
  });
}

for (const value of [new Uint8Array(3), new ArrayBuffer(3), new Blob(), null, undefined, 5, { type: "leave" }]) {
  Deno.test(`decodeMessage() refuses ${value?.constructor.name ?? value}: it is not text`, () => {
    const error = assertThrows(() => decodeMessage(hostMessage, value), LacewingError, "want text, not binary");
    assertEquals(error.code, "protocol");
  });
}

Deno.test("decodeMessage() reads a message of the most characters and refuses one more", () => {
  const text = JSON.stringify({ type: "leave", task_id: TASK });
  decodeMessage(hostMessage, text.padEnd(MESSAGE_LENGTH_MAX));
  const error = assertThrows(() => decodeMessage(hostMessage, text.padEnd(MESSAGE_LENGTH_MAX + 1)), LacewingError);
  assertStringIncludes(error.message, `${MESSAGE_LENGTH_MAX + 1} characters, at most ${MESSAGE_LENGTH_MAX}`);
});

Deno.test("decodeMessage() keeps its own message short, however long what it read", () => {
  const headers = { ["k".repeat(900_000)]: 1 };
  const text = JSON.stringify({ type: "order", order_id: "o", kind: "drop", task: { ...SPEC, headers } });
  assert(assertThrows(() => decodeMessage(schedulerMessage, text), LacewingError).message.length < 500);
});

Deno.test("batches() of nothing are none", () => assertEquals(batches([]), []));

const BATCHES: [number, number, number[]][] = [
  [1, 3, [1]],
  [3, 3, [3]],
  [4, 3, [3, 1]],
  [7, 3, [3, 3, 1]],
  [3, 1, [1, 1, 1]],
];
for (const [count, size, lengths] of BATCHES) {
  Deno.test(`batches() cuts ${count} items by ${size} into ${lengths}`, () => {
    assertEquals(batches(many(count, 0), size).map((batch) => batch.length), lengths);
  });
}

for (const size of [0, -1, NaN]) {
  Deno.test(`batches() throws on a size of ${size}`, () => {
    assertThrows(() => batches([1], size), RangeError);
  });
}

Deno.test("batches() of the longest held tasks each fit a message", () => {
  const held = { ...HELD, url: `https://host/${"x".repeat(8000)}`, filter: "x".repeat(1024), tag: "t".repeat(256) };
  const cut = batches(many(BATCH_MAX, held));
  assertEquals(cut.flat().length, BATCH_MAX);
  for (const tasks of cut) {
    const text = JSON.stringify({ type: "held", tasks });
    assertEquals(decodeMessage(hostMessage, text).type, "held");
  }
});

Deno.test("batches() keeps every item once and in order, in batches that are neither empty nor too large", () => {
  fc.assert(fc.property(fc.array(fc.string()), fc.integer({ min: 1, max: 10 }), (items, size) => {
    const cut = batches(items, size);
    assertEquals(cut.flat(), items);
    assert(cut.every((batch) => batch.length >= 1 && batch.length <= size));
  }));
});
