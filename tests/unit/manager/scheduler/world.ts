/**
 * A scheduler with hosts that are only ids: says what hosts say, keeps what
 * each was sent, and moves the time. Messages pass the wire's own schemas.
 */
import { seededRandom } from "../../../../peer/core/clock.ts";
import { sha256Hex } from "../../../../peer/core/digest.ts";
import { pieceCount } from "../../../../peer/core/piece.ts";
import {
  type HeldTask,
  type HostFacts,
  type HostMessage,
  hostMessage,
  type PieceDigest,
  type SchedulerMessage,
  schedulerMessage,
  type TaskMeta,
} from "../../../../peer/core/wire/scheduler.ts";
import type { SchedulerConfig } from "../../../../manager/scheduler/resource.ts";
import { type Effect, Scheduler, type SchedulerEvent } from "../../../../manager/scheduler/scheduler.ts";

export const MiB = 1024 * 1024;
export const TASK = "a".repeat(64);
export const SPEC = { task_id: TASK, url: "http://origin/file", tag: "", filter: "" };
export const CONFIG: SchedulerConfig = { neighbours: 12, sourceConnectionsPerTask: 4, hostTimeoutMs: 10_000 };

type Sent<Type extends SchedulerMessage["type"]> = Extract<SchedulerMessage, { type: Type }>;

/** A generation of `pieces` pieces of 256 KiB. */
export function metaOf(pieces: number, changes: Partial<TaskMeta> = {}): TaskMeta {
  const piece_length = changes.piece_length ?? MiB / 4;
  return { generation: "g1", content_length: pieces * piece_length, piece_length, ranges: true, ...changes };
}

export function factsOf(id: string, changes: Partial<HostFacts> = {}): HostFacts {
  return {
    id,
    hostname: id,
    ip: "10.0.0.1",
    upload_port: 1000,
    type: id.startsWith("seed") ? "seed" : "normal",
    idc: "",
    location: "",
    platform: "linux/amd64",
    version: "0",
    ...changes,
  };
}

/** Digests of pieces, made up from their numbers. */
export function digests(first: number, count: number): PieceDigest[] {
  return Array.from({ length: count }, (_, index) => [first + index, sha256Hex(`${first + index}`)]);
}

export class World {
  readonly scheduler: Scheduler;
  nowMs = 0;
  /** What each host was sent, in order. */
  readonly inbox = new Map<string, SchedulerMessage[]>();
  readonly effects: Effect[] = [];

  constructor({ seed = 1, config = {} }: { seed?: number; config?: Partial<SchedulerConfig> } = {}) {
    this.scheduler = new Scheduler({ ...CONFIG, ...config }, seededRandom(seed));
  }

  apply(event: SchedulerEvent): Effect[] {
    const effects = this.scheduler.apply(event, this.nowMs);
    for (const effect of effects) {
      this.effects.push(effect);
      if (effect.type !== "send") continue;
      schedulerMessage.parse(effect.message);
      const inbox = this.inbox.get(effect.hostId) ?? [];
      inbox.push(effect.message);
      this.inbox.set(effect.hostId, inbox);
    }
    return effects;
  }

  connect(id: string, changes: Partial<HostFacts> = {}): this {
    this.apply({ type: "connected", host: factsOf(id, changes), connectedAt: "2026-01-01T00:00:00Z" });
    return this;
  }

  say(hostId: string, message: HostMessage): Effect[] {
    return this.apply({ type: "message", hostId, message: hostMessage.parse(message) });
  }

  /** Connects the host when it is new, and joins. */
  join(
    id: string,
    changes: Partial<Extract<HostMessage, { type: "join" }>> = {},
    facts: Partial<HostFacts> = {},
  ): this {
    if (!this.scheduler.hosts.has(id)) this.connect(id, facts);
    this.say(id, {
      type: "join",
      task: SPEC,
      piece_count: 0,
      can_source: true,
      anonymous: false,
      partial: false,
      ...changes,
    });
    return this;
  }

  held(id: string, meta: TaskMeta, changes: Partial<HeldTask> = {}): this {
    if (!this.scheduler.hosts.has(id)) this.connect(id);
    const piece_count = pieceCount({ contentLength: meta.content_length, pieceLength: meta.piece_length });
    this.say(id, { type: "held", tasks: [{ ...SPEC, meta, piece_count, complete: true, ...changes }] });
    return this;
  }

  leave(id: string): this {
    this.say(id, { type: "leave", task_id: TASK });
    return this;
  }

  gone(id: string): this {
    this.apply({ type: "gone", hostId: id });
    return this;
  }

  meta(id: string, meta: TaskMeta): this {
    this.say(id, { type: "meta", task_id: TASK, meta });
    return this;
  }

  pieces(id: string, first: number, count: number, generation = "g1"): this {
    this.say(id, { type: "pieces", task_id: TASK, generation, pieces: digests(first, count) });
    return this;
  }

  leaseEnd(id: string, lease_id: number, code?: string): this {
    const error = code === undefined ? {} : { error: { code, message: `it is ${code}` } };
    this.say(id, { type: "lease_end", task_id: TASK, lease_id, ...error });
    return this;
  }

  starving(id: string, pieces: number[], generation = "g1"): this {
    this.say(id, { type: "starving", task_id: TASK, generation, pieces });
    return this;
  }

  complete(id: string, generation = "g1"): this {
    this.say(id, { type: "complete", task_id: TASK, generation });
    return this;
  }

  /** Moves the time to the next flush. */
  flush(): this {
    this.nowMs = Math.max(this.nowMs, this.scheduler.flushAtMs ?? 0);
    this.apply({ type: "flush" });
    return this;
  }

  /** Moves the time in ticks. */
  wait(ms: number): this {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs;) {
      this.nowMs = Math.min(endMs, this.nowMs + 200);
      this.apply({ type: "tick" });
    }
    return this;
  }

  /** Messages of one type that a host was sent since the last `clear`. */
  sent<Type extends SchedulerMessage["type"]>(id: string, type: Type): Sent<Type>[] {
    return (this.inbox.get(id) ?? []).filter((message): message is Sent<Type> => message.type === type);
  }

  clear(): this {
    this.inbox.clear();
    return this;
  }

  swarm(taskId = TASK) {
    return this.scheduler.swarms.get(taskId);
  }

  /** Live leases as `host:first+count`, a probe as `host:probe`, oldest first. */
  leases(): string[] {
    return (this.swarm()?.leases ?? []).map(({ hostId, first, count }) =>
      count === 0 ? `${hostId}:probe` : `${hostId}:${first}+${count}`
    );
  }

  /** Probes, finds the content and reports the probe's pieces, so that the swarm is under way. */
  begin(id: string, meta: TaskMeta): this {
    this.join(id).meta(id, meta);
    return this;
  }
}
