/** The reader that the client has by hand says what the schema says, over every field and many wrong values. */
import { assert, assertEquals } from "@std/assert";
import { ipcReply } from "../../../../../peer/core/wire/ipc.ts";
import { readIpcReply } from "../../../../../peer/core/wire/ipc_reply.ts";

type Message = Record<string, unknown>;

const STATS = {
  task_id: "t",
  content_length: 10,
  offset: 0,
  length: 10,
  from_local: 1,
  from_peers: 2,
  from_source: 3,
  peers: 1,
  verified: "md5:00",
  parents: [["host", 2]],
  last_modified: "Mon, 01 Jan 2024 00:00:00 GMT",
};
const PROXY = { address: "127.0.0.1:65001", url: "https://r", dynamic: true, registries: ["r:5000"], password: false };
const EXPLAINED = {
  ways: ["request", "proxy"],
  task_id: "t",
  url: "http://h/f",
  filter: "a",
  tag: "",
  shared: true,
  held: { complete: false, content_length: 10, piece_count: 1, pieces: 2, verified: null },
  host_count: 1,
  hosts: [{ host_id: "h", hostname: "n", complete: true, piece_count: 2 }],
  jobs: [{ job_id: 1, cluster_id: 1, job_state: "SUCCESS", state: "SUCCESS", host_count: 1 }],
};
const MESSAGES: Message[] = [
  { type: "accepted", task_id: "t", data_dir: "/d" },
  { type: "progress", total: 10, done: 1, from_local: 0, from_peers: 1, from_source: 0, peers: 1 },
  { type: "data", length: 5 },
  { type: "done", path: "/d/f", stats: STATS },
  { type: "status", version: "1", host_id: "h", tasks: 0, schedulers: 1, pid: 2, proxy: PROXY },
  {
    type: "explained",
    host_id: "h",
    proxy: { filter: "a&b", tag: "" },
    cluster_error: { code: "timeout", message: "late" },
    tasks: [EXPLAINED],
  },
  { type: "error", error: { code: "network", message: "no" } },
];
const VALUES: unknown[] = [
  undefined,
  null,
  true,
  0,
  -0,
  1,
  -1,
  1.5,
  NaN,
  Infinity,
  Number.MAX_SAFE_INTEGER,
  2 ** 53,
  "",
  "x",
  "7",
  ...[64, 65, 128, 129, 140, 141, 256, 257, 4000, 4001, 4096, 4097].map((length) => "x".repeat(length)),
  [],
  {},
  [1],
  ["host", 1],
  [["host", 1]],
  [["host", 1, 2]],
  [["host"]],
  [[1, "host"]],
  [["x".repeat(257), 1]],
  Array.from({ length: 1000 }, () => ["h", 1]),
  Array.from({ length: 1001 }, () => ["h", 1]),
];

function assertSame(given: unknown): void {
  // As it comes over the wire.
  const message = given === undefined ? undefined : JSON.parse(JSON.stringify(given));
  const wanted = ipcReply.safeParse(message);
  const found = readIpcReply(message);
  const shown = JSON.stringify(message)?.slice(0, 300);
  if (wanted.success) assertEquals("reply" in found ? found.reply : found, wanted.data, shown);
  else assert("wrong" in found, `${shown} should be refused: ${wanted.error.issues[0]?.path.join(".")}`);
}

Deno.test("there is a row for every reply of the schema", () => {
  const types = ipcReply.options.map((option) => option.shape.type.value as string);
  assertEquals(MESSAGES.map(({ type }) => String(type)).sort(), types.sort());
  const done = ipcReply.options.find((option) => option.shape.type.value === "done");
  assert(done !== undefined && "stats" in done.shape);
  assertEquals(Object.keys(done.shape.stats.shape).sort(), Object.keys(STATS).sort());
  for (const option of ipcReply.options) {
    const message = MESSAGES.find(({ type }) => type === option.shape.type.value)!;
    assertEquals(Object.keys(message).sort(), Object.keys(option.shape).sort());
  }
});

for (const message of MESSAGES) {
  Deno.test(`${message.type}: reader and schema agree over every field`, () => {
    assertSame(message);
    assertSame({ ...message, another: 1 });
    for (const name of Object.keys(message)) {
      for (const value of VALUES) assertSame({ ...message, [name]: value });
      const { [name]: _, ...without } = message;
      assertSame(without);
      const inner = message[name];
      if (typeof inner !== "object" || inner === null) continue;
      assertSame({ ...message, [name]: { ...inner, another: 1 } });
      for (const field of Object.keys(inner)) {
        for (const value of VALUES) assertSame({ ...message, [name]: { ...inner, [field]: value } });
        const { [field]: _, ...rest } = inner as Message;
        assertSame({ ...message, [name]: rest });
      }
    }
  });
}

Deno.test("what is no message is refused, and the wrong field is named", () => {
  for (const value of [...VALUES, { type: "none" }, { type: "toString" }, { type: "__proto__" }]) assertSame(value);
  assertEquals(readIpcReply({ type: "data", length: -1 }), { wrong: "length" });
  assertEquals(readIpcReply({ type: "done", path: null, stats: { ...STATS, peers: "1" } }), { wrong: "stats.peers" });
  assertEquals(readIpcReply([]), { wrong: "type" });
});
