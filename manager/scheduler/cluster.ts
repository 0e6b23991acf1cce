/**
 * The event loop around the state machine of one cluster: feeds it events one
 * after the other, carries out what it answers, flushes at the end of a turn
 * and ticks while something depends on time.
 */
import type { Clock, Random } from "../../peer/core/clock.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import type { Logger } from "../../peer/core/log.ts";
import { noTracer, type Tracer } from "../../peer/core/telemetry.ts";
import type {
  FoundTask,
  HostFacts,
  HostMessage,
  OrderTask,
  SchedulerMessage,
  WireError,
} from "../../peer/core/wire/scheduler.ts";
import type { SchedulerConfig } from "./resource.ts";
import { type Effect, Scheduler, type SchedulerEvent } from "./scheduler.ts";
import type { HostView, PreheatProgress, PreheatScope, TaskView } from "./schedulers.ts";
import { foundTask, hostViews, taskViews } from "./views.ts";

const TICK_MS = 200;

export interface ClusterDeps {
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Default: records nothing. */
  readonly tracer?: Tracer | undefined;
}

/** The way to one host. */
export interface HostLink {
  /** Never throws; a host that does not read is closed by the link. */
  send(text: string): void;
  /** Says why and ends the connection. */
  close(error: WireError): void;
}

interface Waiter {
  readonly onProgress: (progress: PreheatProgress) => void;
  readonly resolve: (progress: PreheatProgress) => void;
}

export class Cluster implements Disposable {
  readonly #scheduler: Scheduler;
  readonly #links = new Map<string, HostLink>();
  readonly #waiters = new Map<string, Waiter>();
  readonly #stop = new AbortController();
  #events: SchedulerEvent[] = [];
  #isApplying = false;
  #isTicking = false;
  #nextFlush: { readonly atMs: number; readonly timer: ReturnType<typeof setTimeout> } | null = null;
  /** The last message in its text form: the same one often goes to many hosts. */
  #encoded: { message: SchedulerMessage; text: string } | undefined;

  constructor(readonly id: number, private readonly deps: ClusterDeps, config: SchedulerConfig) {
    this.#scheduler = new Scheduler(config, deps.random);
  }

  hosts(): HostView[] {
    return hostViews(this.id, this.#scheduler);
  }

  tasks(): TaskView[] {
    return taskViews(this.id, this.#scheduler);
  }

  /** Who has these tasks; those that nobody has are left out. */
  find(taskIds: readonly string[]): FoundTask[] {
    return taskIds.map((taskId) => foundTask(taskId, this.#scheduler)).filter((task) => task !== null);
  }

  /** A host is here; an older connection of the same host is closed. */
  connected(host: HostFacts, link: HostLink): void {
    this.#apply({ type: "connected", host, connectedAt: new Date().toISOString() });
    this.#links.set(host.id, link);
  }

  received(hostId: string, message: HostMessage): void {
    if (message.type !== "join" || message.traceparent === undefined) {
      return this.#apply({ type: "message", hostId, message });
    }
    const { tracer = noTracer } = this.deps;
    const { task, traceparent: parent } = message;
    const attributes = { "lacewing.task_id": task.task_id, "lacewing.host_id": hostId, "lacewing.cluster_id": this.id };
    const span = tracer.start("schedule", { parent, kind: "server", attributes });
    this.#apply({ type: "message", hostId, message });
    span.end();
  }

  /** The connection of a host has ended. */
  gone(hostId: string): void {
    this.#links.delete(hostId);
    this.#apply({ type: "gone", hostId });
  }

  /** @see Schedulers */
  preheat(
    { task, scope }: { task: OrderTask; scope: PreheatScope },
    { signal, onProgress }: { signal: AbortSignal; onProgress: (progress: PreheatProgress) => void },
  ): Promise<PreheatProgress> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#scheduler.hosts.size === 0) return Promise.reject(this.#noHost(task.url));
    const orderId = `job-${crypto.randomUUID()}`;
    const { promise, resolve, reject } = Promise.withResolvers<PreheatProgress>();
    const abort = () => {
      this.#waiters.delete(orderId);
      this.#apply({ type: "cancel", orderId });
      reject(signal.reason);
    };
    const onStopped = () => {
      this.#waiters.delete(orderId);
      reject(new LacewingError("unavailable", `Cannot preheat ${task.url}: the scheduler stops`));
    };
    signal.addEventListener("abort", abort, { once: true });
    this.#stop.signal.addEventListener("abort", onStopped, { once: true });
    this.#waiters.set(orderId, { onProgress, resolve });
    this.#apply({ type: "preheat", orderId, task, scope });
    return promise.finally(() => {
      signal.removeEventListener("abort", abort);
      this.#stop.signal.removeEventListener("abort", onStopped);
    });
  }

  /** Orders every holder to drop the task. @returns how many were told */
  drop(taskId: string): number {
    const count = this.#holderCount(taskId);
    this.#apply({ type: "drop", taskId });
    return count;
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
    clearTimeout(this.#nextFlush?.timer);
  }

  #holderCount(taskId: string): number {
    const task = this.#scheduler.tasks.get(taskId);
    const members = this.#scheduler.swarms.get(taskId)?.members.keys() ?? [];
    return new Set([...task?.holdings.keys() ?? [], ...members]).size;
  }

  /** Effects may bring events (a link that is full ends): those wait their turn. */
  #apply(event: SchedulerEvent): void {
    this.#events.push(event);
    if (this.#isApplying) return;
    this.#isApplying = true;
    try {
      for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift()) {
        for (const effect of this.#scheduler.apply(next, this.deps.clock.nowMs())) this.#perform(effect);
      }
    } finally {
      this.#isApplying = false;
    }
    this.#schedule();
  }

  #perform(effect: Effect): void {
    if (effect.type === "send") {
      this.#links.get(effect.hostId)?.send(this.#encode(effect.message));
    } else if (effect.type === "disconnect") {
      const link = this.#links.get(effect.hostId);
      this.#links.delete(effect.hostId);
      link?.close({ code: "conflict", message: "A newer connection of the same host took over" });
    } else {
      const waiter = this.#waiters.get(effect.orderId);
      waiter?.onProgress(effect.progress);
      if (!effect.finished) return;
      this.#waiters.delete(effect.orderId);
      waiter?.resolve(effect.progress);
    }
  }

  #encode(message: SchedulerMessage): string {
    if (this.#encoded?.message !== message) this.#encoded = { message, text: JSON.stringify(message) };
    return this.#encoded.text;
  }

  #schedule(): void {
    if (this.#stop.signal.aborted) return;
    this.#planFlush(this.#scheduler.flushAtMs);
    if (!this.#isTicking && this.#scheduler.isTimed) void this.#tick();
  }

  #planFlush(atMs: number | null): void {
    if (atMs === null || (this.#nextFlush !== null && this.#nextFlush.atMs <= atMs)) return;
    clearTimeout(this.#nextFlush?.timer);
    const timer = setTimeout(() => {
      this.#nextFlush = null;
      this.#apply({ type: "flush" });
    }, Math.max(0, atMs - this.deps.clock.nowMs()));
    this.#nextFlush = { atMs, timer };
  }

  async #tick(): Promise<void> {
    this.#isTicking = true;
    try {
      while (this.#scheduler.isTimed) {
        await this.deps.clock.sleep(TICK_MS, this.#stop.signal);
        this.#apply({ type: "tick" });
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) this.deps.log.error("a tick failed", { cluster_id: this.id, error });
    } finally {
      this.#isTicking = false;
    }
  }

  #noHost(url: string): LacewingError {
    return new LacewingError(
      "unavailable",
      `Cannot preheat ${url}: cluster ${this.id} has no live host; start a daemon that joins it`,
    );
  }
}
