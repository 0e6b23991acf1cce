/**
 * A manager process under bad input: every route that it describes, raw bytes
 * on its port, and hosts that say nonsense over their WebSocket. Each is
 * refused in the words of INTERFACE section 1.3, and it serves on.
 */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { formatBytes } from "../../peer/core/units.ts";
import { SCHEDULER_PATH } from "../../peer/core/wire/scheduler.ts";
import { rubbish, sendRaw } from "../testutil/raw.ts";
import { type ManagerProcess, spawnManager } from "../testutil/process.ts";

const BODY_LENGTH_MAX = 1024 * 1024;
const JSON_TYPE = { "content-type": "application/json" };
const IDS = ["0", "-1", "1.5", "abc", "9".repeat(20), "%00", "1%2f2", "__proto__"];
const QUERIES = ["page=0", "page=x", "per_page=101", "per_page=", "page=1e9"];
const PAGED = /\/(jobs|tasks|peers|seed-peers|scheduler-clusters|personal-access-tokens)$/;

interface Route {
  method: string;
  path: string;
  hasBody: boolean;
}

/** What the manager says that it serves. */
async function routesOf({ http }: ManagerProcess): Promise<Route[]> {
  const { paths } = await (await fetch(`${http}/openapi.json`)).json();
  return Object.entries<Record<string, { requestBody?: unknown }>>(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      hasBody: requestBody !== undefined,
    }))
  );
}

interface Sent {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: BodyInit;
}

/** Asserts that the manager refuses it as a problem, and nothing of its insides shows. */
async function assertRefused(manager: ManagerProcess, { path, ...init }: Sent, statuses: number[]): Promise<string> {
  const response = await fetch(manager.http + path, { redirect: "manual", ...init });
  const text = await response.text();
  const what = `${init.method} ${path.slice(0, 100)} ${
    String(init.body ?? "").slice(0, 60)
  }: ${response.status} ${text}`;
  assert(statuses.includes(response.status), what.slice(0, 2000));
  assertEquals(response.headers.get("content-type"), "application/problem+json", what);
  const problem = JSON.parse(text);
  assertEquals([problem.status, problem.message], [response.status, problem.detail], what);
  assertEquals(problem.type, `urn:lacewing:error:${problem.code}`, what);
  assert(problem.detail.length > 10 && text.length < 8000, what);
  assert(!/\.ts:\d|node_modules|\bat [\w.#]+ \(/.test(text), `a stack trace shows: ${what}`);
  if (problem.code === "invalid" && problem.errors !== undefined) {
    assert(problem.errors.every(({ message }: { message: string }) => message.length > 0), what);
  }
  return text;
}

async function assertServes(manager: ManagerProcess): Promise<void> {
  assertEquals(await (await fetch(`${manager.http}/healthy`)).text(), "OK");
}

/** Bodies that no route takes: what is sent, and what may be answered. */
const BODIES: [body: string | Uint8Array<ArrayBuffer>, statuses: number[]][] = [
  ["", [400]],
  ["{", [400]],
  ["nothing", [400]],
  ['{"type":"preheat",}', [400]],
  ["[".repeat(500_000), [400]],
  ['{"a":'.repeat(100_000) + "1" + "}".repeat(100_000), [422]],
  ["\u0000", [400]],
  [new Uint8Array([0xff, 0xfe, 0x00, 0x80]), [400]],
  ["null", [422]],
  ["[]", [422]],
  ["7", [422]],
  ['"text"', [422]],
  ['{"__proto__":{"type":"preheat"}}', [422]],
  ['{"constructor":{"prototype":{"x":1}}}', [422]],
  [`{"type":${"1".repeat(400)}}`, [422]],
  [JSON.stringify({ name: 7, bio: [], type: {}, args: "x", scopes: 1 }), [422]],
  [JSON.stringify({ name: "", scopes: [] }), [422]],
  [JSON.stringify({ name: "x\ny", bio: "x".repeat(5000), scopes: { cidrs: ["10.0.0.0/99"], hostnames: ["("] } }), [
    422,
  ]],
  [JSON.stringify({ type: "preheat", args: { type: "image", url: "http://h/\u0000" } }), [422]],
  [JSON.stringify({ type: "preheat", args: { type: "file", urls: Array(1001).fill("http://h/") } }), [422]],
  [JSON.stringify({ type: "preheat", args: { type: "file", url: `http://h/${"x".repeat(9000)}` } }), [422]],
  [JSON.stringify({ type: "preheat", args: { type: "file", url: "http://h/", scheduler_cluster_ids: [9e15] } }), [422]],
  [JSON.stringify({ type: "preheat", args: { type: "file", url: "http://h/", timeout: 1e300 } }), [422]],
];

async function badBodies(manager: ManagerProcess, { method, path: pattern }: Route): Promise<void> {
  const path = pattern.replace("{id}", "1");
  for (const [body, statuses] of BODIES) {
    await assertRefused(manager, { method, path, body, headers: JSON_TYPE }, statuses);
  }
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x".repeat(5000)]) {
    await assertRefused(manager, { method, path, body: "{}", headers: { "content-type": type } }, [415]);
  }
  await assertRefused(manager, { method, path, body: new Uint8Array([123, 125]) }, [415]);
  const long = `{"type":"${"x".repeat(BODY_LENGTH_MAX)}"}`;
  await assertRefused(manager, { method, path, body: long, headers: JSON_TYPE }, [413]);
  // Without its length announced; the manager may hang up on what it does not read.
  const chunks = ReadableStream.from(Array(64).fill(new Uint8Array(64 * 1024).fill(32)));
  const streamed = { method, path, body: chunks, headers: JSON_TYPE };
  await assertRefused(manager, streamed, [413]).catch((error) => {
    if (!(error instanceof TypeError)) throw error;
  });
}

Deno.test("a manager refuses bad input to every route that it describes, and serves on", async (test) => {
  await using manager = await spawnManager();
  const routes = await routesOf(manager);
  assert(routes.length >= 20, `${routes.length} routes are described`);
  for (const route of routes) {
    await test.step(`${route.method} ${route.path}`, async () => {
      const { method, path, hasBody } = route;
      if (hasBody) await badBodies(manager, route);
      const init = hasBody ? { headers: JSON_TYPE, body: "{}" } : {};
      if (path.includes("{id}")) {
        for (const id of IDS) {
          await assertRefused(manager, { method, path: path.replace("{id}", id), ...init }, [404, 422]);
        }
        await assertRefused(manager, { method, path: path.replace("{id}", "987654"), ...init }, [404, 422]);
      }
      if (method === "GET" && PAGED.test(path)) {
        for (const query of QUERIES) {
          const text = await assertRefused(manager, { method, path: `${path.replace("{id}", "1")}?${query}` }, [422]);
          assertStringIncludes(text, `"path":"${query.split("=")[0]}"`);
        }
      }
      for (const wrong of ["PUT", "TRACE1", "PROPFIND"]) {
        await assertRefused(manager, { method: wrong, path: path.replace("{id}", "1") }, [405]);
      }
    });
  }
  for (const path of ["/", "//", "/api", "/api/v1/jobs/", "/api/v1/../v1/nothing", "/%", "/docs/../../etc/passwd"]) {
    await assertRefused(manager, { method: "GET", path }, [404]);
  }
  await assertServes(manager);
  assertEquals((await manager.api("GET", "/api/v1/jobs")).body, []);
  assertEquals((await manager.api("GET", "/api/v1/scheduler-clusters")).body.length, 1);
  assertEquals(manager.log().split("\n").filter((line) => line.includes('"level":"error"')), []);
  console.log(`manager after bad input to ${routes.length} routes: RSS ${formatBytes(manager.rssBytes())}`);
});

Deno.test("a manager outlives rubbish, half requests and endless lines on its port", async () => {
  await using manager = await spawnManager();
  const { hostname, port } = new URL(manager.http);
  const place = { hostname, port: Number(port) };
  const open: Deno.Conn[] = [];
  for (const bytes of rubbish()) open.push(...await sendRaw(place, bytes));
  for (let index = 0; index < 50; index++) open.push(await Deno.connect(place));
  await assertServes(manager);
  const created = await manager.api("POST", "/api/v1/scheduler-clusters", { name: "after" });
  assertEquals(created.status, 200, JSON.stringify(created.body));
  for (const conn of open) conn.close();
  console.log(`manager after rubbish: RSS ${formatBytes(manager.rssBytes())}`);
});

const HELLO = {
  type: "hello",
  v: 1,
  host: {
    ...{ id: "11111111-1111-1111-1111-111111111111", hostname: "h", ip: "127.0.0.1", upload_port: 1, type: "normal" },
    ...{ platform: "linux/amd64", version: "0" },
  },
};
const HEARTBEAT = { type: "heartbeat", uploads: 0, downloads: 0, free_bytes: 0 };
const TASK = { task_id: "a".repeat(64), url: "http://h/" };
const META = { generation: "g", content_length: 100, piece_length: 100, ranges: true };

/** What a host says, the last of it wrong; the code of the scheduler's error and of the close. */
const TALKS: [claim: string, says: (string | Uint8Array<ArrayBuffer> | object)[], code: string, closeCode: number][] = [
  ["not JSON", ["hello"], "protocol", 1008],
  ["nothing", [""], "protocol", 1008],
  ["bytes", [new Uint8Array([123, 125])], "protocol", 1008],
  ["no object", ["null"], "protocol", 1008],
  ["an unknown type", [{ type: "goodbye" }], "protocol", 1008],
  ["brackets without end", ["[".repeat(900_000)], "protocol", 1008],
  ["a deep object", ['{"a":'.repeat(100_000) + "1" + "}".repeat(100_000)], "protocol", 1008],
  ["more than a message may have", [JSON.stringify({ ...HELLO, x: "x".repeat(1024 * 1024) })], "protocol", 1009],
  ["another version", [{ ...HELLO, v: 99 }], "protocol", 1008],
  ["a port that is none", [{ ...HELLO, host: { ...HELLO.host, upload_port: 0 } }], "protocol", 1008],
  ["something before hello", [HEARTBEAT], "protocol", 1008],
  ["hello twice", [HELLO, HELLO], "protocol", 1008],
  ["a heartbeat of text", [HELLO, { ...HEARTBEAT, uploads: "1" }], "protocol", 1008],
  ["numbers below zero", [HELLO, { ...HEARTBEAT, free_bytes: -1 }], "protocol", 1008],
  ["a task id that is none", [HELLO, { type: "leave", task_id: "x" }], "protocol", 1008],
  [
    "more entries than a batch",
    [HELLO, { type: "dropped", task_ids: Array(1001).fill(TASK.task_id) }],
    "protocol",
    1008,
  ],
  [
    "a content of too many pieces",
    [HELLO, { type: "meta", task_id: TASK.task_id, meta: { ...META, content_length: 2 ** 52, piece_length: 1 } }],
    "protocol",
    1008,
  ],
];

/** Things that are well formed but mean nothing: they are passed over. */
const STRAY = [
  HEARTBEAT,
  { type: "leave", task_id: TASK.task_id },
  { type: "meta", task_id: TASK.task_id, meta: META },
  { type: "pieces", task_id: TASK.task_id, generation: "g", pieces: [[2 ** 40, "b".repeat(64)]] },
  { type: "lease_end", task_id: TASK.task_id, lease_id: 2 ** 50 },
  { type: "starving", task_id: TASK.task_id, generation: "g", pieces: [0, 0, 2 ** 50] },
  { type: "bad_peer", task_id: TASK.task_id, host_id: HELLO.host.id, piece: 0 },
  { type: "complete", task_id: TASK.task_id, generation: "g" },
  { type: "dropped", task_ids: [TASK.task_id] },
  {
    type: "order_progress",
    order_id: "x",
    state: "success",
    content_length: 1,
    done: 1,
    from_source: 0,
    from_peers: 0,
  },
  { type: "held", tasks: [{ ...TASK, meta: META, piece_count: 2 ** 50, complete: true }] },
  { type: "join", task: TASK, piece_count: 2 ** 50, can_source: false, anonymous: false },
];

interface Ending {
  closeCode: number;
  /** Messages of the scheduler. */
  heard: { type: string; error?: { code: string; message: string } }[];
}

/** Says everything and waits for the end; `settled` may end it before. */
async function talk(
  { http }: ManagerProcess,
  says: readonly unknown[],
  settled?: () => Promise<void>,
): Promise<Ending> {
  const socket = new WebSocket(http.replace("http", "ws") + SCHEDULER_PATH);
  const heard: Ending["heard"] = [];
  const closed = Promise.withResolvers<number>();
  socket.onmessage = ({ data }) => heard.push(JSON.parse(data));
  socket.onclose = ({ code }) => closed.resolve(code);
  await new Promise((resolve) => socket.onopen = resolve);
  for (const one of says) {
    socket.send(typeof one === "string" || one instanceof Uint8Array ? one as string : JSON.stringify(one));
  }
  if (settled !== undefined) await settled().finally(() => socket.close());
  return { closeCode: await closed.promise, heard };
}

Deno.test("a host that says nonsense is told why and put out, and the manager serves on", async (test) => {
  await using manager = await spawnManager();
  for (const [claim, says, code, closeCode] of TALKS) {
    await test.step(claim, async () => {
      const { heard, closeCode: actual } = await talk(manager, says);
      const last = heard.at(-1);
      assertEquals([last?.type, last?.error?.code, actual], ["error", code, closeCode], JSON.stringify(heard));
      assert(last!.error!.message.startsWith("Cannot ") && last!.error!.message.length < 500, last!.error!.message);
    });
  }
  await test.step("what is well formed and means nothing is passed over", async () => {
    const { heard } = await talk(manager, [HELLO, ...STRAY], async () => {
      await manager.hosts(1);
      assertEquals((await manager.api("GET", "/api/v1/tasks")).status, 200);
    });
    assertEquals(heard.filter(({ type }) => type === "error"), []);
    assertEquals(heard[0]?.type, "welcome");
  });
  await assertServes(manager);
  assertEquals(manager.log().split("\n").filter((line) => line.includes('"level":"error"')), []);
  console.log(`manager after ${TALKS.length} bad hosts: RSS ${formatBytes(manager.rssBytes())}`);
});
