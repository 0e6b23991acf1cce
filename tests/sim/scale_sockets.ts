/**
 * Hosts that are only WebSockets, against a scheduler in a process of its own:
 * how long a wave of joins takes, what it and its digests cost in CPU, and how
 * much memory a host needs there.
 */
import { TextLineStream } from "@std/streams/text-line-stream";
import { SCHEDULER_PATH, type SchedulerMessage } from "../../peer/core/wire/scheduler.ts";
import { denoRun } from "../testutil/process.ts";
import { coldWave, metaOf } from "./config.ts";
import type { SocketsResult } from "./scale_lines.ts";
import { digestText, SPEC } from "./words.ts";

const PIECES = 256;
const CONFIG = coldWave(2);

interface Usage {
  readonly rss: number;
  readonly cpuMs: number;
}

/** The scheduler's process: its port, and what it has used when asked. */
class Server implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #lines: ReadableStreamDefaultReader<string>;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;

  constructor() {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: denoRun("tests/sim/scale_server.ts"),
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.#lines = this.#child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream()).getReader();
    this.#input = this.#child.stdin.getWriter();
  }

  async next(): Promise<Record<string, number>> {
    const { value } = await this.#lines.read();
    if (value === undefined) throw new Error("Cannot measure: the scheduler's process has ended");
    return JSON.parse(value);
  }

  async usage(): Promise<Usage> {
    await this.#input.write(new TextEncoder().encode("?\n"));
    return await this.next() as unknown as Usage;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#input.close();
    await this.#lines.cancel();
    await this.#child.status;
  }
}

/** All hosts of this process, as one: counts, and answers leases. */
class Crowd implements Disposable {
  readonly #sockets: WebSocket[] = [];
  #received = 0;
  #bytes = 0;
  #joined = 0;
  #told = 0;
  #waiting: { isDone: () => boolean; resolve: () => void } | null = null;

  constructor(private readonly port: number, private readonly count: number) {}

  get received(): { messages: number; bytes: number } {
    return { messages: this.#received, bytes: this.#bytes };
  }

  async connect(): Promise<void> {
    for (let index = 0; index < this.count; index++) this.#connect(index);
    await this.#until(() => this.#joined === this.count);
  }

  /** Host 0 tells what the content is; leases are answered at once until every host knows all digests. */
  async download(): Promise<void> {
    this.#send(0, { type: "meta", task_id: SPEC.task_id, meta: metaOf(CONFIG) });
    await this.#until(() => this.#told >= this.count * PIECES);
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.close();
  }

  #connect(index: number): void {
    const socket = new WebSocket(`ws://127.0.0.1:${this.port}${SCHEDULER_PATH}`);
    this.#sockets.push(socket);
    const id = `h${String(index).padStart(6, "0")}`;
    const facts = { id, hostname: id, ip: "10.0.0.1", upload_port: 1, type: "normal", platform: "", version: "" };
    socket.onopen = () => this.#send(index, { type: "hello", v: 1, host: facts });
    socket.onmessage = ({ data }) => this.#hear(index, data);
  }

  #hear(index: number, text: string): void {
    this.#received += 1;
    this.#bytes += text.length;
    const message: SchedulerMessage = JSON.parse(text);
    if (message.type === "welcome") {
      this.#send(index, { type: "join", task: SPEC, can_source: true, anonymous: false });
    } else if (message.type === "task") this.#joined += 1;
    else if (message.type === "digests") this.#told += message.pieces.length;
    else if (message.type === "lease") this.#read(index, message);
    if (this.#waiting?.isDone()) this.#waiting.resolve();
  }

  /** A host's own pieces are not told to it. */
  #read(index: number, { lease_id, first, count }: Extract<SchedulerMessage, { type: "lease" }>): void {
    const numbers = Array.from({ length: Math.max(1, count) }, (_, at) => first + at);
    const pieces = numbers.map((number) => [number, digestText(number, true)]);
    this.#told += pieces.length;
    this.#send(index, { type: "pieces", task_id: SPEC.task_id, generation: "g1", pieces });
    this.#send(index, { type: "lease_end", task_id: SPEC.task_id, lease_id });
  }

  #send(index: number, message: unknown): void {
    this.#sockets[index]!.send(JSON.stringify(message));
  }

  #until(isDone: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = { isDone, resolve };
      if (isDone()) resolve();
    });
  }
}

export async function measureSockets(count: number): Promise<SocketsResult> {
  await using server = new Server();
  const { port } = await server.next();
  const idle = await server.usage();
  using crowd = new Crowd(port!, count);
  const startMs = performance.now();
  await crowd.connect();
  const joinMs = performance.now() - startMs;
  const joined = await server.usage();
  const before = crowd.received;
  await crowd.download();
  const knownMs = performance.now() - startMs - joinMs;
  const done = await server.usage();
  const after = crowd.received;
  return {
    members: count,
    joinMs,
    joinCpuMs: joined.cpuMs - idle.cpuMs,
    rssBytesPerMember: (joined.rss - idle.rss) / count,
    pieces: PIECES,
    knownMs,
    knownCpuMs: done.cpuMs - joined.cpuMs,
    messages: (after.messages - before.messages) / count,
    bytes: (after.bytes - before.bytes) / count,
    rssBytes: done.rss,
  };
}
