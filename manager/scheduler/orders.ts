/**
 * Orders to put a task on hosts: whom a scope means, and how far each host is.
 * Keeps: a host ends an order once, whatever it says later; one that does not
 * answer within 30 s, or goes away, has failed.
 */
import type { OrderTask, WireError } from "../../peer/core/wire/scheduler.ts";
import type { Host, MessageOf } from "./resource.ts";
import type { PreheatProgress, PreheatScope } from "./schedulers.ts";
import { rendezvous } from "./seed_peers.ts";

/** How long a host may take to say that it has begun. */
const ANSWER_TIMEOUT_MS = 30_000;

type HostOrder =
  & {
    -readonly [Key in keyof PreheatProgress["hosts"][number]]: PreheatProgress["hosts"][number][Key];
  }
  & { answered: boolean; contentLength: number | null; done: number; fromSource: number; fromPeers: number };

export interface Order {
  readonly id: string;
  readonly task: OrderTask;

  readonly startedAtMs: number;
  readonly hosts: Map<string, HostOrder>;
}

/** Hosts that a scope means, ascending; of ordinary hosts one that holds the task already is preferred. */
export function chooseHosts(
  { taskId, scope }: { taskId: string; scope: PreheatScope },
  hosts: readonly Host[],
  isComplete: (hostId: string) => boolean,
): Host[] {
  const sorted = [...hosts].sort((a, b) => a.facts.id < b.facts.id ? -1 : 1);
  if (scope === "all_peers") return sorted;
  const seeds = sorted.filter(({ facts }) => facts.type === "seed");
  if (scope === "all_seed_peers" && seeds.length > 0) return seeds;
  const holders = sorted.filter(({ facts }) => isComplete(facts.id));
  const pool = seeds.length > 0 ? seeds : holders.length > 0 ? holders : sorted;
  const chosen = rendezvous(taskId, pool.map(({ facts }) => facts.id));
  return pool.filter(({ facts }) => facts.id === chosen);
}

export class Orders {
  readonly #orders = new Map<string, Order>();

  /** Whether a host is still to give its first answer. */
  get isTimed(): boolean {
    return [...this.#orders.values()].some((order) => [...order.hosts.values()].some(isUnanswered));
  }

  start({ id, task }: { id: string; task: OrderTask }, hosts: readonly Host[], nowMs: number): Order {
    const order: Order = { id, task, startedAtMs: nowMs, hosts: new Map() };
    for (const { facts: { id: hostId, hostname, ip } } of hosts) {
      order.hosts.set(hostId, {
        id: hostId,
        hostname,
        ip,
        state: "PENDING",
        error: null,
        answered: false,
        contentLength: null,
        done: 0,
        fromSource: 0,
        fromPeers: 0,
      });
    }
    this.#orders.set(id, order);
    return order;
  }

  /** @returns the order that changed, or undefined when the words concern none */
  progress(hostId: string, message: MessageOf<"order_progress">): Order | undefined {
    const order = this.#orders.get(message.order_id);
    const host = order?.hosts.get(hostId);
    if (order === undefined || host === undefined || host.state !== "PENDING") return undefined;
    host.answered = true;
    host.contentLength = message.content_length;
    host.done = message.done;
    host.fromSource = message.from_source;
    host.fromPeers = message.from_peers;
    if (message.state === "success") host.state = "SUCCESS";
    if (message.state === "failure") {
      fail(host, message.error ?? { code: "unknown", message: "The host gave no reason" });
    }
    return order;
  }

  /** The host is gone. @returns the orders that changed */
  gone(hostId: string): Order[] {
    return [...this.#orders.values()].filter((order) => {
      const host = order.hosts.get(hostId);
      if (host?.state !== "PENDING") return false;
      fail(host, { code: "unavailable", message: `Host ${host.hostname} (${host.ip}) went away while it fetched` });
      return true;
    });
  }

  /** @returns hosts that never answered, with their orders */
  expire(nowMs: number): { order: Order; hostId: string }[] {
    const expired: { order: Order; hostId: string }[] = [];
    for (const order of this.#orders.values()) {
      if (nowMs - order.startedAtMs < ANSWER_TIMEOUT_MS) continue;
      for (const host of order.hosts.values()) {
        if (!isUnanswered(host)) continue;
        const seconds = ANSWER_TIMEOUT_MS / 1000;
        const message = `Host ${host.hostname} (${host.ip}) did not answer the order within ${seconds} s`;
        fail(host, { code: "timeout", message });
        expired.push({ order, hostId: host.id });
      }
    }
    return expired;
  }

  /** @returns the hosts that still work on it */
  cancel(orderId: string): string[] {
    const order = this.#orders.get(orderId);
    this.#orders.delete(orderId);
    return [...order?.hosts.values() ?? []].filter(({ state }) => state === "PENDING").map(({ id }) => id);
  }

  /** Forgets an order that has ended on every host. @returns whether it has */
  finish(order: Order): boolean {
    const isEnded = [...order.hosts.values()].every(({ state }) => state !== "PENDING");
    if (isEnded) this.#orders.delete(order.id);
    return isEnded;
  }
}

/** An order as the job sees it. */
export function toProgress({ hosts }: Order): PreheatProgress {
  const all = [...hosts.values()];
  const sum = (key: "done" | "fromSource" | "fromPeers") => all.reduce((total, host) => total + host[key], 0);
  return {
    contentLength: all.find(({ contentLength }) => contentLength !== null)?.contentLength ?? null,
    done: sum("done"),
    fromSource: sum("fromSource"),
    fromPeers: sum("fromPeers"),
    hosts: all.map(({ id, hostname, ip, state, error }) => ({ id, hostname, ip, state, error })),
  };
}

function fail(host: HostOrder, error: WireError): void {
  host.state = "FAILURE";
  host.error = error;
}

function isUnanswered({ state, answered }: HostOrder): boolean {
  return state === "PENDING" && !answered;
}
