import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { connectDaemon, type DownloadProgress } from "../../../../peer/ipc/client.ts";
import { type IpcServer, startIpcServer } from "../../../../peer/ipc/server.ts";
import { leaveSocket, ScriptedTasks, socketFolder, statsOf, STATUS, until } from "./scripted_tasks.ts";

const ORDER = { url: "http://origin.example/f" };

function start(tasks: ScriptedTasks, path: string): Promise<IpcServer> {
  return startIpcServer({ tasks, status: () => STATUS, log: silentLogger }, { path });
}

async function failureOf(work: Promise<unknown>): Promise<LacewingError> {
  return await assertRejects(() => work, LacewingError);
}

/** Copies of all chunks. */
async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of bytes) parts.push(chunk.slice());
  return new Uint8Array(await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer());
}

/** A daemon that reads one line, says `text` and closes. */
async function fakeDaemon(text: string): Promise<AsyncDisposable & { path: string }> {
  const place = await socketFolder();
  const path = `${place.folder}/fake.sock`;
  const listener = Deno.listen({ transport: "unix", path });
  const serving = (async () => {
    for await (const conn of listener) {
      await conn.read(new Uint8Array(4096));
      const bytes = new TextEncoder().encode(text);
      for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
      conn.close();
    }
  })();
  return {
    path,
    async [Symbol.asyncDispose]() {
      listener.close();
      await serving;
      await place[Symbol.asyncDispose]();
    },
  };
}

Deno.test("connectDaemon() says no_daemon when there is no socket, none that listens, or no socket at all", async () => {
  await using place = await socketFolder();
  await Deno.writeTextFile(`${place.folder}/file`, "");
  const path = `${place.folder}/left.sock`;
  leaveSocket(path);
  for (const at of [place.path, path, `${place.folder}/file`]) {
    const error = await failureOf(connectDaemon(at));
    assertEquals(error.code, "no_daemon");
    assertMatch(error.message, new RegExp(at));
  }
});

const TASK = (url: string) => ({
  ways: ["request" as const],
  task_id: "t",
  url,
  filter: "a",
  tag: "",
  shared: true,
  held: null,
  host_count: 0,
  hosts: [],
  jobs: [],
});

Deno.test("status() gives the daemon's own state", async () => {
  await using place = await socketFolder();
  await using _server = await start(new ScriptedTasks(), place.path);
  using connection = await connectDaemon(place.path);
  assertEquals(await connection.status(), STATUS);
  await assertRejects(() => connection.status(), TypeError, "twice");
});

Deno.test("explain() gives what the daemon says of a URL, and its refusal", async () => {
  await using place = await socketFolder();
  const answer = (url: string) => ({ host_id: "h", proxy: null, cluster_error: null, tasks: [TASK(url)] });
  {
    await using _server = await startIpcServer({
      tasks: new ScriptedTasks(),
      status: () => STATUS,
      explain: ({ url }) => {
        if (url === "x") return Promise.reject(new LacewingError("usage", "no URL"));
        return Promise.resolve(answer(url));
      },
      log: silentLogger,
    }, { path: place.path });
    using connection = await connectDaemon(place.path);
    assertEquals(await connection.explain({ url: "http://h/f", filter: "a", tag: "" }), answer("http://h/f"));
    using refused = await connectDaemon(place.path);
    assertEquals(
      (await assertRejects(() => refused.explain({ url: "x", filter: "", tag: "" }), LacewingError)).code,
      "usage",
    );
  }
  await using _server = await start(new ScriptedTasks(), place.path);
  using connection = await connectDaemon(place.path);
  await assertRejects(
    () => connection.explain({ url: "http://h/f", filter: "", tag: "" }),
    LacewingError,
    "does not know",
  );
});

Deno.test("download() gives path and stats, and holds the file until the connection is disposed", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  await using _server = await start(tasks, place.path);
  const connection = await connectDaemon(place.path);
  const heard: DownloadProgress[] = [];
  const downloading = connection.download({ ...ORDER, tag: "t" }, { onProgress: (progress) => heard.push(progress) });
  await until(() => tasks.runs.length === 1);
  const run = tasks.runs[0];
  run?.arrive(new Uint8Array(10));
  run?.tellProgress();
  await until(() => heard.length === 1);
  run?.finish("/store/x");
  const { path, stats } = await downloading;
  assertEquals([path, stats], ["/store/x", statsOf(10)]);
  assertEquals(heard, [{ total: 1000, done: 10, fromLocal: 0, fromPeers: 10, fromSource: 0, peers: 2 }]);
  assertEquals([run?.request.tag, run?.isDisposed], ["t", false]);
  connection[Symbol.dispose]();
  connection[Symbol.dispose]();
  await until(() => run?.isDisposed === true);
});

Deno.test("download() sends the bytes once when asked", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  const content = crypto.getRandomValues(new Uint8Array(60_000));
  tasks.onStart = (run) => {
    for (let i = 0; i < 20; i++) run.arrive(content);
    run.finish();
  };
  await using _server = await start(tasks, place.path);
  using connection = await connectDaemon(place.path);
  const download = await connection.download(ORDER);
  const bytes = await collect(download.send());
  assertEquals(bytes.length, 1_200_000);
  for (let i = 0; i < 20; i++) assertEquals(bytes.subarray(i * 60_000, (i + 1) * 60_000), content);
  let second: unknown;
  try {
    download.send();
  } catch (error) {
    second = error;
  }
  assert(second instanceof TypeError);
});

Deno.test("stream() gives the bytes while they arrive, and the stats at the end", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  await using _server = await start(tasks, place.path);
  using connection = await connectDaemon(place.path);
  const stream = connection.stream(ORDER);
  const iterator = stream[Symbol.asyncIterator]();
  const first = iterator.next();
  await until(() => tasks.runs.length === 1);
  tasks.runs[0]?.arrive(new TextEncoder().encode("early"));
  assertEquals(new TextDecoder().decode((await first).value), "early");
  const large = crypto.getRandomValues(new Uint8Array(65_536));
  for (let i = 0; i < 12; i++) tasks.runs[0]?.arrive(large);
  tasks.runs[0]?.finish();
  const rest = await collect({ [Symbol.asyncIterator]: () => iterator });
  assertEquals(rest.length, 12 * 65_536);
  assertEquals(rest.subarray(11 * 65_536), large);
  assertEquals(await stream.stats, statsOf(5 + 12 * 65_536));
});

Deno.test("stream() of an empty content ends at once", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  tasks.onStart = (run) => run.finish();
  await using _server = await start(tasks, place.path);
  using connection = await connectDaemon(place.path);
  const stream = connection.stream(ORDER);
  assertEquals((await collect(stream)).length, 0);
  assertEquals((await stream.stats).length, 0);
});

Deno.test("stream() that is left early cancels the run", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  tasks.onStart = (run) => run.arrive(new Uint8Array(10));
  await using _server = await start(tasks, place.path);
  using connection = await connectDaemon(place.path);
  const stream = connection.stream(ORDER);
  for await (const _ of stream) break;
  await until(() => tasks.runs[0]?.isDisposed === true);
  await assertRejects(() => stream.stats, DOMException);
});

Deno.test("the daemon's error comes back with its code, from download and stream", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  tasks.onStart = (run) => run.fail(new LacewingError("digest_mismatch", "Cannot trust it"));
  await using _server = await start(tasks, place.path);
  using a = await connectDaemon(place.path);
  const failed = await failureOf(a.download(ORDER));
  assertEquals([failed.code, failed.message], ["digest_mismatch", "Cannot trust it"]);
  using b = await connectDaemon(place.path);
  const stream = b.stream(ORDER);
  assertEquals((await failureOf(collect(stream))).code, "digest_mismatch");
  assertEquals((await failureOf(stream.stats)).code, "digest_mismatch");
});

Deno.test("a request over the line bound is a usage error", async () => {
  await using place = await socketFolder();
  await using _server = await start(new ScriptedTasks(), place.path);
  using connection = await connectDaemon(place.path);
  const error = await failureOf(connection.download({ url: "u".repeat(1024 * 1024) }));
  assertEquals(error.code, "usage");
});

for (const call of ["download", "stream"] as const) {
  Deno.test(`${call}() that is aborted rethrows the reason and cancels the run`, async () => {
    await using place = await socketFolder();
    const tasks = new ScriptedTasks();
    await using _server = await start(tasks, place.path);
    using connection = await connectDaemon(place.path);
    const controller = new AbortController();
    const { signal } = controller;
    const work = call === "download"
      ? connection.download(ORDER, { signal })
      : collect(connection.stream(ORDER, { signal }));
    const failing = assertRejects(() => work, Error, "enough");
    await until(() => tasks.runs.length === 1);
    controller.abort(new Error("enough"));
    await failing;
    await until(() => tasks.runs[0]?.isDisposed === true);
  });

  Deno.test(`${call}() with a signal that is aborted already asks nothing`, async () => {
    await using place = await socketFolder();
    const tasks = new ScriptedTasks();
    await using server = await start(tasks, place.path);
    using connection = await connectDaemon(place.path);
    const signal = AbortSignal.abort(new Error("too late"));
    await assertRejects(
      async () =>
        call === "download"
          ? await connection.download(ORDER, { signal })
          : await collect(connection.stream(ORDER, { signal })),
      Error,
      "too late",
    );
    assertEquals(tasks.runs.length, 0);
    connection[Symbol.dispose]();
    await until(() => server.connectionCount === 0);
  });
}

const STATS = JSON.stringify(statsOf(10));

for (
  const [what, text, code] of [
    ["closes at once", "", "no_daemon"],
    ["closes after accepted", '{"type":"accepted","task_id":"x"}\n', "no_daemon"],
    ["closes in the middle of a line", '{"type":"acc', "no_daemon"],
    ["closes in the middle of the bytes", '{"type":"data","length":10}\nabc', "no_daemon"],
    ["speaks no JSON", "hello\nhello\n", "protocol"],
    ["says what nobody knows", '{"type":"sing"}\n{"type":"sing"}\n', "protocol"],
    [
      "answers something else",
      `{"type":"status","version":"1","host_id":"","tasks":0,"schedulers":0,"pid":1}\n`,
      "protocol",
    ],
    [
      "sends too few bytes",
      `{"type":"data","length":3}\nabc{"type":"done","path":null,"stats":${STATS}}\n`,
      "protocol",
    ],
    ["fails with a code from the future", '{"type":"error","error":{"code":"melted","message":"m"}}\n', "unknown"],
  ] as const
) {
  Deno.test(`stream() from a daemon that ${what} fails with ${code}`, async () => {
    await using daemon = await fakeDaemon(text);
    using connection = await connectDaemon(daemon.path);
    const stream = connection.stream(ORDER);
    assertEquals((await failureOf(collect(stream))).code, code);
    assertEquals((await failureOf(stream.stats)).code, code);
  });
}

Deno.test("download() from a daemon that goes away says so", async () => {
  await using daemon = await fakeDaemon('{"type":"accepted","task_id":"x"}\n');
  using connection = await connectDaemon(daemon.path);
  const error = await failureOf(connection.download(ORDER));
  assertEquals(error.code, "no_daemon");
  assertMatch(error.message, /went away/);
});

Deno.test("download() from a daemon that names no file is a protocol error", async () => {
  await using daemon = await fakeDaemon(`{"type":"done","path":null,"stats":${STATS}}\n`);
  using connection = await connectDaemon(daemon.path);
  assertEquals((await failureOf(connection.download(ORDER))).code, "protocol");
});

Deno.test("a daemon that stops ends a download with unavailable", async () => {
  await using place = await socketFolder();
  const tasks = new ScriptedTasks();
  const server = await start(tasks, place.path);
  using connection = await connectDaemon(place.path);
  const failing = failureOf(connection.download(ORDER));
  await until(() => tasks.runs.length === 1);
  await server[Symbol.asyncDispose]();
  assertEquals((await failing).code, "unavailable");
});
