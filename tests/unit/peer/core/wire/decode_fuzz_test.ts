/**
 * What a peer may send that is no message of ours: any JSON, messages with
 * fields put wrong, texts cut and stirred. Reading it gives a message or a
 * LacewingError, never anything else. A failure prints its seed; give it back in `fc.assert(…, { seed })`.
 *
 * covers: peer/core/wire/scheduler.ts
 */
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { z } from "zod";
import { LacewingError } from "../../../../../peer/core/errors.ts";
import { ipcFollowUp, ipcReply, ipcRequest } from "../../../../../peer/core/wire/ipc.ts";
import { exchangeEvent, exchangeRequest } from "../../../../../peer/core/wire/piece.ts";
import { decodeMessage, hostMessage, schedulerMessage } from "../../../../../peer/core/wire/scheduler.ts";

const UNIONS = { hostMessage, schedulerMessage, ipcRequest, ipcReply, exchangeRequest, exchangeEvent };
const SCHEMAS: Record<string, z.ZodType> = { ...UNIONS, ipcFollowUp };
/** Every type and every field name of every message: what hostile senders aim at. */
const TYPES = Object.values(UNIONS).flatMap((union) =>
  union.options.map((option) => option.shape.type.value as string)
);
const FIELDS = [
  ...new Set(Object.values(UNIONS).flatMap((union) => union.options.flatMap((o) => Object.keys(o.shape)))),
];

/** Reads and says whether it was a message; a message that was read is read again as itself. */
function decodes(schema: z.ZodType, text: unknown): boolean {
  try {
    const message = decodeMessage(schema, text);
    assertEquals(decodeMessage(schema, JSON.stringify(message)), message);
    return true;
  } catch (error) {
    assert(error instanceof LacewingError, String(error));
    assertEquals(error.code, "protocol");
    assert(error.message.length < 1000);
    return false;
  }
}

const names = fc.oneof(
  fc.constantFrom(...FIELDS, "__proto__", "constructor", "toString", "meta", "host", "task", "error", "headers"),
  fc.string(),
);
const leaves = fc.oneof(
  fc.constantFrom(null, true, -1, 0, 1, 1.5, 2 ** 53, 1e308, "", "..", "running", "normal", "preheat"),
  fc.constantFrom("0".repeat(64), "x".repeat(10_000), "sha256:", "\u0000", "\ud800", "http://host/x"),
  fc.string({ unit: "binary" }),
  fc.integer(),
);
const { node: nodes } = fc.letrec((tie) => ({
  node: fc.oneof({ maxDepth: 4 }, leaves, tie("list"), tie("object")),
  list: fc.array(tie("node"), { maxLength: 6 }),
  object: fc.array(fc.tuple(names, tie("node")), { maxLength: 8 }).map((entries) => Object.fromEntries(entries)),
}));
const messages = fc.tuple(fc.constantFrom(...TYPES), fc.array(fc.tuple(fc.constantFrom(...FIELDS), nodes)))
  .map(([type, entries]) => ({ v: 1, ...Object.fromEntries(entries), type }));

for (const [name, schema] of Object.entries(SCHEMAS)) {
  Deno.test(`decodeMessage(${name}) of any JSON throws nothing but LacewingError`, () => {
    fc.assert(fc.property(fc.json(), (text) => void decodes(schema, text)));
    fc.assert(fc.property(nodes, (value) => void decodes(schema, JSON.stringify(value))));
  });

  Deno.test(`decodeMessage(${name}) of messages with any fields throws nothing but LacewingError`, () => {
    fc.assert(fc.property(messages, (message) => void decodes(schema, JSON.stringify(message))), { numRuns: 300 });
  });

  Deno.test(`decodeMessage(${name}) of any text or value throws nothing but LacewingError`, () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => void decodes(schema, text)));
    fc.assert(fc.property(fc.anything(), (value) => void decodes(schema, value)));
  });

  Deno.test(`decodeMessage(${name}) of deep and wide JSON throws nothing but LacewingError`, () => {
    for (const [open, close] of [["[", "]"], ['{"type":', "}"], ['{"task":{"headers":', "}}"]] as const) {
      const depth = Math.floor(400_000 / open.length);
      decodes(schema, open.repeat(depth) + "1" + close.repeat(depth));
      decodes(schema, open.repeat(depth));
    }
    decodes(
      schema,
      JSON.stringify(Object.fromEntries(Array.from({ length: 50_000 }, (_, number) => [`k${number}`, 1]))),
    );
  });
}

const GOOD = {
  type: "held",
  tasks: [{
    task_id: "0".repeat(64),
    url: "http://host/x",
    tag: "",
    filter: "",
    meta: { generation: "g", content_length: 1, piece_length: 262_144, ranges: true },
    piece_count: 1,
    complete: true,
  }],
};

Deno.test("a good message with any one character changed or cut is a message or a LacewingError", () => {
  const text = JSON.stringify(GOOD);
  assert(decodes(hostMessage, text));
  for (let at = 0; at < text.length; at++) {
    assert(!decodes(hostMessage, text.slice(0, at)));
    for (const other of ["", '"', "}", "0", "\\", "\u0000"]) {
      decodes(hostMessage, text.slice(0, at) + other + text.slice(at + 1));
    }
  }
});

Deno.test("the fuzzed messages reach the fields: some are read", () => {
  const read = fc.sample(messages, { numRuns: 600, seed: 1 }).filter((message) =>
    Object.values(SCHEMAS).some((schema) => decodes(schema, JSON.stringify(message)))
  );
  assert(read.length > 10, String(read.length));
});
