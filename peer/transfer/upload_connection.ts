/**
 * One neighbour's connection to the upload port: reads request heads one after
 * the other, sends pieces and small JSON answers, or turns into an exchange.
 *
 * Keeps: a buffer is written out before it is filled again. A slot is free
 * again when the child has the piece, not when the kernel has taken it. A piece
 * that cannot be finished closes the connection: the other end then sees too
 * few bytes and never a wrong end.
 */
import type { Clock } from "../core/clock.ts";
import { LacewingError, toWireError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { pieceCount, pieceRange } from "../core/piece.ts";
import { chunkLengthAt, type Limiter } from "../core/rate_limit.ts";
import { type ByteReader, type ByteWriter, LineReader, writeAll } from "../core/wire/json_lines.ts";
import { noTracer, traced, type Tracer } from "../core/telemetry.ts";
import {
  ACK_HEADER,
  CROSSING_HEADER,
  EXCHANGE_PATH,
  EXCHANGE_UPGRADE,
  HOST_HEADER,
  NEED_HEADER,
  parsePiecePath,
  TRACE_HEADER,
} from "../core/wire/piece.ts";
import { closeQuietly, isConnectionError } from "./connection.ts";
import { formatHead, HEAD_LENGTH_MAX, readRequestHead, type RequestHead } from "./http_head.ts";
import type { Holding, PieceProvider } from "./piece_transfer.ts";
import { ExchangeSession } from "./upload_exchange.ts";
import type { SentMarks } from "./sent_marks.ts";
import type { SharedTick } from "./shared_tick.ts";
import type { Slot, UploadSlots } from "./upload_slots.ts";
import { Watchdog } from "./watchdog.ts";

export interface UploadLimits {
  /** From the first byte of a head to its end. */
  readonly headTimeoutMs: number;
  /** Between an answer and the next request. */
  readonly idleTimeoutMs: number;
  /** A write that gets no byte away. */
  readonly writeStallMs: number;
  /** What a child is told to wait when all slots are taken. */
  readonly retryAfterMs: number;
  readonly slotWaitMs: number;
  /** How long a slot is kept for a child that has not said yet that it has all of the piece. */
  readonly ackWaitMs: number;
  readonly connectionsMax: number;
}

export interface UploadConnectionDeps {
  readonly provider: PieceProvider;
  readonly limiter: Limiter;
  readonly log: Logger;
  readonly clock: Clock;
  readonly slots: UploadSlots;
  readonly marks: SentMarks;
  /** When news of pieces go out. */
  readonly tick: SharedTick;
  readonly limits: UploadLimits;
  readonly hostId: string;
  /** Aborted when the server stops. */
  readonly signal: AbortSignal;
  readonly onSent: (bytes: number) => void;
  readonly tracer?: Tracer | undefined;
}

export class UploadConnection implements ByteReader, ByteWriter {
  readonly #reader: LineReader;
  readonly #watchdog: Watchdog;
  readonly #ackWatchdog: Watchdog;
  /** Of a piece that is sent, until the child has it. */
  #heldSlot: Slot | null = null;
  #awaitsFirstByte = false;
  #exchange: ExchangeSession | null = null;

  constructor(private readonly conn: Deno.TcpConn, private readonly deps: UploadConnectionDeps) {
    this.#reader = new LineReader(this, { lineLengthMax: HEAD_LENGTH_MAX, chunkLength: 1024 });
    this.#watchdog = new Watchdog(deps.clock, () => this.close());
    this.#ackWatchdog = new Watchdog(deps.clock, () => this.#release());
  }

  /** Serves until one of both ends closes; never rejects. */
  async run(): Promise<void> {
    try {
      this.#watchdog.arm(this.deps.limits.headTimeoutMs);
      while (!this.deps.signal.aborted) {
        const request = await readRequestHead(this.#reader);
        this.#awaitsFirstByte = false;
        this.#watchdog.disarm();
        if (request === undefined || !await this.#answer(request)) return;
        this.#watchdog.arm(this.deps.limits.idleTimeoutMs);
        if (this.#heldSlot !== null && !await this.#acknowledged()) return;
        this.#awaitsFirstByte = this.#reader.bufferedLength === 0;
      }
    } catch (error) {
      await this.#reject(error);
    } finally {
      this.#watchdog[Symbol.dispose]();
      this.#ackWatchdog[Symbol.dispose]();
      this.#release();
      this.close();
    }
  }

  announce(taskId: string, generation: string): void {
    this.#exchange?.announce(taskId, generation);
  }

  close(): void {
    closeQuietly(this.conn);
  }

  async read(buffer: Uint8Array): Promise<number | null> {
    const read = await this.conn.read(buffer);
    if (this.#awaitsFirstByte) {
      this.#awaitsFirstByte = false;
      this.#watchdog.arm(this.deps.limits.headTimeoutMs);
    }
    return read;
  }

  /** Closes the connection when the other end takes nothing for `writeStallMs`. */
  async write(bytes: Uint8Array): Promise<number> {
    this.#watchdog.arm(this.deps.limits.writeStallMs);
    try {
      return await this.conn.write(bytes);
    } finally {
      this.#watchdog.disarm();
    }
  }

  /** @returns whether the connection goes on */
  async #answer(request: RequestHead): Promise<boolean> {
    const { method, path, fields } = request;
    if (method !== "GET") throw new LacewingError("protocol", "Cannot answer: want GET");
    if (fields.has("transfer-encoding") || (fields.get("content-length") ?? "0") !== "0") {
      throw new LacewingError("protocol", "Cannot answer: want a request without body");
    }
    if (path === EXCHANGE_PATH) return await this.#upgrade(request);
    const piece = parsePiecePath(path);
    if (piece !== null) return await this.#tracedPiece(piece, request);
    if (path === "/healthz") await this.#json(200, { host_id: this.deps.hostId }, request.keepAlive);
    else await this.#json(404, { code: "not_found", message: "Nothing is served here" }, request.keepAlive);
    return request.keepAlive;
  }

  /** As `#piece`, and told to the child's trace if it has one. */
  async #tracedPiece(
    piece: { taskId: string; generation: string; number: number },
    request: RequestHead,
  ): Promise<boolean> {
    const { tracer = noTracer, hostId } = this.deps;
    const parent = request.fields.get(TRACE_HEADER);
    if (parent === undefined || !tracer.isOn) return await this.#piece(piece, request);
    const attributes = {
      "lacewing.task_id": piece.taskId,
      "lacewing.piece": piece.number,
      "lacewing.host_id": hostId,
      "lacewing.child_id": hostIdOf(request) ?? undefined,
    };
    const span = tracer.start("piece.serve", { parent, kind: "server", attributes });
    return await traced(span, () => this.#piece(piece, request));
  }

  async #piece(
    { taskId, generation, number }: { taskId: string; generation: string; number: number },
    request: RequestHead,
  ): Promise<boolean> {
    await using holding = await this.deps.provider.hold(taskId, generation);
    if (holding === null || !isServed(number, holding)) return await this.#refuse(404, "not_found", request);
    const claim = {
      hostId: hostIdOf(request) ?? "",
      need: Number(/^\d{1,9}$/.exec(request.fields.get(NEED_HEADER) ?? "")?.[0] ?? 0),
      crosses: request.fields.get(CROSSING_HEADER) === "1",
      mark: this.deps.marks.of(taskId, generation, number),
    };
    const slot = this.#heldSlot = await this.deps.slots.acquire(claim, this.deps.signal);
    if (slot === null) return await this.#refuse(503, "unavailable", request);
    let sent = 0;
    try {
      // It may have been dropped while this request waited.
      if (!isServed(number, holding)) return await this.#refuse(404, "not_found", request);
      await this.#send(pieceRange(number, holding), { holding, slot, request, onSent: (bytes) => sent += bytes });
    } finally {
      slot.sentBytes = sent;
      this.deps.onSent(sent);
      if (sent > 0) holding.served?.(claim.hostId, sent);
      if (sent === 0 || !request.fields.has(ACK_HEADER)) this.#release();
    }
    return request.keepAlive;
  }

  /** Waits until the child has said that it has the piece. @returns whether it did */
  async #acknowledged(): Promise<boolean> {
    this.#ackWatchdog.arm(this.deps.limits.ackWaitMs);
    const line = await this.#reader.readLine();
    this.#ackWatchdog.disarm();
    this.#release();
    if (line !== undefined && line !== "") {
      throw new LacewingError("protocol", `Cannot go on: ${ACK_HEADER} promised an empty line after the piece`);
    }
    return line !== undefined;
  }

  #release(): void {
    this.#heldSlot?.[Symbol.dispose]();
    this.#heldSlot = null;
  }

  async #send(
    range: { offset: number; length: number },
    { holding, slot, request, onSent }: {
      holding: Holding;
      slot: Slot;
      request: RequestHead;
      onSent: (bytes: number) => void;
    },
  ): Promise<void> {
    const head = new TextEncoder().encode(
      formatHead("HTTP/1.1 200 OK", {
        "content-type": "application/octet-stream",
        "content-length": range.length,
        ...connectionField(request.keepAlive),
      }),
    );
    // The head goes out with the first bytes: one packet and one call less.
    slot.buffer.set(head);
    let headLength = head.length;
    for (let at = 0; at < range.length;) {
      const room = Math.min(slot.buffer.length - headLength, this.#chunkLength(), range.length - at);
      const read = await holding.read(slot.buffer.subarray(headLength, headLength + room), range.offset + at);
      if (read <= 0) throw new LacewingError("file", `Cannot send piece: ${range.length - at} bytes are missing`);
      await this.deps.limiter.take(read, this.deps.signal);
      await writeAll(this, slot.buffer.subarray(0, headLength + read));
      onSent(read);
      at += read;
      headLength = 0;
    }
  }

  #chunkLength(): number {
    const { limiter, slots } = this.deps;
    return chunkLengthAt(limiter.bytesPerSecond / slots.active);
  }

  async #upgrade(request: RequestHead): Promise<boolean> {
    const hostId = hostIdOf(request);
    const isUpgrade = /(?:^|[ ,])upgrade(?:$|[ ,])/i.test(request.fields.get("connection") ?? "");
    if (!isUpgrade || request.fields.get("upgrade")?.toLowerCase() !== EXCHANGE_UPGRADE || hostId === null) {
      throw new LacewingError("protocol", `Cannot exchange: want Upgrade: ${EXCHANGE_UPGRADE} and ${HOST_HEADER}`);
    }
    await this.#text(formatHead("HTTP/1.1 101 Switching Protocols", {
      connection: "Upgrade",
      upgrade: EXCHANGE_UPGRADE,
      [HOST_HEADER]: this.deps.hostId,
    }));
    this.#exchange = new ExchangeSession(this.deps, { reader: this.#reader, writer: this, hostId });
    await this.#exchange.run(() => this.close());
    return false;
  }

  async #refuse(status: number, code: "not_found" | "unavailable", request: RequestHead): Promise<boolean> {
    const message = status === 503 ? "All upload slots are taken" : "This host has not that piece";
    await this.#json(status, { code, message }, request.keepAlive);
    return request.keepAlive;
  }

  /** Says why the connection ends, if the other end still listens. */
  async #reject(error: unknown): Promise<void> {
    if (this.deps.signal.aborted || isConnectionError(error)) return;
    if (!(error instanceof LacewingError) || error.code !== "protocol") {
      this.deps.log.warn("Cannot serve a neighbour", { error });
      return;
    }
    this.deps.log.debug("Refused a request", { reason: error.message });
    await this.#json(400, { ...toWireError(error) }, false).catch(() => {});
  }

  async #json(status: number, body: Record<string, unknown>, keepAlive: boolean): Promise<void> {
    const text = JSON.stringify(body);
    await this.#text(
      formatHead(`HTTP/1.1 ${status} ${REASONS[status] ?? ""}`, {
        "content-type": "application/json",
        "content-length": text.length,
        ...(status === 503 ? { "retry-after-ms": this.deps.limits.retryAfterMs } : {}),
        ...connectionField(keepAlive),
      }) + text,
    );
  }

  async #text(text: string): Promise<void> {
    await writeAll(this, new TextEncoder().encode(text));
  }
}

const REASONS: Record<number, string> = {
  200: "OK",
  400: "Bad Request",
  404: "Not Found",
  503: "Service Unavailable",
};

function isServed(number: number, holding: Holding): boolean {
  return number < pieceCount(holding) && holding.pieces.has(number);
}

function hostIdOf({ fields }: RequestHead): string | null {
  return /^[!-~]{1,64}$/.exec(fields.get(HOST_HEADER) ?? "")?.[0] ?? null;
}

function connectionField(keepAlive: boolean): Record<string, string> {
  return keepAlive ? {} : { connection: "close" };
}
