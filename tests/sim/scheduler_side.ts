/**
 * The real scheduler on the virtual clock: carries messages with their
 * latency, ticks and flushes it as manager/scheduler/cluster.ts does, and lets
 * it die and come back knowing nothing.
 */
import { Scheduler, type SchedulerEvent } from "../../manager/scheduler/scheduler.ts";
import { seededRandom } from "../../peer/core/clock.ts";
import type { HostFacts, HostMessage } from "../../peer/core/wire/scheduler.ts";
import type { SimConfig } from "./config.ts";
import type { EventQueue } from "./event_queue.ts";
import type { SimHost } from "./host.ts";

/** As manager/scheduler/cluster.ts and peer/scheduler_client/connection.ts have them. */
const TICK_MS = 200;
const RECONNECT_MS = 100;
const RECONNECT_MS_MAX = 5_000;

export class SchedulerSide {
  scheduler: Scheduler;
  isUp = true;
  events = 0;
  /** Real milliseconds spent in the scheduler. */
  spentMs = 0;
  /** Host → the connection that it has now. */
  readonly #connections = new Map<string, number>();
  #epoch = 0;
  #isFlushing = false;
  #isTicking = false;
  #lastConnection = 0;
  readonly #afterLatency: (work: () => void) => void;

  constructor(
    private readonly config: SimConfig,
    private readonly queue: EventQueue,
    private readonly hosts: readonly SimHost[],
  ) {
    this.scheduler = this.#create();
    this.#afterLatency = queue.lane(config.schedulerLatencyMs);
  }

  /** Connects a host, as often as it takes; it joins at once. */
  connect(host: SimHost, delayMs = RECONNECT_MS): void {
    const { latencyMs, ...life } = { latencyMs: this.config.schedulerLatencyMs, number: this.#lastConnection += 1 };
    this.#connections.set(host.id, life.number);
    // Dial, upgrade, hello and welcome, join.
    this.queue.after(4 * latencyMs, () => {
      if (!host.isAlive || this.#connections.get(host.id) !== life.number) return;
      if (!this.isUp) {
        const again = () => {
          if (host.isAlive && this.#connections.get(host.id) === life.number) {
            this.connect(host, Math.min(delayMs * 2, RECONNECT_MS_MAX));
          }
        };
        return this.queue.after(delayMs * (0.5 + this.#unevenness(host)), again);
      }
      this.#apply({ type: "connected", host: factsOf(host), connectedAt: "2026-01-01T00:00:00Z" });
      for (const message of host.joinMessages()) this.#heard(host, message);
    });
  }

  say(host: SimHost, message: HostMessage): void {
    const [epoch, connection] = [this.#epoch, this.#connections.get(host.id)];
    this.#afterLatency(() => {
      if (epoch === this.#epoch && this.isUp && connection === this.#connections.get(host.id)) {
        this.#heard(host, message);
      }
    });
  }

  /** The host's connection has broken. */
  gone(host: SimHost): void {
    this.#connections.delete(host.id);
    const epoch = this.#epoch;
    this.#afterLatency(() => {
      if (epoch === this.#epoch && this.isUp && !this.#connections.has(host.id)) {
        this.#apply({ type: "gone", hostId: host.id });
      }
    });
  }

  /** The process dies, and another one starts later. */
  restart(awayMs: number): void {
    this.isUp = false;
    this.#epoch += 1;
    this.#isFlushing = this.#isTicking = false;
    this.#afterLatency(() => {
      for (const host of this.hosts) {
        if (!host.isAlive) continue;
        host.lostScheduler();
        this.queue.after(RECONNECT_MS * (0.5 + this.#unevenness(host)), () => {
          if (host.isAlive) this.connect(host, RECONNECT_MS * 2);
        });
      }
    });
    this.queue.after(awayMs, () => {
      this.scheduler = this.#create();
      this.isUp = true;
    });
  }

  #create(): Scheduler {
    return new Scheduler(this.config.scheduler, seededRandom(this.config.seed * 7919 + this.#epoch));
  }

  /** Spread over time without dice: they belong to the network. */
  #unevenness({ index }: SimHost): number {
    return index * 0.618 % 1;
  }

  #heard(host: SimHost, message: HostMessage): void {
    host.messages += 1;
    this.#apply({ type: "message", hostId: host.id, message });
  }

  #apply(event: SchedulerEvent): void {
    this.events += 1;
    const startMs = performance.now();
    const effects = this.scheduler.apply(event, this.queue.nowMs);
    this.spentMs += performance.now() - startMs;
    if (effects.length > 0) {
      const epoch = this.#epoch;
      const connections = effects.map((effect) =>
        effect.type === "send" ? this.#connections.get(effect.hostId) : undefined
      );
      this.#afterLatency(() => {
        for (const [index, effect] of effects.entries()) {
          if (effect.type !== "send" || epoch !== this.#epoch) continue;
          const host = this.hosts[Number(effect.hostId.slice(1))];
          if (!host?.isAlive || this.#connections.get(host.id) !== connections[index]) continue;
          host.messages += 1;
          host.receive(effect.message);
        }
      });
    }
    this.#plan();
  }

  #plan(): void {
    const { flushAtMs } = this.scheduler;
    const epoch = this.#epoch;
    // The one task's next flush is never due before the one that is planned.
    if (flushAtMs !== null && !this.#isFlushing) {
      this.#isFlushing = true;
      this.queue.at(flushAtMs, () => {
        if (epoch !== this.#epoch) return;
        this.#isFlushing = false;
        this.#apply({ type: "flush" });
      });
    }
    if (this.#isTicking || !this.scheduler.isTimed) return;
    this.#isTicking = true;
    this.queue.after(TICK_MS, () => {
      if (epoch !== this.#epoch) return;
      this.#isTicking = false;
      this.#apply({ type: "tick" });
    });
  }
}

function factsOf(host: SimHost): HostFacts {
  return {
    id: host.id,
    hostname: host.id,
    ip: "10.0.0.1",
    upload_port: 1,
    type: "normal",
    idc: host.idc,
    location: "",
    platform: "linux/amd64",
    version: "0",
  };
}
