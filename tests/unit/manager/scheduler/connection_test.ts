// covers: manager/scheduler/host_connection.ts manager/scheduler/cluster.ts
import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Clock } from "../../../../peer/core/clock.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { seededRandom } from "../../../../peer/core/clock.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import {
  type HostMessage,
  MESSAGE_LENGTH_MAX,
  SCHEDULER_PROTOCOL,
  type SchedulerMessage,
} from "../../../../peer/core/wire/scheduler.ts";
import { createSchedulerService, type SchedulerService } from "../../../../manager/scheduler/connection.ts";
import { BUFFERED_MAX, HostConnection } from "../../../../manager/scheduler/host_connection.ts";
import type { ClusterPlacement, PreheatProgress } from "../../../../manager/scheduler/schedulers.ts";
import { CONFIG, factsOf, metaOf, SPEC, TASK } from "./world.ts";

/** A clock that stands still until it is moved. */
class ManualClock implements Clock {
  #nowMs = 0;
  #sleepers: { untilMs: number; wake: () => void }[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    this.#sleepers.push({ untilMs: this.#nowMs + ms, wake: resolve });
    return promise;
  }

  /** Moves in steps of 100 ms, and lets everybody who wakes act. */
  async advance(ms: number): Promise<void> {
    for (const endMs = this.#nowMs + ms; this.#nowMs < endMs;) {
      this.#nowMs = Math.min(endMs, this.#nowMs + 100);
      for (const sleeper of this.#sleepers.filter(({ untilMs }) => untilMs <= this.#nowMs)) sleeper.wake();
      this.#sleepers = this.#sleepers.filter(({ untilMs }) => untilMs > this.#nowMs);
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
}

interface Rig extends AsyncDisposable {
  readonly service: SchedulerService;
  readonly clock: ManualClock;
  readonly url: string;
  dial(): Promise<FakeHost>;
  /** A host that has been welcomed. */
  join(id: string, changes?: Parameters<typeof factsOf>[1]): Promise<FakeHost>;
}

const CLUSTERS: ClusterPlacement[] = [
  { id: 1, is_default: true, scopes: {} },
  { id: 2, is_default: false, scopes: { idc: "east" } },
];

function rig({ joinToken = "", clusters = CLUSTERS } = {}): Rig {
  const clock = new ManualClock();
  const deps = { log: silentLogger, clock, random: seededRandom(1), clusters: () => clusters, joinToken };
  const service = createSchedulerService(deps, CONFIG);
  const hosts: FakeHost[] = [];
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    (request, { remoteAddr }) => service.handleUpgrade(request, (remoteAddr as Deno.NetAddr).hostname),
  );
  const url = `ws://127.0.0.1:${server.addr.port}/`;
  const dial = async () => {
    const host = new FakeHost(new WebSocket(url));
    hosts.push(host);
    await host.opened;
    return host;
  };
  return {
    service,
    clock,
    url,
    dial,
    join: async (id, changes) => {
      const host = await dial();
      host.hello(id, changes);
      await host.next("welcome");
      return host;
    },
    [Symbol.asyncDispose]: async () => {
      await service[Symbol.asyncDispose]();
      await Promise.all(hosts.map(({ closed }) => closed));
      await server.shutdown();
    },
  };
}

type Sent<Type extends SchedulerMessage["type"]> = Extract<SchedulerMessage, { type: Type }>;

class FakeHost {
  readonly opened: Promise<void>;
  readonly closed: Promise<CloseEvent>;
  #messages: SchedulerMessage[] = [];
  #wake = () => {};

  constructor(readonly socket: WebSocket) {
    const [opened, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<CloseEvent>()];
    [this.opened, this.closed] = [opened.promise, closed.promise];
    socket.onopen = () => opened.resolve();
    socket.onmessage = ({ data }) => {
      this.#messages.push(JSON.parse(data));
      this.#wake();
    };
    socket.onclose = (event) => {
      closed.resolve(event);
      this.#wake();
    };
  }

  hello(id: string, changes?: Parameters<typeof factsOf>[1], join_token?: string): void {
    const token = join_token === undefined ? {} : { join_token };
    this.say({ type: "hello", v: SCHEDULER_PROTOCOL, host: factsOf(id, changes), ...token });
  }

  say(message: HostMessage): void {
    this.socket.send(JSON.stringify(message));
  }

  join(): void {
    const flags = { piece_count: 0, can_source: true, anonymous: false, partial: false };
    this.say({ type: "join", task: SPEC, ...flags });
  }

  /** The next message of a type, others before it are dropped. */
  async next<Type extends SchedulerMessage["type"]>(type: Type): Promise<Sent<Type>> {
    while (true) {
      const message = this.#messages.shift();
      if (message?.type === type) return message as Sent<Type>;
      if (message !== undefined) continue;
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error(`closed while waiting for ${type}`);
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }
}

Deno.test("a host is welcomed into its cluster, seen in the views, and forgotten when its socket closes", async () => {
  await using it = rig();
  const host = await it.dial();
  host.hello("h", { idc: "east", ip: "" });
  const welcome = await host.next("welcome");
  assertEquals([welcome.cluster_id, welcome.heartbeat_ms], [2, 3_333]);
  host.say({ type: "heartbeat", uploads: 1, downloads: 2, free_bytes: 3 });
  host.say({ type: "held", tasks: [{ ...SPEC, meta: metaOf(4), piece_count: 4, complete: true }] });
  host.join();
  await host.next("task");
  const [view] = it.service.hosts(2);
  assertEquals([view?.id, view?.ip, view?.cluster_id, view?.free_bytes], ["h", "127.0.0.1", 2, 3]);
  assert(Number.isFinite(Date.parse(view!.connected_at)));
  assertEquals([it.service.hosts(1), it.service.hosts().length], [[], 1]);
  const [task] = it.service.tasks();
  assertEquals([task?.task_id, task?.cluster_id, task?.hosts.map(({ id }) => id)], [TASK, 2, ["h"]]);
  host.socket.close();
  await host.closed;
  while (it.service.hosts().length > 0) await new Promise((resolve) => setTimeout(resolve));
  assertEquals(it.service.tasks(), []);
});

Deno.test("two hosts are told of each other, and digests reach the other one", async () => {
  await using it = rig();
  const [a, b] = [await it.join("a"), await it.join("b", { upload_port: 7 })];
  a.join();
  assertEquals((await a.next("lease")).generation, null);
  b.join();
  await b.next("task");
  assertEquals((await a.next("neighbours")).add[0]?.address, "10.0.0.1:7");
  a.say({ type: "meta", task_id: TASK, meta: metaOf(4) });
  a.say({ type: "pieces", task_id: TASK, generation: "g1", pieces: [[0, "0".repeat(64)], [1, "1".repeat(64)]] });
  assertEquals((await b.next("meta")).meta, metaOf(4));
  assertEquals((await b.next("digests")).pieces.length, 2);
});

const BAD: [name: string, data: string | Uint8Array<ArrayBuffer>, code: number][] = [
  ["no JSON", "hello", 1008],
  ["binary", new Uint8Array([1, 2, 3]), 1008],
  ["an unknown type", JSON.stringify({ type: "rubbish" }), 1008],
  ["another version", JSON.stringify({ type: "hello", v: 2, host: factsOf("h") }), 1008],
  ["a hello without a host", JSON.stringify({ type: "hello", v: 1 }), 1008],
  ["anything before hello", JSON.stringify({ type: "leave", task_id: TASK }), 1008],
  ["an over-long message", " ".repeat(MESSAGE_LENGTH_MAX + 1), 1009],
];

for (const [name, data, code] of BAD) {
  Deno.test(`${name} is answered with an error and close ${code}`, async () => {
    await using it = rig();
    const host = await it.dial();
    host.socket.send(data);
    assertEquals((await host.next("error")).error.code, "protocol");
    assertEquals((await host.closed).code, code);
    assertEquals(it.service.hosts(), []);
  });
}

Deno.test("rubbish after hello ends that host's connection only", async () => {
  await using it = rig();
  const [bad, good] = [await it.join("bad"), await it.join("good")];
  bad.socket.send("{}");
  assertEquals((await bad.closed).code, 1008);
  good.join();
  assertEquals((await good.next("task")).neighbours, []);
  assertEquals(it.service.hosts().map(({ id }) => id), ["good"]);
});

Deno.test("a second hello on one connection is refused", async () => {
  await using it = rig();
  const host = await it.join("h");
  host.hello("other");
  assertEquals((await host.next("error")).error.code, "protocol");
  await host.closed;
});

Deno.test("a host that says no hello within five seconds is closed, one that does stays", async () => {
  await using it = rig();
  const [mute, good] = [await it.dial(), await it.join("good")];
  await it.clock.advance(4_900);
  good.say({ type: "heartbeat", uploads: 0, downloads: 0, free_bytes: 0 });
  assertEquals(mute.socket.readyState, WebSocket.OPEN);
  await it.clock.advance(1_200);
  assertEquals((await mute.next("error")).error.code, "timeout");
  assertEquals((await mute.closed).code, 1008);
  assertEquals(it.service.hosts().length, 1);
});

Deno.test("a host without any message is gone after the timeout, and others hear of it", async () => {
  await using it = rig();
  const [silent, other] = [await it.join("silent"), await it.join("other")];
  silent.join();
  await silent.next("task");
  other.join();
  await other.next("task");
  for (let beat = 0; beat < 4; beat++) {
    await it.clock.advance(3_000);
    other.say({ type: "heartbeat", uploads: 0, downloads: 0, free_bytes: beat });
    while (it.service.hosts().find(({ id }) => id === "other")?.free_bytes !== beat) {
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
  assertEquals((await other.next("neighbours")).remove, ["silent"]);
  assertEquals((await silent.next("error")).error.code, "timeout");
  await silent.closed;
  assertEquals(it.service.hosts().map(({ id }) => id), ["other"]);
});

for (const [name, token] of [["no token", undefined], ["a wrong token", "secre"], ["an empty token", ""]] as const) {
  Deno.test(`${name} is refused where one is configured`, async () => {
    await using it = rig({ joinToken: "secret" });
    const host = await it.dial();
    host.hello("h", {}, token);
    const { error } = await host.next("error");
    assertEquals([error.code, error.message.includes("secret")], ["unauthorized", false]);
    assertEquals((await host.closed).code, 1008);
    assertEquals(it.service.hosts(), []);
  });
}

Deno.test("the right token is taken", async () => {
  await using it = rig({ joinToken: "secret" });
  const host = await it.dial();
  host.hello("h", {}, "secret");
  await host.next("welcome");
});

Deno.test("a host that no cluster takes is told so", async () => {
  await using it = rig({ clusters: [CLUSTERS[1]!] });
  const host = await it.dial();
  host.hello("h");
  assertEquals((await host.next("error")).error.code, "unavailable");
  await host.closed;
});

Deno.test("of two connections of one host id the newer wins, also from another cluster", async () => {
  await using it = rig();
  const [older, newer] = [await it.join("h"), await it.join("h", { idc: "east" })];
  assertEquals((await older.next("error")).error.code, "conflict");
  assertEquals((await older.closed).code, 1008);
  assertEquals(it.service.hosts().map(({ id, cluster_id }) => [id, cluster_id]), [["h", 2]]);
  newer.join();
  await newer.next("task");
});

Deno.test("only WebSockets are taken, and none of a web page", async () => {
  await using it = rig();
  const http = it.url.replace("ws:", "http:");
  const plain = await fetch(http);
  await plain.body?.cancel();
  assertEquals([plain.status, plain.headers.get("upgrade")], [426, "websocket"]);
  const request = new Request(http, { headers: { upgrade: "websocket", origin: "http://evil.example" } });
  assertEquals(it.service.handleUpgrade(request, "127.0.0.1").status, 403);
});

Deno.test("dispose closes every socket and takes no new ones", async () => {
  const it = rig();
  const [host, mute] = [await it.join("h"), await it.dial()];
  await it[Symbol.asyncDispose]();
  assertEquals([(await host.closed).code, (await mute.closed).code], [1001, 1001]);
  const request = new Request("http://x/", { headers: { upgrade: "websocket" } });
  assertEquals(it.service.handleUpgrade(request, "127.0.0.1").status, 503);
});

const ORDER = { task: { ...SPEC, headers: {} }, scope: "all_peers" } as const;
const DONE = { content_length: 10, done: 10, from_source: 10, from_peers: 0 };

Deno.test("preheat() resolves when every host is done and tells how far it is", async () => {
  await using it = rig();
  const host = await it.join("h");
  const seen: PreheatProgress[] = [];
  const result = it.service.preheat(1, ORDER, {
    signal: new AbortController().signal,
    onProgress: (progress) => seen.push(progress),
  });
  const { order_id } = await host.next("order");
  host.say({ type: "order_progress", order_id, state: "success", ...DONE });
  assertEquals((await result).hosts.map(({ state }) => state), ["SUCCESS"]);
  assertEquals(seen.map(({ done }) => done), [0, 10]);
});

Deno.test("preheat() fails the host that goes away, and rejects without any host", async () => {
  await using it = rig();
  const options = { signal: new AbortController().signal, onProgress: () => {} };
  const none = await assertRejects(() => it.service.preheat(1, ORDER, options), LacewingError);
  assertEquals(none.code, "unavailable");
  const host = await it.join("h");
  const result = it.service.preheat(1, ORDER, options);
  await host.next("order");
  host.socket.close();
  assertEquals((await result).hosts.map(({ error }) => error?.code), ["unavailable"]);
  await host.closed;
});

Deno.test("preheat() that is cancelled rejects with the reason and tells the host", async () => {
  await using it = rig();
  const host = await it.join("h");
  const controller = new AbortController();
  const result = it.service.preheat(1, ORDER, { signal: controller.signal, onProgress: () => {} });
  const { order_id } = await host.next("order");
  const reason = new Error("not wanted any more");
  controller.abort(reason);
  assertEquals(await assertRejects(() => result), reason);
  assertEquals((await host.next("cancel_order")).order_id, order_id);
  const late = it.service.preheat(1, ORDER, { signal: controller.signal, onProgress: () => {} });
  assertEquals(await assertRejects(() => late), reason);
});

Deno.test("preheat() rejects when the service stops", async () => {
  const it = rig();
  const host = await it.join("h");
  const result = it.service.preheat(1, ORDER, { signal: new AbortController().signal, onProgress: () => {} });
  const outcome = assertRejects(() => result, LacewingError);
  await host.next("order");
  await it[Symbol.asyncDispose]();
  assertEquals((await outcome).code, "unavailable");
});

Deno.test("drop() tells the holders and says how many", async () => {
  await using it = rig();
  const [holder, other] = [await it.join("a"), await it.join("b")];
  holder.say({ type: "held", tasks: [{ ...SPEC, meta: metaOf(4), piece_count: 4, complete: true }] });
  while (it.service.tasks().length === 0) await new Promise((resolve) => setTimeout(resolve));
  assertEquals([it.service.drop(1, TASK), it.service.drop(1, "b".repeat(64)), it.service.drop(2, TASK)], [1, 0, 0]);
  assertEquals((await holder.next("order")).kind, "drop");
  other.join();
  assertEquals((await other.next("task")).neighbours.length, 1);
});

/** A socket as far as a connection looks at it. */
class FakeSocket {
  readyState: number = WebSocket.OPEN;
  bufferedAmount = 0;
  readonly sent: string[] = [];
  closedWith: number | undefined;
  onclose: () => void = () => {};
  send(text: string): void {
    this.sent.push(text);
  }
  close(code?: number): void {
    this.closedWith = code;
    this.readyState = WebSocket.CLOSING;
  }
}

Deno.test("a host that does not read is disconnected, once, and is sent nothing more", () => {
  const socket = new FakeSocket();
  const ends: string[] = [];
  const events = { onOpen() {}, onMessage() {}, onEnd: (reason: string) => ends.push(reason), onFault() {} };
  const connection = new HostConnection(socket as unknown as WebSocket, events);
  connection.send("first");
  socket.bufferedAmount = BUFFERED_MAX;
  connection.send("second");
  connection.send("third");
  socket.onclose();
  assertEquals([socket.sent, socket.closedWith, ends.length], [["first"], 1013, 1]);
});
