/**
 * A host that has joined a manager's cluster and serves pieces of the right
 * length with wrong bytes, or none at all: the neighbour that must be found out.
 */
import { Bitmap } from "../../peer/core/bitmap.ts";
import { systemClock } from "../../peer/core/clock.ts";
import { silentLogger } from "../../peer/core/log.ts";
import { pieceCount } from "../../peer/core/piece.ts";
import { RateLimiter } from "../../peer/core/rate_limit.ts";
import { type HeldTask, SCHEDULER_PATH } from "../../peer/core/wire/scheduler.ts";
import { startUploadServer } from "../../peer/transfer/upload_server.ts";

export interface LyingHost extends AsyncDisposable {
  readonly hostId: string;
  /** Bytes of wrong pieces that were sent. */
  sentBytes(): number;
  /** Reads of pieces that were asked for. */
  readonly reads: number;
}

/** Joins, and claims to hold the whole task. @param stalls whether it sends nothing where it would send wrong bytes */
export async function startLyingHost(
  managerUrl: string,
  task: Omit<HeldTask, "piece_count" | "complete">,
  { stalls = false }: { stalls?: boolean } = {},
): Promise<LyingHost> {
  const stopped = Promise.withResolvers<void>();
  let reads = 0;
  const hostId = `liar-${crypto.randomUUID()}`;
  const layout = { contentLength: task.meta.content_length, pieceLength: task.meta.piece_length };
  const pieces = new Bitmap(pieceCount(layout));
  pieces.fill();
  const server = startUploadServer({
    provider: {
      hold: (taskId, generation) =>
        Promise.resolve(
          taskId !== task.task_id || generation !== task.meta.generation ? null : {
            pieces,
            ...layout,
            read: async (buffer: Uint8Array) => {
              reads += 1;
              if (stalls) await stopped.promise;
              return buffer.fill(0x21).length;
            },
            watch: () => () => {},
            [Symbol.asyncDispose]: () => Promise.resolve(),
          },
        ),
    },
    limiter: new RateLimiter(systemClock, 0),
    clock: systemClock,
    log: silentLogger,
  }, { listenIP: "127.0.0.1", port: 0, hostId });
  const socket = new WebSocket(new URL(SCHEDULER_PATH, managerUrl.replace("http", "ws")));
  const welcomed = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  socket.onclose = () => closed.resolve();
  socket.onopen = () => {
    const host = {
      id: hostId,
      hostname: "liar",
      ip: "127.0.0.1",
      upload_port: server.address.port,
      type: "normal",
      platform: "linux/amd64",
      version: "0",
    };
    socket.send(JSON.stringify({ type: "hello", v: 1, host }));
  };
  socket.onmessage = (event) => {
    if (JSON.parse(event.data).type !== "welcome") return;
    socket.send(JSON.stringify({ type: "held", tasks: [{ ...task, piece_count: pieces.size, complete: true }] }));
    welcomed.resolve();
  };
  await welcomed.promise;
  return {
    hostId,
    sentBytes: () => server.stats().sentBytes,
    get reads() {
      return reads;
    },
    async [Symbol.asyncDispose]() {
      stopped.resolve();
      socket.close();
      await closed.promise;
      await server[Symbol.asyncDispose]();
    },
  };
}
