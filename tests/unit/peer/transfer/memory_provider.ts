/**
 * Tasks in memory for the upload server's tests: a real `PieceProvider` that
 * counts what is open, and helpers to talk to a raw socket.
 */
import { Bitmap } from "../../../../peer/core/bitmap.ts";
import { systemClock } from "../../../../peer/core/clock.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { RateLimiter } from "../../../../peer/core/rate_limit.ts";
import type { Holding, PieceProvider } from "../../../../peer/transfer/piece_transfer.ts";
import { startUploadServer, type UploadServer } from "../../../../peer/transfer/upload_server.ts";
import type { UploadLimits } from "../../../../peer/transfer/upload_connection.ts";

export const TASK = "ab".repeat(32);
export const GENERATION = "g1";

interface MemoryTask {
  readonly bytes: Uint8Array;
  readonly pieceLength: number;
  readonly pieces: Bitmap;
  readonly watchers: Set<(piece: number | null) => void>;
}

export class MemoryProvider implements PieceProvider {
  readonly #tasks = new Map<string, MemoryTask>();
  /** Holdings that were not disposed yet. */
  openCount = 0;
  /** Holdings that were ever given. */
  holdCount = 0;
  /** Bytes by host, as the server tells. */
  readonly served = new Map<string, number>();
  /** What hosts have told that they have. */
  isKnownTo: (hostId: string, piece: number) => boolean = () => false;
  /** Awaited before each read: a test may stop a transfer here. */
  beforeRead: () => Promise<void> | void = () => {};
  /** Awaited before each hold. */
  beforeHold: () => Promise<void> | void = () => {};

  /** Adds a task; without `held` every piece is there. */
  add(
    bytes: Uint8Array,
    { pieceLength, taskId = TASK, generation = GENERATION, held }: {
      pieceLength: number;
      taskId?: string;
      generation?: string;
      held?: readonly number[];
    },
  ): void {
    const pieces = new Bitmap(Math.ceil(bytes.length / pieceLength));
    if (held === undefined) pieces.fill();
    for (const piece of held ?? []) pieces.add(piece);
    this.#tasks.set(`${taskId}/${generation}`, { bytes, pieceLength, pieces, watchers: new Set() });
  }

  commit(piece: number, { taskId = TASK, generation = GENERATION } = {}): void {
    const task = this.#tasks.get(`${taskId}/${generation}`);
    task?.pieces.add(piece);
    for (const watcher of [...task?.watchers ?? []]) watcher(piece);
  }

  drop({ taskId = TASK, generation = GENERATION } = {}): void {
    const task = this.#tasks.get(`${taskId}/${generation}`);
    this.#tasks.delete(`${taskId}/${generation}`);
    for (const watcher of [...task?.watchers ?? []]) watcher(null);
  }

  async hold(taskId: string, generation: string): Promise<Holding | null> {
    await this.beforeHold();
    const task = this.#tasks.get(`${taskId}/${generation}`);
    if (task === undefined) return null;
    this.openCount += 1;
    this.holdCount += 1;
    return {
      pieces: task.pieces,
      contentLength: task.bytes.length,
      pieceLength: task.pieceLength,
      read: async (buffer, offset) => {
        await this.beforeRead();
        const part = task.bytes.subarray(offset, offset + buffer.length);
        buffer.set(part);
        return part.length;
      },
      isKnownTo: (hostId, piece) => this.isKnownTo(hostId, piece),
      watch: (listener) => {
        task.watchers.add(listener);
        return () => task.watchers.delete(listener);
      },
      served: (hostId, bytes) => this.served.set(hostId, (this.served.get(hostId) ?? 0) + bytes),
      [Symbol.asyncDispose]: () => {
        this.openCount -= 1;
        return Promise.resolve();
      },
    };
  }
}

export function serve(
  provider: PieceProvider,
  { limits, concurrent, bytesPerSecond = 0, port = 0 }: {
    limits?: Partial<UploadLimits>;
    concurrent?: number;
    bytesPerSecond?: number;
    port?: number;
  } = {},
): UploadServer {
  return startUploadServer(
    { provider, limiter: new RateLimiter(systemClock, bytesPerSecond), log: silentLogger, clock: systemClock },
    {
      listenIP: "127.0.0.1",
      port,
      hostId: "server",
      ...(concurrent === undefined ? {} : { concurrent }),
      ...(limits === undefined ? {} : { limits }),
    },
  );
}

/** Bytes that differ from place to place, so that a shifted copy is found out. */
export function patternBytes(length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = (at * 31 + (at >> 8) * 7 + (at >> 16)) & 255;
  return bytes;
}

/** Resolves as soon as `condition` holds, looking once a turn of the event loop. */
export async function until(condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() > deadlineMs) throw new Error(`Never came true: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** A listener that answers every connection with `handle`; all are closed at the end. */
export function fakeNeighbour(handle: (conn: Deno.TcpConn, index: number) => Promise<void>): AsyncDisposable & {
  readonly address: string;
  readonly connectionCount: number;
} {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const conns: Deno.TcpConn[] = [];
  const handled: Promise<void>[] = [];
  const accepting = (async () => {
    for await (const conn of listener) {
      handled.push(handle(conn, conns.push(conn) - 1).catch(() => {}));
    }
  })();
  return {
    address: `127.0.0.1:${listener.addr.port}`,
    get connectionCount() {
      return conns.length;
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting;
      for (const conn of conns) {
        try {
          conn.close();
        } catch {
          // The handler closed it.
        }
      }
      await Promise.all(handled);
    },
  };
}

/** Reads one request head off a raw connection; empty when it ended. */
export async function readHeadText(conn: Deno.Conn): Promise<string> {
  let text = "";
  const buffer = new Uint8Array(4096);
  while (!text.includes("\r\n\r\n")) {
    const read = await conn.read(buffer);
    if (read === null) return "";
    text += new TextDecoder().decode(buffer.subarray(0, read));
  }
  return text;
}

export async function writeText(conn: Deno.Conn, text: string): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
}

/** Everything that comes until the other end closes. */
export async function readToEnd(conn: Deno.Conn): Promise<string> {
  let text = "";
  const buffer = new Uint8Array(16 * 1024);
  while (true) {
    const read = await conn.read(buffer).catch(() => null);
    if (read === null) return text;
    text += new TextDecoder().decode(buffer.subarray(0, read));
  }
}
