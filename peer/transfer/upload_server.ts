/**
 * The upload port: serves pieces to neighbours and tells them what this host
 * has. Raw TCP with an HTTP/1.1 of its own (`UploadConnection`), because a
 * buffer may then be reused as soon as a write resolves, which bodies given to
 * `Deno.serve` do not allow: 0.55 CPU seconds per GB (loopback, 4 connections).
 *
 * Keeps: bounded connections, slots, waiting requests and buffers. Never sends
 * a byte of a piece that its provider does not call valid.
 */
import type { Clock } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Tracer } from "../core/telemetry.ts";
import type { Limiter } from "../core/rate_limit.ts";
import { closeQuietly, formatHostPort, messageOf, prepare } from "./connection.ts";
import type { PieceProvider } from "./piece_transfer.ts";
import { SentMarks } from "./sent_marks.ts";
import { SharedTick } from "./shared_tick.ts";
import { UploadConnection, type UploadLimits } from "./upload_connection.ts";
import { UploadSlots } from "./upload_slots.ts";

export interface UploadServerDeps {
  readonly provider: PieceProvider;
  readonly limiter: Limiter;
  readonly log: Logger;
  readonly clock: Clock;
  /** Records what is sent to children that take part in a trace. Default: nothing. */
  readonly tracer?: Tracer | undefined;
}

export interface UploadServerConfig {
  readonly listenIP: string;
  /** 0 asks for any free port. */
  readonly port: number;
  /** Pieces that are sent at once. */
  readonly concurrent?: number;
  readonly hostId: string;
  /** For tests: bounds in time and number that are not the user's to set. */
  readonly limits?: Partial<UploadLimits>;
}

export interface UploadStats {
  /** Bytes of pieces since the start. */
  readonly sentBytes: number;
  /** Pieces that are being sent. */
  readonly activeUploads: number;
  readonly connections: number;
}

export interface UploadServer extends AsyncDisposable {
  /** Where it listens. */
  readonly address: { readonly hostname: string; readonly port: number };
  stats(): UploadStats;
  /** A task begins or goes on here: those who subscribed to it before hear of it now. */
  announce(taskId: string, generation: string): void;
}

/** 256 KiB: with 64 KiB a GiB costs 0.93 CPU seconds, with this 0.66, with 1 MiB 0.63 (loopback, start included). */
const BUFFER_LENGTH = 256 * 1024;
/** Each costs a socket and about 20 KB; a neighbour has some 10. */
const CONNECTIONS_MAX = 2048;
const SLOT_WAIT_MS = 2_000;
/** Neighbours hear of pieces at most so often: half the time that a piece of 256 KiB takes at 100 Mbit/s. */
const NEWS_INTERVAL_MS = 10;
/** Pause after an accept that failed, for example because no file descriptor is free. */
const ACCEPT_PAUSE_MS = 100;

const UPLOAD_LIMITS: UploadLimits = {
  headTimeoutMs: 10_000,
  // Above the 30 s after which our own clients close, so that a reused connection is rarely a closed one.
  idleTimeoutMs: 60_000,
  writeStallMs: 20_000,
  retryAfterMs: 500,
  slotWaitMs: SLOT_WAIT_MS,
  ackWaitMs: 2_000,
  connectionsMax: CONNECTIONS_MAX,
};

/**
 * Begins to listen.
 *
 * @throws {LacewingError} `network` when the address cannot be listened on
 */
export function startUploadServer(deps: UploadServerDeps, config: UploadServerConfig): UploadServer {
  return new TcpUploadServer(deps, config);
}

class TcpUploadServer implements UploadServer {
  readonly #listener: Deno.TcpListener;
  readonly #slots: UploadSlots;
  readonly #marks = new SentMarks();
  readonly #tick = new SharedTick(NEWS_INTERVAL_MS);
  readonly #limits: UploadLimits;
  readonly #connections = new Set<UploadConnection>();
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  readonly #accepting: Promise<void>;
  #sentBytes = 0;

  constructor(private readonly deps: UploadServerDeps, private readonly config: UploadServerConfig) {
    this.#limits = { ...UPLOAD_LIMITS, ...config.limits };
    this.#slots = new UploadSlots(deps.clock, {
      countMax: config.concurrent ?? 16,
      waitMs: this.#limits.slotWaitMs,
      bufferLength: BUFFER_LENGTH,
    });
    this.#listener = listen(config);
    this.#accepting = this.#accept();
  }

  get address(): { hostname: string; port: number } {
    const { hostname, port } = this.#listener.addr;
    return { hostname, port };
  }

  stats(): UploadStats {
    return {
      sentBytes: this.#sentBytes,
      activeUploads: this.#slots.active,
      connections: this.#connections.size,
    };
  }

  announce(taskId: string, generation: string): void {
    for (const connection of this.#connections) connection.announce(taskId, generation);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new LacewingError("unavailable", "This host stops serving pieces"));
    closeQuietly(this.#listener);
    await this.#accepting;
    for (const connection of this.#connections) connection.close();
    await Promise.all(this.#running);
  }

  async #accept(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        this.#serve(await this.#listener.accept());
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        this.deps.log.warn("Cannot accept a neighbour's connection", { reason: messageOf(error) });
        await this.deps.clock.sleep(ACCEPT_PAUSE_MS, this.#stop.signal).catch(() => {});
      }
    }
  }

  #serve(conn: Deno.TcpConn): void {
    if (this.#stop.signal.aborted || this.#connections.size >= this.#limits.connectionsMax) return closeQuietly(conn);
    prepare(conn);
    const { provider, limiter, log, clock, tracer } = this.deps;
    const connection = new UploadConnection(conn, {
      provider,
      limiter,
      log,
      clock,
      tracer,
      slots: this.#slots,
      marks: this.#marks,
      tick: this.#tick,
      limits: this.#limits,
      hostId: this.config.hostId,
      signal: this.#stop.signal,
      onSent: (bytes) => this.#sentBytes += bytes,
    });
    this.#connections.add(connection);
    const running = connection.run().finally(() => {
      this.#connections.delete(connection);
      this.#running.delete(running);
    });
    this.#running.add(running);
  }
}

function listen({ listenIP, port }: UploadServerConfig): Deno.TcpListener {
  try {
    return Deno.listen({ hostname: listenIP, port });
  } catch (cause) {
    const place = formatHostPort({ hostname: listenIP, port });
    throw new LacewingError(
      "network",
      `Cannot serve pieces at ${place}: ${messageOf(cause)}; set upload.tcpListen.port or host.listenIP`,
      { cause },
    );
  }
}
