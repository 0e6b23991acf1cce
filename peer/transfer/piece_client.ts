/**
 * Asks neighbours for pieces: keeps connections and buffers for reuse, and
 * lends one of each to a request.
 *
 * Keeps: a bounded number of idle connections per neighbour, none idle for
 * longer than 30 s; a request is repeated only if it went into a connection
 * that had died while idle, and no byte had come.
 */
import type { Clock } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { dial, messageOf } from "./connection.ts";
import { PieceConnection } from "./piece_connection.ts";
import type { PieceClient, PieceRequest, PieceSink } from "./piece_transfer.ts";
import { Watchdog } from "./watchdog.ts";

export interface PieceClientDeps {
  readonly hostId: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface PieceClientConfig {
  readonly connectTimeoutMs?: number;
  /** A neighbour that sends no byte for so long has failed. */
  readonly stallTimeoutMs?: number;
  readonly idleConnectionsPerNeighbour?: number;
  /** Idle connections are closed after this. */
  readonly idleTimeoutMs?: number;
}

/** 256 KiB: a GB with SHA-256 costs 0.96 CPU seconds, with 64 KiB 1.04, with 1 MiB 0.98 (loopback, start included). */
const BUFFER_LENGTH = 256 * 1024;
/** Buffers kept for reuse; more than 16 pieces at once are rare. */
const IDLE_BUFFERS_MAX = 16;

/** Makes the piece client of one daemon. */
export function createPieceClient(deps: PieceClientDeps, config: PieceClientConfig = {}): PieceClient {
  return new PooledPieceClient(deps, {
    connectTimeoutMs: 3_000,
    stallTimeoutMs: 5_000,
    idleConnectionsPerNeighbour: 8,
    idleTimeoutMs: 30_000,
    ...config,
  });
}

interface Idle {
  readonly connection: PieceConnection;
  readonly sinceMs: number;
}

class PooledPieceClient implements PieceClient {
  /** Newest last. */
  readonly #idle = new Map<string, Idle[]>();
  readonly #buffers: Uint8Array<ArrayBuffer>[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  readonly #sweeper: Watchdog;

  constructor(private readonly deps: PieceClientDeps, private readonly config: Required<PieceClientConfig>) {
    this.#sweeper = new Watchdog(deps.clock, () => this.#sweep());
  }

  fetch(request: PieceRequest, sink: PieceSink, { signal }: { signal: AbortSignal }): Promise<void> {
    const running = this.#fetch(request, sink, AbortSignal.any([signal, this.#stop.signal]));
    const settled = running.catch(() => {}).finally(() => this.#running.delete(settled));
    this.#running.add(settled);
    return running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new LacewingError("unavailable", "Cannot get the piece: this host stops"));
    await Promise.all(this.#running);
    this.#sweeper[Symbol.dispose]();
    for (const idle of this.#idle.values()) for (const { connection } of idle) connection[Symbol.dispose]();
    this.#idle.clear();
  }

  async #fetch(request: PieceRequest, sink: PieceSink, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const buffer = this.#buffers.pop() ?? new Uint8Array(BUFFER_LENGTH);
    try {
      const reused = this.#take(request.address);
      if (reused !== undefined) {
        try {
          return await this.#use(reused, { request, sink, signal, buffer });
        } catch (error) {
          if (signal.aborted || !reused.wasDead) throw error;
          this.deps.log.debug("An idle connection was dead", { address: request.address, reason: messageOf(error) });
        }
      }
      await this.#use(await this.#open(request.address, signal), { request, sink, signal, buffer });
    } finally {
      if (this.#buffers.length < IDLE_BUFFERS_MAX) this.#buffers.push(buffer);
    }
  }

  async #use(
    connection: PieceConnection,
    { request, sink, signal, buffer }: {
      request: PieceRequest;
      sink: PieceSink;
      signal: AbortSignal;
      buffer: Uint8Array<ArrayBuffer>;
    },
  ): Promise<void> {
    try {
      await connection.fetch(request, sink, { signal, buffer });
    } finally {
      this.#giveBack(request.address, connection);
    }
  }

  async #open(address: string, signal: AbortSignal): Promise<PieceConnection> {
    const { clock, hostId } = this.deps;
    const { connectTimeoutMs, stallTimeoutMs } = this.config;
    const conn = await dial(address, { clock, timeoutMs: connectTimeoutMs, signal });
    return new PieceConnection(conn, address, { clock, hostId, stallTimeoutMs });
  }

  #take(address: string): PieceConnection | undefined {
    const idle = this.#idle.get(address);
    const taken = idle?.pop();
    if (idle?.length === 0) this.#idle.delete(address);
    return taken?.connection;
  }

  #giveBack(address: string, connection: PieceConnection): void {
    const idle = this.#idle.get(address) ?? [];
    const isWanted = connection.isReusable && !this.#stop.signal.aborted &&
      idle.length < this.config.idleConnectionsPerNeighbour;
    if (!isWanted) return connection[Symbol.dispose]();
    idle.push({ connection, sinceMs: this.deps.clock.nowMs() });
    if (this.#idle.size === 0) this.#sweeper.arm(this.config.idleTimeoutMs);
    this.#idle.set(address, idle);
  }

  #sweep(): void {
    const untilMs = this.deps.clock.nowMs() - this.config.idleTimeoutMs;
    let oldestMs = Infinity;
    for (const [address, idle] of this.#idle) {
      while (idle[0] !== undefined && idle[0].sinceMs <= untilMs) idle.shift()?.connection[Symbol.dispose]();
      if (idle[0] === undefined) this.#idle.delete(address);
      else oldestMs = Math.min(oldestMs, idle[0].sinceMs);
    }
    // At most one second late, so that a stream of them does not wake it each time.
    if (oldestMs < Infinity) this.#sweeper.arm(Math.max(oldestMs - untilMs, 1_000));
  }
}
