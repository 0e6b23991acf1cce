/**
 * One WebSocket from this host to one scheduler: says hello, tells what is on
 * disk, carries the words of every task joined, and comes back by itself after
 * a break. A scheduler forgets everything with the connection, so all of it is
 * said again. One that hangs costs a wait once: until it speaks again, tasks
 * tell it that they are there and go on at once.
 */
import type { Clock, Random } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import {
  batches,
  decodeMessage,
  type HeldTask,
  type HostFacts,
  type HostMessage,
  SCHEDULER_PROTOCOL,
  type SchedulerMessage,
  schedulerMessage,
  type TaskSpec,
} from "../core/wire/scheduler.ts";
import type { Membership, SwarmListener } from "../task/swarm.ts";

/** How long a first connection may take before a task goes on without it. */
const CONNECT_GRACE_MS = 2_000;
/** How long a scheduler may take to answer a join. */
const REPLY_TIMEOUT_MS = 3_000;
/** The same for a host that has no other way: it may not read the origin. */
const REPLY_TIMEOUT_MS_PATIENT = 30_000;
const RECONNECT_MS = 100;
const RECONNECT_MS_MAX = 5_000;
/** Characters waiting to be sent before the connection is given up. */
const BUFFERED_MAX = 8 * 1024 * 1024;

export interface ConnectionDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly host: () => HostFacts;
  readonly joinToken: string;
  /** Everything on this host's disk. */
  readonly held: () => HeldTask[];
  readonly load: () => { uploads: number; downloads: number; free_bytes: number };
  /** An order, and the way to answer. */
  readonly onOrder: (
    message: Extract<SchedulerMessage, { type: "order" | "cancel_order" }>,
    send: (message: HostMessage) => void,
  ) => void;
  /** Digests of a task on disk that nobody works on here. */
  readonly digestsOf: (taskId: string, generation: string) => Promise<[number, string][]>;
}

export type Found = Extract<SchedulerMessage, { type: "found" }>;

interface Member {
  readonly spec: TaskSpec;
  readonly listener: SwarmListener;
  /** Pieces read from the origin and not sent yet: one message per event-loop turn. */
  pieces: [number, string][];
  generation: string;
  replyTimer: ReturnType<typeof setTimeout> | undefined;
}

export class SchedulerConnection implements AsyncDisposable {
  readonly #members = new Map<string, Member>();
  readonly #finds = new Map<number, { resolve: (found: Found) => void; reject: (error: unknown) => void }>();
  #lastFind = 0;
  #socket: WebSocket | null = null;
  #welcomed = false;
  #everTried = false;
  #closed = false;
  #heardCount = 0;
  /** It let a request time out, and has said nothing since. */
  #isSilent = false;
  #delayMs = RECONNECT_MS;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #heartbeatTimer: ReturnType<typeof setInterval> | undefined;
  #closing = Promise.withResolvers<void>();

  constructor(readonly url: string, private readonly deps: ConnectionDeps) {
    this.#connect();
  }

  get isUp(): boolean {
    return this.#welcomed;
  }

  join(spec: TaskSpec, listener: SwarmListener): Membership {
    const member: Member = { spec, listener, pieces: [], generation: "", replyTimer: undefined };
    this.#members.set(spec.task_id, member);
    if (this.#welcomed) this.#sendJoin(member);
    else if (this.#everTried || this.#isSilent) {
      queueMicrotask(() => this.#members.get(spec.task_id) === member && listener.onDown());
    } else this.#awaitReply(member, CONNECT_GRACE_MS);
    const task_id = spec.task_id;
    return {
      meta: (meta) => this.#send({ type: "meta", task_id, meta }),
      pieces: (generation, pieces) => this.#queuePieces(member, generation, pieces),
      leaseEnd: (lease_id, error) => {
        this.#flush(member);
        this.#send({ type: "lease_end", task_id, lease_id, ...(error === undefined ? {} : { error }) });
      },
      starving: (generation, pieces) => this.#send({ type: "starving", task_id, generation, pieces: [...pieces] }),
      badPeer: (host_id, piece) => this.#send({ type: "bad_peer", task_id, host_id, piece }),
      checked: (generation, changed) => this.#send({ type: "checked", task_id, generation, changed }),
      complete: (generation) => {
        this.#flush(member);
        this.#send({ type: "complete", task_id, generation });
      },
      update: () => {
        if (this.#welcomed) this.#sendJoin(member);
      },
      leave: () => {
        clearTimeout(member.replyTimer);
        if (this.#members.get(task_id) !== member) return;
        this.#members.delete(task_id);
        this.#send({ type: "leave", task_id });
      },
    };
  }

  /** Who has these tasks. @throws {LacewingError} `unavailable`, `timeout` */
  async find(taskIds: readonly string[]): Promise<Found> {
    if (!this.#welcomed) throw new LacewingError("unavailable", "Cannot ask the scheduler: it is away");
    const find_id = this.#lastFind += 1;
    const { promise, resolve, reject } = Promise.withResolvers<Found>();
    const late = new LacewingError(
      "timeout",
      `Cannot ask the scheduler: no answer within ${REPLY_TIMEOUT_MS / 1000} s`,
    );
    const heardCount = this.#heardCount;
    const timer = setTimeout(() => {
      this.#missed(heardCount);
      reject(late);
    }, this.#isSilent ? 0 : REPLY_TIMEOUT_MS);
    this.#finds.set(find_id, { resolve, reject });
    this.#send({ type: "find", find_id, task_ids: [...taskIds] });
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#finds.delete(find_id);
    }
  }

  /** Tells that tasks on disk have changed. */
  tell(held: readonly HeldTask[], dropped: readonly string[]): void {
    for (const tasks of batches(held)) this.#send({ type: "held", tasks });
    for (const task_ids of batches(dropped)) this.#send({ type: "dropped", task_ids });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    clearInterval(this.#heartbeatTimer);
    for (const member of this.#members.values()) clearTimeout(member.replyTimer);
    this.#members.clear();
    if (this.#socket === null) return;
    this.#socket.close();
    await this.#closing.promise;
  }

  #connect(): void {
    const socket = new WebSocket(this.url);
    this.#socket = socket;
    this.#closing = Promise.withResolvers<void>();
    socket.onopen = () => this.#hello();
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onerror = (event) => {
      const reason = event instanceof ErrorEvent ? event.message : "error";
      this.deps.log.debug("scheduler connection failed", { scheduler: this.url, reason });
    };
    socket.onclose = () => this.#lost();
  }

  #hello(): void {
    const { joinToken } = this.deps;
    this.#send({
      type: "hello",
      v: SCHEDULER_PROTOCOL,
      host: this.deps.host(),
      ...(joinToken === "" ? {} : { join_token: joinToken }),
    });
  }

  #lost(): void {
    const wasUp = this.#welcomed;
    const first = !this.#everTried;
    this.#socket = null;
    this.#welcomed = false;
    this.#everTried = true;
    this.#isSilent = false;
    clearInterval(this.#heartbeatTimer);
    for (const { reject } of this.#finds.values()) {
      reject(new LacewingError("unavailable", "Cannot ask the scheduler: it went away"));
    }
    this.#closing.resolve();
    if (this.#closed) return;
    if (wasUp) this.deps.log.warn("lost the scheduler", { scheduler: this.url });
    if (wasUp || first) {
      for (const member of [...this.#members.values()]) {
        clearTimeout(member.replyTimer);
        member.pieces = [];
        member.listener.onDown();
      }
    }
    this.#retryTimer = setTimeout(() => this.#connect(), this.#delayMs * (0.5 + this.deps.random()));
    this.#delayMs = Math.min(this.#delayMs * 2, RECONNECT_MS_MAX);
  }

  #receive(data: unknown): void {
    this.#heardCount += 1;
    if (this.#isSilent) this.deps.log.info("the scheduler speaks again", { scheduler: this.url });
    this.#isSilent = false;
    let message: SchedulerMessage;
    try {
      message = decodeMessage(schedulerMessage, data);
    } catch (error) {
      this.deps.log.warn("scheduler sent what cannot be read", { scheduler: this.url, error });
      this.#socket?.close(4002, "protocol error");
      return;
    }
    if (message.type === "welcome") return this.#welcome(message.heartbeat_ms, message.cluster_id);
    if (message.type === "error") {
      return this.deps.log.warn("scheduler refuses this host", { scheduler: this.url, error: message.error });
    }
    if (message.type === "order" || message.type === "cancel_order") {
      return this.deps.onOrder(message, (answer) => this.#send(answer));
    }
    if (message.type === "found") return this.#finds.get(message.find_id)?.resolve(message);
    const member = this.#members.get(message.task_id);
    if (member !== undefined) this.#deliver(member, message);
    else if (message.type === "want_digests") void this.#sendDigests(message.task_id, message.generation);
    else if (message.type === "lease") {
      this.#send({
        type: "lease_end",
        task_id: message.task_id,
        lease_id: message.lease_id,
        error: { code: "canceled", message: "This host has left the task" },
      });
    }
  }

  #deliver(
    member: Member,
    message: Exclude<SchedulerMessage, { type: "welcome" | "error" | "order" | "cancel_order" | "found" }>,
  ): void {
    const { listener } = member;
    switch (message.type) {
      case "task":
        clearTimeout(member.replyTimer);
        listener.onCarriers(message.carriers ?? null);
        return listener.onTask(message.meta, message.neighbours, { confirm: message.confirm ?? false });
      case "meta":
        return listener.onMeta(message.meta);
      case "neighbours":
        if (message.carriers !== undefined) listener.onCarriers(message.carriers);
        return listener.onNeighbours(message.add, message.remove);
      case "digests":
        return listener.onDigests(message.generation, message.pieces);
      case "lease":
        return listener.onLease({
          leaseId: message.lease_id,
          generation: message.generation,
          first: message.first,
          count: message.count,
        });
      case "revoke":
        return listener.onRevoke(message.lease_id);
      case "want_digests":
        return listener.onWantDigests(message.generation);
      case "failed":
        return listener.onFailed(message.error);
    }
  }

  #welcome(heartbeatMs: number, clusterId: number): void {
    this.#welcomed = true;
    this.#everTried = true;
    this.#delayMs = RECONNECT_MS;
    this.deps.log.info("joined a scheduler", { scheduler: this.url, cluster_id: clusterId });
    this.tell(this.deps.held(), []);
    for (const member of this.#members.values()) this.#sendJoin(member);
    this.#heartbeatTimer = setInterval(() => this.#send({ type: "heartbeat", ...this.deps.load() }), heartbeatMs);
  }

  #sendJoin(member: Member): void {
    const { meta, pieceCount, canSource, anonymous, partial, traceparent } = member.listener.joinState();
    this.#send({
      type: "join",
      task: member.spec,
      ...(meta === undefined ? {} : { meta }),
      piece_count: pieceCount,
      can_source: canSource,
      anonymous,
      partial,
      ...(traceparent === undefined ? {} : { traceparent }),
    });
    const replyTimeoutMs = this.#isSilent ? 0 : REPLY_TIMEOUT_MS;
    this.#awaitReply(member, canSource ? replyTimeoutMs : REPLY_TIMEOUT_MS_PATIENT);
  }

  #awaitReply(member: Member, timeoutMs: number): void {
    clearTimeout(member.replyTimer);
    const heardCount = this.#heardCount;
    member.replyTimer = setTimeout(() => {
      this.#missed(heardCount);
      member.listener.onDown();
    }, timeoutMs);
  }

  /** A request was not answered in time. @param heardCount messages that had come when it was sent */
  #missed(heardCount: number): void {
    if (this.#isSilent || heardCount !== this.#heardCount) return;
    this.#isSilent = true;
    this.deps.log.warn("the scheduler is silent: tasks go on without it until it speaks", { scheduler: this.url });
  }

  #queuePieces(member: Member, generation: string, pieces: readonly (readonly [number, string])[]): void {
    if (generation !== member.generation) this.#flush(member);
    member.generation = generation;
    if (member.pieces.length === 0) queueMicrotask(() => this.#flush(member));
    for (const [number, digest] of pieces) member.pieces.push([number, digest]);
  }

  #flush(member: Member): void {
    const pieces = member.pieces;
    member.pieces = [];
    for (const batch of batches(pieces)) {
      this.#send({ type: "pieces", task_id: member.spec.task_id, generation: member.generation, pieces: batch });
    }
  }

  async #sendDigests(taskId: string, generation: string): Promise<void> {
    const pieces = await this.deps.digestsOf(taskId, generation).catch(() => []);
    for (const batch of batches(pieces)) this.#send({ type: "pieces", task_id: taskId, generation, pieces: batch });
  }

  #send(message: HostMessage): void {
    const socket = this.#socket;
    if (socket === null || socket.readyState !== WebSocket.OPEN) return;
    if (message.type !== "hello" && !this.#welcomed) return;
    if (socket.bufferedAmount > BUFFERED_MAX) return socket.close(4013, "the scheduler does not read");
    socket.send(JSON.stringify(message));
  }
}
