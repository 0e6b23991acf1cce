/**
 * Hears what neighbours have: one dialled link per neighbour address, shared
 * by all subscriptions to it (`ExchangeLink` keeps the link up).
 *
 * Keeps: a link lives as long as a subscription stands, and a moment longer,
 * because the next task often has the same neighbours.
 */
import type { Clock, Random } from "../core/clock.ts";
import type { Logger } from "../core/log.ts";
import { type ExchangeLimits, ExchangeLink } from "./exchange_link.ts";
import type { Exchange, OfferListener } from "./piece_transfer.ts";

export interface ExchangeDeps {
  readonly hostId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

const EXCHANGE_LIMITS: ExchangeLimits = {
  connectTimeoutMs: 3_000,
  backoffMinMs: 100,
  backoffMaxMs: 5_000,
  lingerMs: 10_000,
  silenceMs: 30_000,
  answerTimeoutMs: 10_000,
};

/**
 * Makes the exchange of one daemon.
 *
 * @param limits for tests: bounds in time that are not the user's to set
 */
export function createExchange(deps: ExchangeDeps, limits: Partial<ExchangeLimits> = {}): Exchange {
  return new LinkedExchange(deps, { ...EXCHANGE_LIMITS, ...limits });
}

class LinkedExchange implements Exchange {
  readonly #links = new Map<string, ExchangeLink>();
  readonly #running = new Set<Promise<void>>();
  #isDisposed = false;

  constructor(private readonly deps: ExchangeDeps, private readonly limits: ExchangeLimits) {}

  subscribe(
    { hostId, address }: { hostId: string; address: string },
    { taskId, generation, pieceCount }: { taskId: string; generation: string; pieceCount: number },
    listener: OfferListener,
  ): () => void {
    if (this.#isDisposed) throw new TypeError("Cannot subscribe: the exchange is disposed");
    return this.#link(address).add({ hostId, taskId, generation, pieceCount, listener });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    for (const link of this.#links.values()) link.close();
    await Promise.all(this.#running);
  }

  #link(address: string): ExchangeLink {
    const existing = this.#links.get(address);
    if (existing !== undefined) return existing;
    const link = new ExchangeLink(address, this.deps, this.limits);
    this.#links.set(address, link);
    const running = link.run(() => this.#links.delete(address)).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return link;
  }
}
