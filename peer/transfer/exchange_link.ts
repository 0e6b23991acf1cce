/**
 * One link to one neighbour: dials, upgrades, subscribes, hands events to the
 * listeners, and dials again with backoff while subscriptions stand.
 *
 * Keeps: an event reaches only listeners of exactly its task and generation.
 * A neighbour that breaks the protocol loses the link. A link that is silent
 * for 30 s is asked for a bitmap (every subscribe is answered): a connection
 * that a network dropped without a word is found out.
 */
import { Bitmap } from "../core/bitmap.ts";
import type { Clock, Random } from "../core/clock.ts";
import { fromWireError, LacewingError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { type ByteReader, LineReader, LineWriter, writeAll } from "../core/wire/json_lines.ts";
import {
  EXCHANGE_PATH,
  EXCHANGE_UPGRADE,
  type ExchangeEvent,
  exchangeEvent,
  type ExchangeRequest,
  HOST_HEADER,
} from "../core/wire/piece.ts";
import { closeQuietly, dial, isConnectionError, messageOf } from "./connection.ts";
import { formatHead, readResponseHead } from "./http_head.ts";
import type { OfferListener } from "./piece_transfer.ts";
import { Watchdog } from "./watchdog.ts";

export interface ExchangeLimits {
  readonly connectTimeoutMs: number;
  /** First pause before dialling again; it doubles up to `backoffMaxMs`, and starts anew after a link that lived so long. */
  readonly backoffMinMs: number;
  readonly backoffMaxMs: number;
  /** How long a link without subscriptions stays. */
  readonly lingerMs: number;
  /** A link that says nothing for so long is asked. */
  readonly silenceMs: number;
  /** How long an answer may take. */
  readonly answerTimeoutMs: number;
}

/** One task that one listener wants to hear of. */
export interface LinkSubscription {
  readonly hostId: string;
  readonly taskId: string;
  readonly generation: string;
  readonly pieceCount: number;
  readonly listener: OfferListener;
}

export interface LinkDeps {
  /** This host's own id. */
  readonly hostId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** Piece numbers of one line, as the wire allows. */
const HAVE_COUNT_MAX = 4096;
/** Bytes of one event: a bitmap has at most 64 KiB of text. */
const EVENT_LENGTH_MAX = 128 * 1024;

export class ExchangeLink {
  readonly #subscriptions = new Set<LinkSubscription>();
  readonly #stop = new AbortController();
  readonly #linger: Watchdog;
  #pauseMs: number;
  #writer: LineWriter | null = null;

  constructor(
    private readonly address: string,
    private readonly deps: LinkDeps,
    private readonly limits: ExchangeLimits,
  ) {
    this.#pauseMs = limits.backoffMinMs;
    this.#linger = new Watchdog(deps.clock, () => this.close());
  }

  /** @returns the way to end the subscription */
  add(subscription: LinkSubscription): () => void {
    this.#subscriptions.add(subscription);
    this.#linger.disarm();
    this.#say({ type: "subscribe", task_id: subscription.taskId, generation: subscription.generation });
    return () => this.#remove(subscription);
  }

  close(): void {
    this.#stop.abort(new LacewingError("canceled", "The link is no longer wanted"));
  }

  /**
   * Keeps the link up until it is closed; never rejects.
   *
   * @param onEnd called at once when it is closed: a later subscription needs a new link
   */
  async run(onEnd: () => void): Promise<void> {
    this.#stop.signal.addEventListener("abort", onEnd, { once: true });
    try {
      while (!this.#stop.signal.aborted) {
        const begunAtMs = this.deps.clock.nowMs();
        await this.#live();
        if (this.deps.clock.nowMs() - begunAtMs >= this.limits.backoffMaxMs) this.#pauseMs = this.limits.backoffMinMs;
        if (this.#stop.signal.aborted) return;
        // Between half and all of it: neighbours that lost the same host do not come back in one moment.
        await this.deps.clock.sleep(this.#pauseMs * (0.5 + this.deps.random() / 2), this.#stop.signal).catch(() => {});
        this.#pauseMs = Math.min(this.#pauseMs * 2, this.limits.backoffMaxMs);
      }
    } finally {
      this.#linger[Symbol.dispose]();
    }
  }

  /** One connection from dialling to its end. */
  async #live(): Promise<void> {
    const { clock, log } = this.deps;
    const signal = this.#stop.signal;
    let conn: Deno.TcpConn | null = null;
    try {
      conn = await dial(this.address, { clock, timeoutMs: this.limits.connectTimeoutMs, signal });
      await this.#talk(conn);
      log.debug("A neighbour closed the exchange", { address: this.address });
    } catch (error) {
      if (signal.aborted) return;
      const isFault = error instanceof LacewingError && error.code === "protocol";
      log[isFault ? "warn" : "debug"]("The exchange with a neighbour is lost", {
        address: this.address,
        reason: messageOf(error),
      });
      if (!(error instanceof LacewingError) && !isConnectionError(error)) log.error("A listener failed", { error });
    } finally {
      if (conn !== null) closeQuietly(conn);
      const wasUp = this.#writer !== null;
      this.#writer = null;
      if (wasUp && !signal.aborted) { for (const { hostId, listener } of this.#subscriptions) listener.onLost(hostId); }
    }
  }

  async #talk(conn: Deno.TcpConn): Promise<void> {
    const close = () => closeQuietly(conn);
    let isAsked = true;
    using watchdog = new Watchdog(this.deps.clock, () => {
      const first = this.#subscriptions.values().next().value;
      if (isAsked) return close();
      isAsked = first !== undefined;
      if (first !== undefined) {
        this.#say({ type: "subscribe", task_id: first.taskId, generation: this.#wireGeneration(first.taskId) });
      }
      watchdog.arm(isAsked ? this.limits.answerTimeoutMs : this.limits.silenceMs);
    });
    const source: ByteReader = {
      read: async (buffer) => {
        const read = await conn.read(buffer);
        isAsked = false;
        watchdog.arm(this.limits.silenceMs);
        return read;
      },
    };
    this.#stop.signal.addEventListener("abort", close, { once: true });
    try {
      watchdog.arm(this.limits.answerTimeoutMs);
      const reader = new LineReader(source, { lineLengthMax: EVENT_LENGTH_MAX, chunkLength: 4096 });
      await this.#upgrade(conn, reader);
      this.#writer = new LineWriter(conn);
      for (const taskId of new Set([...this.#subscriptions].map((subscription) => subscription.taskId))) {
        this.#say({ type: "subscribe", task_id: taskId, generation: this.#wireGeneration(taskId) });
      }
      while (await this.#next(reader));
    } finally {
      this.#stop.signal.removeEventListener("abort", close);
    }
  }

  async #upgrade(conn: Deno.TcpConn, reader: LineReader): Promise<void> {
    const request = formatHead(`GET ${EXCHANGE_PATH} HTTP/1.1`, {
      host: this.address,
      connection: "Upgrade",
      upgrade: EXCHANGE_UPGRADE,
      [HOST_HEADER]: this.deps.hostId,
    });
    await writeAll(conn, new TextEncoder().encode(request));
    const head = await readResponseHead(reader);
    if (head === undefined) throw new LacewingError("peer_failed", "closed the connection before it answered");
    if (head.status !== 101 || head.fields.get("upgrade")?.toLowerCase() !== EXCHANGE_UPGRADE) {
      throw new LacewingError("protocol", `Cannot exchange: want 101 with ${EXCHANGE_UPGRADE}, got ${head.status}`);
    }
  }

  async #next(reader: LineReader): Promise<boolean> {
    const value = await reader.readJson();
    if (value === undefined) return false;
    if (this.#tellHave(value)) return true;
    const parsed = exchangeEvent.safeParse(value);
    if (!parsed.success) {
      const issue = parsed.error.issues[0];
      throw new LacewingError("protocol", `Cannot read event: ${issue?.path.join(".") || "(top)"}: ${issue?.message}`);
    }
    const event = parsed.data;
    if (event.type === "error") throw fromWireError(event.error);
    for (const subscription of [...this.#subscriptions]) {
      const isMeant = subscription.taskId === event.task_id && subscription.generation === event.generation;
      if (isMeant) tell(subscription, event);
    }
    return true;
  }

  /**
   * The event that comes for every piece and from every neighbour: checked by hand, without the schema.
   *
   * @returns false for everything else, and for what is not as it should be
   */
  #tellHave(value: unknown): boolean {
    if (typeof value !== "object" || value === null) return false;
    const { type, task_id: taskId, generation, pieces } = value as Record<string, unknown>;
    if (type !== "have" || !Array.isArray(pieces) || pieces.length > HAVE_COUNT_MAX) return false;
    if (!pieces.every((piece) => Number.isInteger(piece) && piece >= 0)) return false;
    let isTold = false;
    for (const subscription of this.#subscriptions) {
      if (subscription.taskId !== taskId || subscription.generation !== generation) continue;
      isTold = true;
      tell(subscription, { type: "have", task_id: taskId, generation, pieces });
    }
    return isTold;
  }

  #remove(subscription: LinkSubscription): void {
    if (!this.#subscriptions.delete(subscription)) return;
    const { taskId, generation } = subscription;
    const left = this.#wireGeneration(taskId);
    if (left === "") this.#say({ type: "unsubscribe", task_id: taskId });
    else if (left !== generation) this.#say({ type: "subscribe", task_id: taskId, generation: left });
    if (this.#subscriptions.size === 0) this.#linger.arm(this.limits.lingerMs);
  }

  /** The generation that the neighbour is asked for: the newest subscription's; empty when there is none. */
  #wireGeneration(taskId: string): string {
    let generation = "";
    for (const subscription of this.#subscriptions) {
      if (subscription.taskId === taskId) generation = subscription.generation;
    }
    return generation;
  }

  #say(request: ExchangeRequest): void {
    // A write that fails means a read that ends: the link is dialled again and subscribes anew.
    this.#writer?.writeJson(request).catch((error) =>
      this.deps.log.debug("Cannot write to a neighbour", { address: this.address, reason: messageOf(error) })
    );
  }
}

function tell({ hostId, pieceCount, listener }: LinkSubscription, event: Exclude<ExchangeEvent, { type: "error" }>) {
  if (event.type === "gone") return listener.onBitmap(hostId, null);
  if (event.type === "have") {
    const pieces = event.pieces.filter((piece) => piece < pieceCount);
    return pieces.length === 0 ? undefined : listener.onHave(hostId, pieces);
  }
  listener.onBitmap(hostId, event.known ? Bitmap.fromBase64(event.pieces, pieceCount) : null);
}
