// covers: peer/ipc/session.ts
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { type IpcReply, ipcReply } from "../../../../peer/core/wire/ipc.ts";
import { LineReader, LineWriter } from "../../../../peer/core/wire/json_lines.ts";
import { type IpcServer, startIpcServer } from "../../../../peer/ipc/server.ts";
import { leaveSocket, ScriptedTasks, socketFolder, statsOf, STATUS, until } from "./scripted_tasks.ts";

const DOWNLOAD = { type: "download", v: 1, url: "http://origin.example/f" };

function start(tasks: ScriptedTasks, path: string): Promise<IpcServer> {
  return startIpcServer({ tasks, status: () => STATUS, log: silentLogger }, { path });
}

/** A client by hand. */
class Talk implements Disposable {
  readonly reader: LineReader;
  readonly #writer: LineWriter;

  private constructor(readonly conn: Deno.UnixConn) {
    this.reader = new LineReader(conn);
    this.#writer = new LineWriter(conn);
  }

  static async open(path: string, request?: unknown): Promise<Talk> {
    const talk = new Talk(await Deno.connect({ transport: "unix", path }));
    if (request !== undefined) await talk.say(request);
    return talk;
  }

  say(value: unknown): Promise<void> {
    return this.#writer.writeJson(value);
  }

  /** Raw text; a connection that is closed meanwhile is fine. */
  async write(text: string): Promise<void> {
    await this.#writer.writeBytes(new TextEncoder().encode(text)).catch(() => {});
  }

  /** The next line, or undefined at the end. */
  async hear(): Promise<IpcReply | undefined> {
    const value = await this.reader.readJson().catch(() => undefined);
    return value === undefined ? undefined : ipcReply.parse(value);
  }

  async bytes(length: number): Promise<string> {
    const buffer = new Uint8Array(length);
    for (let at = 0; at < length;) at += await this.reader.readBytes(buffer.subarray(at)) ?? length;
    return new TextDecoder().decode(buffer);
  }

  [Symbol.dispose](): void {
    this.conn.close();
  }
}

function code(reply: IpcReply | undefined): string | undefined {
  return reply?.type === "error" ? reply.error.code : reply?.type;
}

Deno.test("startIpcServer() makes folder and socket for this user only, and removes the socket at the end", async () => {
  await using place = await socketFolder();
  const server = await start(new ScriptedTasks(), place.path);
  const { mode } = await Deno.lstat(place.path);
  assertEquals((mode ?? 0) & 0o777, 0o600);
  await server[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  await assertRejects(() => Deno.lstat(place.path), Deno.errors.NotFound);
});

Deno.test("startIpcServer() replaces a socket that a killed daemon left", async () => {
  await using place = await socketFolder();
  await Deno.mkdir(`${place.folder}/run`);
  leaveSocket(place.path);
  assert((await Deno.lstat(place.path)).isSocket);
  await using _server = await start(new ScriptedTasks(), place.path);
  using talk = await Talk.open(place.path, { type: "status", v: 1 });
  assertEquals((await talk.hear())?.type, "status");
});

Deno.test("startIpcServer() leaves a daemon that answers alone", async () => {
  await using place = await socketFolder();
  await using _first = await start(new ScriptedTasks(), place.path);
  const error = await assertRejects(() => start(new ScriptedTasks(), place.path), LacewingError, place.path);
  assertEquals(error.code, "already_running");
  using talk = await Talk.open(place.path, { type: "status", v: 1 });
  assertEquals((await talk.hear())?.type, "status");
});

Deno.test("startIpcServer() does not remove a file that is no socket", async () => {
  await using place = await socketFolder();
  const path = `${place.folder}/precious`;
  await Deno.writeTextFile(path, "text");
  const error = await assertRejects(() => start(new ScriptedTasks(), path), LacewingError, "no socket");
  assertEquals([error.code, await Deno.readTextFile(path)], ["file", "text"]);
});

for (const [what, name] of [["too long", "x".repeat(120)], ["below a file", "file/daemon.sock"]] as const) {
  Deno.test(`startIpcServer() says that a path ${what} cannot be`, async () => {
    await using place = await socketFolder();
    await Deno.writeTextFile(`${place.folder}/file`, "");
    const error = await assertRejects(() => start(new ScriptedTasks(), `${place.folder}/${name}`), LacewingError);
    assertEquals(error.code, "file");
  });
}

Deno.test("IPC server that stops leaves the socket of its successor", async () => {
  await using place = await socketFolder();
  const first = await start(new ScriptedTasks(), place.path);
  await Deno.remove(place.path);
  await using _second = await start(new ScriptedTasks(), place.path);
  await first[Symbol.asyncDispose]();
  using talk = await Talk.open(place.path, { type: "status", v: 1 });
  assertEquals(await talk.hear(), { type: "status", ...STATUS });
  assertEquals(await talk.hear(), undefined);
});

Deno.test("IPC server hands every field of a request to the task", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  await using _server = await start(tasks, place.path);
  using talk = await Talk.open(place.path, {
    ...DOWNLOAD,
    headers: [["A", "1"], ["A", "2"]],
    tag: "t",
    filter: "x&y",
    digest: `sha256:${"AB".repeat(32)}`,
    range: "5-9",
    disable_back_source: true,
    rate_limit: 77,
    traceparent: "00-1-2-01",
  });
  assertEquals(code(await talk.hear()), "accepted");
  assertEquals(tasks.runs[0]?.request, {
    url: DOWNLOAD.url,
    headers: [["A", "1"], ["A", "2"]],
    tag: "t",
    filter: "x&y",
    digest: { algorithm: "sha256", hex: "ab".repeat(32) },
    range: { kind: "closed", first: 5, last: 9 },
    disableBackSource: true,
    rateLimitBytesPerSecond: 77,
    traceparent: "00-1-2-01",
  });
});

Deno.test("IPC server tells progress and the end, and keeps the run until the client closes", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  await using _server = await start(tasks, place.path);
  const talk = await Talk.open(place.path, DOWNLOAD);
  assertEquals(await talk.hear(), { type: "accepted", task_id: "ab".repeat(32) });
  const run = tasks.runs[0];
  run?.arrive(new Uint8Array(400));
  run?.tellProgress();
  assertEquals(await talk.hear(), {
    type: "progress",
    total: 1000,
    done: 400,
    from_local: 0,
    from_peers: 400,
    from_source: 0,
    peers: 2,
  });
  run?.finish("/store/f");
  assertEquals(await talk.hear(), { type: "done", path: "/store/f", stats: statsOf(400) });
  assertEquals(run?.isDisposed, false);
  talk[Symbol.dispose]();
  await until(() => run?.isDisposed === true);
});

Deno.test("IPC server tells progress at most every 100 ms", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  await using _server = await start(tasks, place.path);
  using talk = await Talk.open(place.path, DOWNLOAD);
  await talk.hear();
  const run = tasks.runs[0];
  const beganAtMs = performance.now();
  const telling = setInterval(() => run?.tellProgress(), 1);
  for (let line = 0; line < 4; line++) assertEquals((await talk.hear())?.type, "progress");
  clearInterval(telling);
  assert(performance.now() - beganAtMs > 280);
});

Deno.test("IPC server sends the bytes after done when asked", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  tasks.onStart = (run) => {
    run.arrive(new TextEncoder().encode("hello "));
    run.arrive(new TextEncoder().encode("world"));
    run.finish();
  };
  await using _server = await start(tasks, place.path);
  using talk = await Talk.open(place.path, DOWNLOAD);
  await talk.hear();
  assertEquals(code(await talk.hear()), "done");
  await talk.say({ type: "send" });
  assertEquals(await talk.hear(), { type: "data", length: 6 });
  assertEquals(await talk.bytes(6), "hello ");
  assertEquals(await talk.hear(), { type: "data", length: 5 });
  assertEquals(await talk.bytes(5), "world");
  assertEquals(await talk.hear(), { type: "done", path: null, stats: statsOf(11) });
  assertEquals(await talk.hear(), undefined);
  await until(() => tasks.runs[0]?.isDisposed === true);
});

Deno.test("IPC server streams bytes while they arrive", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  await using _server = await start(tasks, place.path);
  using talk = await Talk.open(place.path, { ...DOWNLOAD, delivery: "stream" });
  await talk.hear();
  const run = tasks.runs[0];
  for (const word of ["one", "", "three"]) run?.arrive(new TextEncoder().encode(word));
  assertEquals(await talk.hear(), { type: "data", length: 3 });
  assertEquals(await talk.bytes(3), "one");
  assertEquals(await talk.hear(), { type: "data", length: 5 });
  assertEquals(await talk.bytes(5), "three");
  run?.finish();
  assertEquals(await talk.hear(), { type: "done", path: null, stats: statsOf(8) });
  assertEquals(await talk.hear(), undefined);
});

Deno.test("IPC server reads no further than a stream's client does", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  tasks.onStart = (run) => {
    for (let i = 0; i < 64; i++) run.arrive(new Uint8Array(1024 * 1024).fill(i));
    run.finish();
  };
  await using _server = await start(tasks, place.path);
  using talk = await Talk.open(place.path, { ...DOWNLOAD, delivery: "stream" });
  await talk.hear();
  assertEquals(code(await talk.hear()), "data");
  assert((tasks.runs[0]?.readCount ?? 64) < 8);
  const first = await talk.bytes(1024 * 1024);
  assertEquals(first, "\0".repeat(1024 * 1024));
});

for (
  const [what, error, want] of [
    ["an expected failure", new LacewingError("source_not_found", "Cannot read: 404"), "source_not_found"],
    ["a timeout", new DOMException("over", "TimeoutError"), "timeout"],
    ["something unexpected", new TypeError("oops"), "unknown"],
  ] as const
) {
  for (const delivery of ["file", "stream"]) {
    Deno.test(`IPC server ends delivery ${delivery} with an error line after ${what}`, async () => {
      await using place = await socketFolder();
      const tasks = new ScriptedTasks();
      await using _server = await start(tasks, place.path);
      using talk = await Talk.open(place.path, { ...DOWNLOAD, delivery });
      await talk.hear();
      tasks.runs[0]?.fail(error);
      const reply = await talk.hear();
      assertEquals(code(reply), want);
      assertMatch(reply?.type === "error" ? reply.error.message : "", new RegExp(error.message));
      assertEquals(await talk.hear(), undefined);
      assertEquals(tasks.runs[0]?.isDisposed, true);
    });
  }
}

Deno.test("IPC server says what the task says to a request that it refuses", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  tasks.onStart = () => {
    throw new LacewingError("usage", "Cannot read URL");
  };
  await using _server = await start(tasks, place.path);
  using talk = await Talk.open(place.path, DOWNLOAD);
  assertEquals(code(await talk.hear()), "usage");
});

for (
  const [what, text, want] of [
    ["no JSON", "hello\n", "protocol"],
    ["no object", "null\n", "protocol"],
    ["another version", '{"type":"status","v":2}\n', "protocol"],
    ["no version", '{"type":"status"}\n', "protocol"],
    ["an unknown type", '{"type":"explode","v":1}\n', "protocol"],
    ["a download without URL", '{"type":"download","v":1}\n', "usage"],
    ["a URL over its bound", JSON.stringify({ ...DOWNLOAD, url: "u".repeat(9000) }) + "\n", "usage"],
    ["a digest that is none", JSON.stringify({ ...DOWNLOAD, digest: "sha256:12" }) + "\n", "usage"],
    ["a range that is none", JSON.stringify({ ...DOWNLOAD, range: "9-2" }) + "\n", "usage"],
    ["a line over the bound", "x".repeat(1024 * 1024 + 10), "protocol"],
  ] as const
) {
  Deno.test(`IPC server answers ${what} with ${want} and closes`, async () => {
    await using place = await socketFolder();
    const tasks = new ScriptedTasks();
    await using server = await start(tasks, place.path);
    using talk = await Talk.open(place.path);
    await talk.write(text);
    assertEquals(code(await talk.hear()), want);
    assertEquals(await talk.hear(), undefined);
    assertEquals(tasks.runs.length, 0);
    await until(() => server.connectionCount === 0);
  });
}

for (const [what, text] of [["rubbish", "rubbish\n"], ["another message", '{"type":"status","v":1}\n']] as const) {
  Deno.test(`IPC server ends a download whose client says ${what} after done`, async () => {
    await using place = await socketFolder();
    const tasks = new ScriptedTasks();
    tasks.onStart = (run) => run.finish();
    await using _server = await start(tasks, place.path);
    using talk = await Talk.open(place.path, DOWNLOAD);
    await talk.hear();
    assertEquals(code(await talk.hear()), "done");
    await talk.write(text);
    assertEquals(code(await talk.hear()), "protocol");
  });
}

Deno.test("IPC server ends a download whose client asks for more before done", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  await using _server = await start(tasks, place.path);
  using talk = await Talk.open(place.path, DOWNLOAD);
  await talk.hear();
  await talk.say(DOWNLOAD);
  assertEquals(code(await talk.hear()), "protocol");
  assertEquals([tasks.runs.length, tasks.runs[0]?.signal.aborted], [1, true]);
});

for (const delivery of ["file", "stream"]) {
  Deno.test(`IPC server aborts the run of a client that goes away, delivery ${delivery}`, async () => {
    await using place = await socketFolder();
    const tasks = new ScriptedTasks();
    await using server = await start(tasks, place.path);
    const talk = await Talk.open(place.path, { ...DOWNLOAD, delivery });
    await talk.hear();
    talk[Symbol.dispose]();
    await until(() => tasks.runs[0]?.isDisposed === true);
    assertEquals([tasks.runs[0]?.signal.aborted, server.connectionCount], [true, 0]);
  });
}

Deno.test("IPC server notices a client that goes away in the middle of a stream that it did not read", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  tasks.onStart = (run) => {
    for (let i = 0; i < 16; i++) run.arrive(new Uint8Array(1024 * 1024));
  };
  await using _server = await start(tasks, place.path);
  const talk = await Talk.open(place.path, { ...DOWNLOAD, delivery: "stream" });
  assertEquals([code(await talk.hear()), code(await talk.hear())], ["accepted", "data"]);
  talk[Symbol.dispose]();
  await until(() => tasks.runs[0]?.isDisposed === true);
});

Deno.test("IPC server that stops ends every run with unavailable, also a stream that nobody reads", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  tasks.onStart = (run) => {
    if (tasks.runs.length === 3) { for (let i = 0; i < 16; i++) run.arrive(new Uint8Array(1024 * 1024)); }
  };
  const server = await start(tasks, place.path);
  using file = await Talk.open(place.path, DOWNLOAD);
  await file.hear();
  using finished = await Talk.open(place.path, DOWNLOAD);
  await finished.hear();
  tasks.runs[1]?.finish();
  await finished.hear();
  using stream = await Talk.open(place.path, { ...DOWNLOAD, delivery: "stream" });
  await stream.hear();
  using idle = await Talk.open(place.path);
  await until(() => server.connectionCount === 4);
  await server[Symbol.asyncDispose]();
  for (const talk of [file, finished, idle]) assertEquals(code(await talk.hear()), "unavailable");
  assertEquals(tasks.runs.map((run) => run.isDisposed), [true, true, true]);
});

Deno.test("IPC server serves many clients at once", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  await using server = await start(tasks, place.path);
  const talks = await Promise.all(Array.from({ length: 100 }, () => Talk.open(place.path, DOWNLOAD)));
  for (const talk of talks) assertEquals(code(await talk.hear()), "accepted");
  assertEquals(server.connectionCount, 100);
  for (const run of tasks.runs.toReversed()) run.finish();
  for (const talk of talks) {
    assertEquals(code(await talk.hear()), "done");
    talk[Symbol.dispose]();
  }
  await until(() => server.connectionCount === 0);
});
