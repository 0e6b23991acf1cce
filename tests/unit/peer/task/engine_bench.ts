/** The engine from its door, with origin, neighbours, store and scheduler in memory: what its tests stand on. */
import { assert } from "@std/assert";
import { type Clock, seededRandom, systemClock } from "../../../../peer/core/clock.ts";
import { sha256Hex } from "../../../../peer/core/digest.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { pieceRange } from "../../../../peer/core/piece.ts";
import { RateLimiter } from "../../../../peer/core/rate_limit.ts";
import { taskId } from "../../../../peer/core/task_id.ts";
import { metaOf } from "../../../../peer/task/generation.ts";
import type { Traffic } from "../../../../peer/task/engine_deps.ts";
import { PieceEvents } from "../../../../peer/task/piece_events.ts";
import { noSwarm, type Swarm } from "../../../../peer/task/swarm.ts";
import type { TaskRequest } from "../../../../peer/task/task.ts";
import { TaskManager } from "../../../../peer/task/task_manager.ts";
import { contentBytes } from "../../../testutil/content.ts";
import { type FakeNeighbour, FakeNeighbourhood } from "../../../testutil/fake_neighbour.ts";
import { FakeSource } from "../../../testutil/fake_source.ts";
import { MemoryStore } from "../../../testutil/memory_store.ts";

const KIB = 1024;
export const PIECE = 256 * KIB;
export const URL_TEXT = "http://origin/f";
export const REQUEST: TaskRequest = {
  url: URL_TEXT,
  headers: [],
  tag: "",
  filter: "",
  digest: null,
  range: null,
  disableBackSource: false,
  rateLimitBytesPerSecond: 0,
};

export interface Bench extends AsyncDisposable {
  readonly source: FakeSource;
  readonly store: MemoryStore;
  readonly tasks: TaskManager;
  readonly around: FakeNeighbourhood;
  readonly traffic: Traffic;
  start(over?: Partial<TaskRequest>): ReturnType<TaskManager["start"]>;
}

/** A task manager over an origin with one content of `size` bytes. */
export function bench(
  size: number,
  { swarm = noSwarm, neighbours = {}, clock = systemClock }: {
    swarm?: Swarm;
    neighbours?: Record<string, FakeNeighbour>;
    clock?: Clock;
  } = {},
): Bench {
  const content = contentBytes(1, 0, size);
  const source = new FakeSource(content);
  const store = new MemoryStore();
  const around = new FakeNeighbourhood(content, PIECE, new Map(Object.entries(neighbours)));
  const traffic = { sourceBytes: 0, wastedBytes: 0 };
  const tempDir = Deno.makeTempDirSync({ prefix: "lacewing-test-" });
  const tasks = new TaskManager({
    store,
    source,
    client: around,
    exchange: around,
    swarm,
    events: new PieceEvents(),
    totalLimiter: new RateLimiter(systemClock, 0),
    traffic,
    clock,
    random: seededRandom(1),
    log: silentLogger,
    tempDir,
    onStored: () => {},
  }, { concurrentPieceCount: 4, maxConnections: 2, perTaskRateLimit: 0, autoBackSource: true, lingerMs: 0 });
  return {
    source,
    store,
    tasks,
    around,
    traffic,
    start: (over = {}) => tasks.start({ ...REQUEST, ...over }, { signal: AbortSignal.timeout(60_000) }),
    async [Symbol.asyncDispose]() {
      await tasks[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await Deno.remove(tempDir, { recursive: true });
    },
  };
}

/** The bytes that the store has of the content. */
export async function stored(store: MemoryStore): Promise<Uint8Array> {
  await using task = await store.open(taskId(URL_TEXT));
  assert(task !== null);
  const bytes = new Uint8Array(task.info.meta.content_length);
  let at = 0;
  while (at < bytes.length) at += await task.read(bytes.subarray(at), at);
  return bytes;
}

export async function readAll(run: ReturnType<TaskManager["start"]>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of run.read()) parts.push(part);
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The scheduler's list of digests. */
export function digests(bytes: Uint8Array): [number, string][] {
  const count = Math.ceil(bytes.length / PIECE);
  return Array.from({ length: count }, (_, number) => {
    const { offset, length } = pieceRange(number, { contentLength: bytes.length, pieceLength: PIECE });
    return [number, sha256Hex(bytes.subarray(offset, offset + length))];
  });
}

export function metaFor(size: number) {
  return metaOf({ url: URL_TEXT, contentLength: size, ranges: true, version: { etag: '"1"' } }, "");
}

export const neighbour = (host_id: string) => ({ host_id, address: host_id, type: "normal" as const, idc: "" });
