/**
 * The state machine of one scheduler cluster: `apply` takes one event and
 * answers what is to be sent. It does no I/O, awaits nothing, reads no clock
 * and keeps nothing on disk; all it knows came from hosts that live now.
 */
import type { Random } from "../../peer/core/clock.ts";
import type {
  HeldTask,
  HostFacts,
  HostMessage,
  OrderTask,
  SchedulerMessage,
  TaskSpec,
} from "../../peer/core/wire/scheduler.ts";
import { chooseHosts, type Order, Orders, toProgress } from "./orders.ts";
import type { Host, MessageOf, SchedulerConfig, SwarmPorts } from "./resource.ts";
import type { PreheatProgress, PreheatScope } from "./schedulers.ts";
import { SortedIds } from "./sorted_ids.ts";
import { Swarm } from "./swarm.ts";
import { Task } from "./task.ts";

/** Digests kept of tasks that nobody works on (about 80 bytes each); the oldest task's go first. */
const IDLE_DIGESTS_MAX = 1_000_000;

/** Tasks that one host may hold or take part in; what it says of more is not heard. */
const TASKS_PER_HOST_MAX = 100_000;

/** A flush gathers for one millisecond per so many members, up to a bound. */
const MEMBERS_PER_DELAY_MS = 50;
const FLUSH_DELAY_MS_MAX = 100;
/** A timer may end so much before its time. */
const FLUSH_EARLY_MS = 1;

export type SchedulerEvent =
  /** A host said hello. @see Host */
  | { readonly type: "connected"; readonly host: HostFacts; readonly connectedAt: string }
  | { readonly type: "message"; readonly hostId: string; readonly message: HostMessage }
  | { readonly type: "gone"; readonly hostId: string }
  | { readonly type: "tick" }
  /** What has gathered for long enough is sent. @see Scheduler.flushAtMs */
  | { readonly type: "flush" }
  | { readonly type: "preheat"; readonly orderId: string; readonly task: OrderTask; readonly scope: PreheatScope }
  | { readonly type: "cancel"; readonly orderId: string }
  | { readonly type: "drop"; readonly taskId: string };

export type Effect =
  | { readonly type: "send"; readonly hostId: string; readonly message: SchedulerMessage }
  | {
    readonly type: "order";
    readonly orderId: string;
    readonly progress: PreheatProgress;
    readonly finished: boolean;
  }
  | { readonly type: "disconnect"; readonly hostId: string };

export class Scheduler {
  readonly #hosts = new Map<string, Host>();
  readonly #seedIds = new SortedIds();
  readonly #tasks = new Map<string, Task>();
  readonly #swarms = new Map<string, Swarm>();
  readonly #orders = new Orders();
  /** The swarms' own orders to seed peers, by id. */
  readonly #seedOrders = new Map<string, { taskId: string; hostId: string }>();
  /** Swarms that have learned digests since their last flush, and when the next one is due. */
  readonly #unflushed = new Map<Swarm, number>();
  /** Tasks without members whose digests are kept, oldest first, with how many. */
  readonly #idleDigests = new Map<string, number>();
  #idleDigestCount = 0;
  #effects: Effect[] = [];
  /** Orders whose progress is told with the next tick. */
  readonly #progressed = new Set<Order>();
  #lastNumber: number;
  readonly #nonce: string;

  constructor(private readonly config: SchedulerConfig, private readonly random: Random) {
    // Hosts outlive a scheduler: ids of leases and orders must not be those of the one before.
    this.#lastNumber = Math.floor(random() * 2 ** 31);
    this.#nonce = Math.floor(random() * 2 ** 48).toString(36);
  }

  get hosts(): ReadonlyMap<string, Host> {
    return this.#hosts;
  }

  get tasks(): ReadonlyMap<string, Task> {
    return this.#tasks;
  }

  get swarms(): ReadonlyMap<string, Swarm> {
    return this.#swarms;
  }

  /** Whether time alone may change something, so that ticks are needed. */
  get isTimed(): boolean {
    if (this.#orders.isTimed || this.#progressed.size > 0) return true;
    for (const swarm of this.#swarms.values()) if (swarm.isTimed) return true;
    return false;
  }

  /**
   * When the next flush is due, on the clock of `apply`; null when there is nothing to send.
   * A flush costs a message per member: without the wait 400 pieces a second
   * would be 400,000 messages for 1,000 members, with it they are 50,000 at most.
   */
  get flushAtMs(): number | null {
    return this.#unflushed.size === 0 ? null : Math.min(...this.#unflushed.values());
  }

  /** @param nowMs of a clock that never runs backwards */
  apply(event: SchedulerEvent, nowMs: number): Effect[] {
    switch (event.type) {
      case "connected":
        this.#connected(event.host, event.connectedAt, nowMs);
        break;
      case "message":
        if (this.#hosts.has(event.hostId)) this.#message(event.hostId, event.message, nowMs);
        break;
      case "gone":
        this.#gone(event.hostId, nowMs);
        break;
      case "tick":
        this.#tick(nowMs);
        break;
      case "flush":
        for (const [swarm, atMs] of this.#unflushed) if (atMs <= nowMs + FLUSH_EARLY_MS) this.#flush(swarm);
        break;
      case "preheat":
        this.#preheat(event, nowMs);
        break;
      case "cancel":
        this.#cancel(event.orderId);
        break;
      case "drop":
        this.#drop(event.taskId);
        break;
    }
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  #connected(facts: HostFacts, connectedAt: string, nowMs: number): void {
    if (this.#hosts.has(facts.id)) {
      this.#effects.push({ type: "disconnect", hostId: facts.id });
      this.#gone(facts.id, nowMs);
    }
    if (facts.type === "seed") this.#seedIds.add(facts.id);
    this.#hosts.set(facts.id, { facts, connectedAt, uploads: 0, downloads: 0, freeBytes: 0, taskIds: new Set() });
  }

  #message(hostId: string, message: HostMessage, nowMs: number): void {
    const host = this.#hosts.get(hostId)!;
    switch (message.type) {
      case "hello":
      case "find":
        return;
      case "heartbeat":
        host.uploads = message.uploads;
        host.downloads = message.downloads;
        host.freeBytes = message.free_bytes;
        return;
      case "held":
        for (const held of message.tasks) this.#held(host, held, nowMs);
        return;
      case "dropped":
        for (const taskId of message.task_ids) this.#dropped(host, taskId, nowMs);
        return;
      case "join":
        return this.#join(host, message, nowMs);
      case "order_progress":
        return this.#orderProgress(hostId, message, nowMs);
      default:
        return this.#swarmMessage(hostId, message, nowMs);
    }
  }

  #swarmMessage(
    hostId: string,
    message: Exclude<
      HostMessage,
      { type: "hello" | "find" | "heartbeat" | "held" | "dropped" | "join" | "order_progress" }
    >,
    nowMs: number,
  ): void {
    const swarm = this.#swarms.get(message.task_id);
    if (swarm === undefined) return;
    switch (message.type) {
      case "leave":
        swarm.leave(hostId, nowMs);
        if (!swarm.task.holdings.has(hostId)) this.#hosts.get(hostId)?.taskIds.delete(message.task_id);
        return this.#closeIfEmpty(swarm);
      case "meta":
        return swarm.meta(hostId, message.meta, nowMs);
      case "pieces":
        return this.#pieces(swarm, hostId, message, nowMs);
      case "lease_end":
        return swarm.leaseEnd(hostId, message, nowMs);
      case "starving":
        return swarm.starving(hostId, message, nowMs);
      case "bad_peer":
        swarm.badPeer(hostId, message, nowMs);
        return this.#closeIfEmpty(swarm);
      case "checked":
        return swarm.checked(hostId, message, nowMs);
      case "complete":
        return swarm.complete(hostId, message, nowMs);
    }
  }

  #pieces(swarm: Swarm, hostId: string, message: MessageOf<"pieces">, nowMs: number): void {
    const { members, task } = swarm;
    swarm.pieces(hostId, message, nowMs);
    // Nothing more is to gather for, and everybody waits for the last ones.
    if (task.digests.isFull) return this.#flush(swarm);
    const crowdMs = Math.min(FLUSH_DELAY_MS_MAX, Math.floor(members.size / MEMBERS_PER_DELAY_MS));
    if (!this.#unflushed.has(swarm)) this.#unflushed.set(swarm, nowMs + Math.max(crowdMs, task.digests.gatherMs));
  }

  #flush(swarm: Swarm): void {
    this.#unflushed.delete(swarm);
    swarm.flush();
  }

  #join(host: Host, message: MessageOf<"join">, nowMs: number): void {
    if (host.taskIds.size >= TASKS_PER_HOST_MAX && !host.taskIds.has(message.task.task_id)) return;
    const task = this.#task(message.task);
    host.taskIds.add(task.id);
    let swarm = this.#swarms.get(task.id);
    if (swarm === undefined) {
      this.#idleDigestCount -= this.#idleDigests.get(task.id) ?? 0;
      this.#idleDigests.delete(task.id);
      swarm = new Swarm(task, this.#ports(task));
      this.#swarms.set(task.id, swarm);
    }
    swarm.join(host, message, nowMs);
  }

  #held(host: Host, held: HeldTask, nowMs: number): void {
    if (host.taskIds.size >= TASKS_PER_HOST_MAX && !host.taskIds.has(held.task_id)) return;
    const task = this.#task(held);
    host.taskIds.add(task.id);
    const swarm = this.#swarms.get(task.id);
    if (swarm === undefined) task.reportIdle(host.facts.id, held);
    else swarm.held(host.facts.id, held, nowMs);
  }

  #dropped(host: Host, taskId: string, nowMs: number): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined || !task.holdings.delete(host.facts.id)) return;
    const swarm = this.#swarms.get(taskId);
    if (!swarm?.members.has(host.facts.id)) host.taskIds.delete(taskId);
    swarm?.lost(host.facts.id, { isGone: false }, nowMs);
    this.#forgetIfUnheld(task);
  }

  #gone(hostId: string, nowMs: number): void {
    const host = this.#hosts.get(hostId);
    if (host === undefined) return;
    this.#hosts.delete(hostId);
    this.#seedIds.delete(hostId);
    for (const taskId of [...host.taskIds].sort()) {
      const task = this.#tasks.get(taskId);
      const swarm = this.#swarms.get(taskId);
      task?.holdings.delete(hostId);
      swarm?.lost(hostId, { isGone: true }, nowMs);
      if (swarm !== undefined) this.#closeIfEmpty(swarm);
      else if (task !== undefined) this.#forgetIfUnheld(task);
    }
    for (const [orderId, order] of [...this.#seedOrders]) {
      if (order.hostId === hostId) this.#endSeedOrder(orderId, nowMs);
    }
    for (const order of this.#orders.gone(hostId)) this.#report(order);
  }

  #tick(nowMs: number): void {
    for (const swarm of this.#swarms.values()) if (swarm.isTimed) swarm.tick(nowMs);
    for (const { order, hostId } of this.#orders.expire(nowMs)) {
      this.#send(hostId, { type: "cancel_order", order_id: order.id });
      this.#report(order);
    }
    for (const order of this.#progressed) this.#report(order);
  }

  #preheat({ orderId, task, scope }: Extract<SchedulerEvent, { type: "preheat" }>, nowMs: number): void {
    const isComplete = (hostId: string) => this.#tasks.get(task.task_id)?.isComplete(hostId) ?? false;
    const hosts = chooseHosts({ taskId: task.task_id, scope }, [...this.#hosts.values()], isComplete);
    const order = this.#orders.start({ id: orderId, task }, hosts, nowMs);
    for (const { facts } of hosts) {
      this.#send(facts.id, { type: "order", order_id: orderId, kind: "preheat", task });
    }
    this.#report(order);
  }

  #orderProgress(hostId: string, message: MessageOf<"order_progress">, nowMs: number): void {
    if (this.#seedOrders.get(message.order_id)?.hostId === hostId && message.state !== "running") {
      return this.#endSeedOrder(message.order_id, nowMs);
    }
    const order = this.#orders.progress(hostId, message);
    if (order === undefined) return;
    if (message.state === "running") this.#progressed.add(order);
    else this.#report(order);
  }

  #cancel(orderId: string): void {
    for (const order of this.#progressed) if (order.id === orderId) this.#progressed.delete(order);
    for (const hostId of this.#orders.cancel(orderId)) {
      this.#send(hostId, { type: "cancel_order", order_id: orderId });
    }
  }

  #drop(taskId: string): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined) return;
    const hostIds = new Set([...task.holdings.keys(), ...this.#swarms.get(taskId)?.members.keys() ?? []]);
    for (const hostId of [...hostIds].sort()) this.#orderDrop(task, hostId);
  }

  #report(order: Order): void {
    const finished = this.#orders.finish(order);
    this.#progressed.delete(order);
    this.#effects.push({ type: "order", orderId: order.id, progress: toProgress(order), finished });
  }

  #endSeedOrder(orderId: string, nowMs: number): void {
    const order = this.#seedOrders.get(orderId);
    this.#seedOrders.delete(orderId);
    if (order !== undefined) this.#swarms.get(order.taskId)?.seedFailed(order.hostId, nowMs);
  }

  #orderDrop(task: Task, hostId: string): void {
    const order_id = `drop-${this.#nonce}-${this.#nextNumber()}`;
    this.#send(hostId, { type: "order", order_id, kind: "drop", task: { ...task.spec, headers: {} } });
  }

  #orderSeed(task: Task, hostId: string): void {
    const order_id = `seed-${this.#nonce}-${this.#nextNumber()}`;
    this.#seedOrders.set(order_id, { taskId: task.id, hostId });
    this.#send(hostId, { type: "order", order_id, kind: "preheat", task: { ...task.spec, headers: {} } });
  }

  #task(spec: TaskSpec): Task {
    let task = this.#tasks.get(spec.task_id);
    if (task === undefined) {
      const { task_id, url, tag, filter, digest } = spec;
      task = new Task({ task_id, url, tag, filter, ...(digest === undefined ? {} : { digest }) });
      this.#tasks.set(task.id, task);
    }
    return task;
  }

  /** A swarm without members ends; what its holders have stays known. */
  #closeIfEmpty(swarm: Swarm): void {
    const { task } = swarm;
    if (!swarm.isEmpty || this.#swarms.get(task.id) !== swarm) return;
    this.#swarms.delete(task.id);
    this.#unflushed.delete(swarm);
    task.digests.takeFresh();
    this.#forgetIfUnheld(task);
    if (!this.#tasks.has(task.id) || task.digests.count === 0) return;
    this.#idleDigests.set(task.id, task.digests.count);
    this.#idleDigestCount += task.digests.count;
    for (const [taskId, count] of this.#idleDigests) {
      if (this.#idleDigestCount <= IDLE_DIGESTS_MAX) break;
      this.#tasks.get(taskId)?.forgetDigests();
      this.#idleDigests.delete(taskId);
      this.#idleDigestCount -= count;
    }
  }

  #forgetIfUnheld(task: Task): void {
    if (this.#swarms.has(task.id)) return;
    if (task.holdings.size > 0) return task.chooseMeta();
    this.#tasks.delete(task.id);
    this.#idleDigestCount -= this.#idleDigests.get(task.id) ?? 0;
    this.#idleDigests.delete(task.id);
  }

  #ports(task: Task): SwarmPorts {
    return {
      config: this.config,
      random: this.random,
      host: (hostId) => this.#hosts.get(hostId),
      seedIds: () => [...this.#seedIds],
      send: (hostId, message) => this.#send(hostId, message),
      nextLeaseId: () => this.#nextNumber(),
      nextJoinNumber: () => this.#nextNumber(),
      orderSeed: (hostId) => this.#orderSeed(task, hostId),
      orderDrop: (hostId) => this.#orderDrop(task, hostId),
    };
  }

  #send(hostId: string, message: SchedulerMessage): void {
    if (this.#hosts.has(hostId)) this.#effects.push({ type: "send", hostId, message });
  }

  #nextNumber(): number {
    return this.#lastNumber += 1;
  }
}
