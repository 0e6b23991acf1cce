/**
 * The serving side of an exchange: tells one neighbour which pieces of the
 * tasks it subscribed to this host has, and each new one.
 *
 * Keeps: every subscribe is answered with a bitmap; what was not written yet
 * is a set per subscription, never a queue, and above 4,096 numbers a new
 * bitmap: a neighbour that does not read costs no memory. A task that is not
 * known stays subscribed, and is looked at again when it is announced. A
 * neighbour does not hear of pieces that it has itself.
 */
import { LacewingError, toWireError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { type ByteWriter, type LineReader, LineWriter } from "../core/wire/json_lines.ts";
import { type ExchangeEvent, exchangeRequest } from "../core/wire/piece.ts";
import { messageOf } from "./connection.ts";
import type { Holding, PieceProvider } from "./piece_transfer.ts";
import type { SharedTick } from "./shared_tick.ts";

/** Subscriptions of one neighbour; more than that many tasks at once is a fault. */
const SUBSCRIPTIONS_MAX = 2000;
/** Piece numbers of one line, as the wire allows. */
const HAVE_COUNT_MAX = 4096;

export interface ExchangeDeps {
  readonly provider: PieceProvider;
  readonly log: Logger;
  /** When news go out, shared by all sessions. */
  readonly tick: SharedTick;
}

export class ExchangeSession {
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #dirty = new Set<Subscription>();
  readonly #closing = new Set<Promise<void>>();
  readonly #writer: LineWriter;
  #draining: Promise<void> | null = null;
  #hasEnded = false;
  #end: () => void = () => {};

  constructor(
    private readonly deps: ExchangeDeps,
    private readonly link: { reader: LineReader; writer: ByteWriter; hostId: string },
  ) {
    this.#writer = new LineWriter(link.writer);
  }

  /**
   * Reads requests until the connection ends; never rejects.
   *
   * @param end closes the connection
   */
  async run(end: () => void): Promise<void> {
    this.#end = end;
    try {
      while (await this.#next());
    } catch (error) {
      this.deps.log.debug("An exchange ends", { neighbour: this.link.hostId, reason: messageOf(error) });
      if (error instanceof LacewingError) await this.#sayError(error);
    } finally {
      this.#hasEnded = true;
      end();
      for (const subscription of this.#subscriptions.values()) this.#close(subscription);
      this.#subscriptions.clear();
      await this.#draining;
      while (this.#closing.size > 0) await Promise.all(this.#closing);
    }
  }

  announce(taskId: string, generation: string): void {
    const subscription = this.#subscriptions.get(taskId);
    if (subscription?.generation === generation) subscription.check();
  }

  async #next(): Promise<boolean> {
    const value = await this.link.reader.readJson();
    if (value === undefined) return false;
    const parsed = exchangeRequest.safeParse(value);
    if (!parsed.success) throw new LacewingError("protocol", "Cannot exchange: want subscribe or unsubscribe");
    const request = parsed.data;
    const old = this.#subscriptions.get(request.task_id);
    if (request.type === "subscribe" && old?.generation === request.generation) {
      old.sayAll();
      return true;
    }
    if (old !== undefined) this.#close(old);
    this.#subscriptions.delete(request.task_id);
    if (request.type === "unsubscribe") return true;
    if (this.#subscriptions.size >= SUBSCRIPTIONS_MAX) {
      throw new LacewingError("protocol", `Cannot subscribe: at most ${SUBSCRIPTIONS_MAX} tasks a connection`);
    }
    const subscription: Subscription = new Subscription(request.task_id, request.generation, {
      ...this.deps,
      hostId: this.link.hostId,
      onDirty: () => this.#markDirty(subscription),
      track: (work) => this.#track(work),
    });
    this.#subscriptions.set(request.task_id, subscription);
    subscription.check();
    // A burst of subscriptions opens one task after the other, not all at once.
    await subscription.checked;
    return true;
  }

  async #sayError(error: LacewingError): Promise<void> {
    const event: ExchangeEvent = { type: "error", error: toWireError(error) };
    await this.#writer.writeJson(event).catch(() => {});
  }

  #close(subscription: Subscription): void {
    this.#dirty.delete(subscription);
    subscription.close();
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#closing.delete(tracked));
    this.#closing.add(tracked);
  }

  #markDirty(subscription: Subscription): void {
    if (this.#hasEnded) return;
    this.#dirty.add(subscription);
    this.#draining ??= this.#drain();
  }

  async #drain(): Promise<void> {
    try {
      while (this.#dirty.size > 0 && !this.#hasEnded) {
        // Pieces that come together travel in one line.
        await this.deps.tick.next();
        for (const subscription of [...this.#dirty]) {
          this.#dirty.delete(subscription);
          for (const event of subscription.takeEvents()) await this.#writer.writeJson(event);
        }
      }
    } catch (error) {
      this.deps.log.debug("An exchange cannot be written", { neighbour: this.link.hostId, reason: messageOf(error) });
      this.#end();
    } finally {
      this.#draining = null;
    }
  }
}

interface SubscriptionDeps extends ExchangeDeps {
  /** The neighbour. */
  readonly hostId: string;
  /** There is something to say. */
  readonly onDirty: () => void;
  /** Work that must end before the session has ended. */
  readonly track: (work: Promise<void>) => void;
}

class Subscription {
  /** Resolves when the last look at the provider is over; never rejects. */
  checked: Promise<void> = Promise.resolve();
  #holding: Holding | null = null;
  #stopWatching: () => void = () => {};
  #isChecking = false;
  #checkAgain = false;
  #isClosed = false;
  #owesGone = false;
  #owesBitmap = false;
  #pieces = new Set<number>();

  constructor(readonly taskId: string, readonly generation: string, private readonly deps: SubscriptionDeps) {}

  /** Looks whether this host has the task (now), and says so. */
  check(): void {
    if (this.#isChecking) {
      this.#checkAgain = true;
    } else if (this.#holding === null && !this.#isClosed) {
      this.#isChecking = true;
      this.checked = this.#look();
      this.deps.track(this.checked);
    }
  }

  sayAll(): void {
    // The answer comes with the end of the look.
    if (this.#isChecking) return;
    this.#owesBitmap = true;
    this.deps.onDirty();
  }

  close(): void {
    this.#isClosed = true;
    this.#letGo();
  }

  /** What is to be said now, in order; it counts as said. */
  takeEvents(): ExchangeEvent[] {
    const name = { task_id: this.taskId, generation: this.generation };
    const events: ExchangeEvent[] = [];
    if (this.#owesGone) events.push({ type: "gone", ...name });
    if (this.#owesBitmap || this.#pieces.size > HAVE_COUNT_MAX) {
      const pieces = this.#holding?.pieces.toBase64() ?? "";
      events.push({ type: "bitmap", ...name, known: this.#holding !== null, pieces });
    } else {
      const pieces = this.#news();
      if (pieces.length > 0) events.push({ type: "have", ...name, pieces });
    }
    this.#owesGone = this.#owesBitmap = false;
    this.#pieces.clear();
    return events;
  }

  /** Half of all pieces, in a swarm of equals, are no news to a neighbour: it has told that it has them itself. */
  #news(): number[] {
    const holding = this.#holding;
    return [...this.#pieces].filter((piece) => holding?.isKnownTo?.(this.deps.hostId, piece) !== true);
  }

  async #look(): Promise<void> {
    let holding: Holding | null = null;
    do {
      this.#checkAgain = false;
      try {
        holding = await this.deps.provider.hold(this.taskId, this.generation);
      } catch (error) {
        this.deps.log.warn("Cannot open a task for a neighbour", { task: this.taskId, reason: messageOf(error) });
      }
    } while (holding === null && this.#checkAgain && !this.#isClosed);
    this.#isChecking = false;
    this.#holding = holding;
    if (this.#isClosed) return this.#letGo();
    if (holding !== null) this.#stopWatching = holding.watch((piece) => this.#onPiece(piece));
    this.#owesBitmap = true;
    this.deps.onDirty();
  }

  #onPiece(piece: number | null): void {
    if (piece === null) {
      this.#letGo();
      this.#owesGone = true;
      this.#pieces.clear();
    } else if (this.#pieces.size <= HAVE_COUNT_MAX) {
      // One more than a line holds means a bitmap: the rest need not be remembered.
      this.#pieces.add(piece);
    }
    this.deps.onDirty();
  }

  #letGo(): void {
    this.#stopWatching();
    this.#stopWatching = () => {};
    const holding = this.#holding;
    this.#holding = null;
    if (holding === null) return;
    this.deps.track(this.#dispose(holding));
  }

  async #dispose(holding: Holding): Promise<void> {
    try {
      await holding[Symbol.asyncDispose]();
    } catch (error) {
      this.deps.log.warn("Cannot close a task", { task: this.taskId, reason: messageOf(error) });
    }
  }
}
