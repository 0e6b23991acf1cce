/**
 * Where hosts connect: takes WebSockets, wants a hello within five seconds,
 * places each host in its cluster and hands its messages to that cluster's
 * state machine. One host has one connection: a newer one wins. A host that
 * says nothing for `hostTimeoutMs` is gone.
 */
import { timingSafeEqual } from "@std/crypto/timing-safe-equal";
import type { Clock, Random } from "../../peer/core/clock.ts";
import { sha256Hex } from "../../peer/core/digest.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import type { Logger } from "../../peer/core/log.ts";
import type { Tracer } from "../../peer/core/telemetry.ts";
import { type FoundJob, SCHEDULER_PROTOCOL, type SchedulerMessage } from "../../peer/core/wire/scheduler.ts";
import { Cluster } from "./cluster.ts";
import { HostConnection } from "./host_connection.ts";
import { placeHost } from "./placement.ts";
import type { MessageOf, SchedulerConfig } from "./resource.ts";
import type { ClusterPlacement, Schedulers } from "./schedulers.ts";

const HELLO_TIMEOUT_MS = 5_000;
/** How often silence is looked for at most. */
const WATCH_MS_MAX = 1_000;
/** Heartbeats that may get lost before a host is taken for gone. */
const HEARTBEATS_PER_TIMEOUT = 3;
/** Connections at once; more are refused. */
const CONNECTIONS_MAX = 20_000;
/** How long sockets may take to close when the service stops. */
const CLOSE_TIMEOUT_MS = 1_000;

export interface SchedulerServiceDeps {
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** The clusters as they are now, in the order in which their scopes are tried. */
  readonly clusters: () => readonly ClusterPlacement[];
  /** What hosts must show to join; empty: nothing. */
  readonly joinToken: string;
  /** Parts of jobs that are about these tasks, newest first. Default: there are no jobs. */
  readonly jobsOf?: (taskIds: readonly string[]) => Promise<FoundJob[]>;
  /** Records what hosts join for. Default: nothing. */
  readonly tracer?: Tracer | undefined;
}

/** The schedulers of all clusters, and the door for hosts. */
export interface SchedulerService extends Schedulers, AsyncDisposable {
  /** Answers the request of `SCHEDULER_PATH`. @param remoteIp address that it came from */
  handleUpgrade(request: Request, remoteIp: string): Response;
}

/** Makes the service; it holds no timer and no socket before the first host comes. */
export function createSchedulerService(deps: SchedulerServiceDeps, config: SchedulerConfig): SchedulerService {
  return new Service(deps, config);
}

/** A connection and what is known of its host. */
interface Session {
  readonly connection: HostConnection;
  readonly remoteIp: string;
  hostId: string | null;
  cluster: Cluster | null;
  /** Ends with the last answer to `find`. */
  finding: Promise<void>;
  /** When it opened, or last said something. */
  heardAtMs: number;
}

class Service implements SchedulerService {
  readonly #clusters = new Map<number, Cluster>();
  readonly #sessions = new Set<Session>();
  readonly #byHost = new Map<string, Session>();
  readonly #stop = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(private readonly deps: SchedulerServiceDeps, private readonly config: SchedulerConfig) {}

  hosts(clusterId?: number) {
    return this.#some(clusterId).flatMap((cluster) => cluster.hosts());
  }

  tasks(clusterId?: number) {
    return this.#some(clusterId).flatMap((cluster) => cluster.tasks());
  }

  preheat(...[clusterId, order, options]: Parameters<Schedulers["preheat"]>) {
    return this.#cluster(clusterId).preheat(order, options);
  }

  drop(clusterId: number, taskId: string): number {
    return this.#cluster(clusterId).drop(taskId);
  }

  handleUpgrade(request: Request, remoteIp: string): Response {
    if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
      return new Response("Want a WebSocket\n", { status: 426, headers: { upgrade: "websocket" } });
    }
    // Daemons send no Origin; a web page in somebody's browser must not join as a host.
    if (request.headers.has("origin")) return new Response("Not for browsers\n", { status: 403 });
    if (this.#stop.signal.aborted || this.#sessions.size >= CONNECTIONS_MAX) {
      return new Response("Too many hosts, or stopping\n", { status: 503, headers: { "retry-after": "5" } });
    }
    const { socket, response } = Deno.upgradeWebSocket(request, { idleTimeout: 0 });
    this.#accept(socket, remoteIp);
    return response;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    const sockets = [...this.#sessions].map(({ connection }) => connection);
    for (const cluster of this.#clusters.values()) cluster[Symbol.dispose]();
    const finding = [...this.#sessions].map((session) => session.finding);
    for (const connection of sockets) connection.shutDown();
    await Promise.all(finding);
    const timeout = Promise.withResolvers<void>();
    const timer = setTimeout(() => timeout.resolve(), CLOSE_TIMEOUT_MS);
    await Promise.race([Promise.all(sockets.map(({ closed }) => closed)), timeout.promise]);
    clearTimeout(timer);
    await this.#watching;
  }

  #some(clusterId?: number): Cluster[] {
    return [...this.#clusters.values()].filter(({ id }) => clusterId === undefined || id === clusterId);
  }

  #cluster(id: number): Cluster {
    let cluster = this.#clusters.get(id);
    if (cluster === undefined) this.#clusters.set(id, cluster = new Cluster(id, this.deps, this.config));
    return cluster;
  }

  #accept(socket: WebSocket, remoteIp: string): void {
    const connection: HostConnection = new HostConnection(socket, {
      onOpen: () => session.heardAtMs = this.deps.clock.nowMs(),
      onMessage: (message) => {
        session.heardAtMs = this.deps.clock.nowMs();
        if (message.type === "hello") return this.#hello(session, message);
        if (session.cluster === null || session.hostId === null) {
          throw new LacewingError("protocol", `Cannot take ${message.type}: say hello first`);
        }
        if (message.type === "find") return this.#find(session, session.cluster, message);
        session.cluster.received(session.hostId, message);
      },
      onEnd: (reason) => this.#ended(session, reason),
      onFault: (error) => this.deps.log.error("a message could not be handled", { host_id: session.hostId, error }),
    });
    const session: Session = {
      connection,
      remoteIp: remoteIp.replace(/^::ffff:(?=\d+\.)/, ""),
      hostId: null,
      cluster: null,
      finding: Promise.resolve(),
      heardAtMs: this.deps.clock.nowMs(),
    };
    this.#sessions.add(session);
    this.#watching ??= this.#watch();
  }

  #hello(session: Session, { host, join_token }: MessageOf<"hello">): void {
    if (session.hostId !== null) throw new LacewingError("protocol", "Cannot take hello: it was said already");
    if (this.deps.joinToken !== "" && !isEqual(join_token ?? "", this.deps.joinToken)) {
      this.deps.log.warn("a host showed no valid join token", { host_id: host.id, remote_ip: session.remoteIp });
      throw new LacewingError(
        "unauthorized",
        `Cannot take host ${host.hostname}: its join token is ${join_token === undefined ? "missing" : "wrong"}`,
      );
    }
    const isNowhere = ["", "0.0.0.0", "::"].includes(host.ip);
    const facts = { ...host, ip: isNowhere ? session.remoteIp : host.ip };
    const clusterId = placeHost(facts, session.remoteIp, this.deps.clusters());
    if (clusterId === null) {
      throw new LacewingError(
        "unavailable",
        `Cannot take host ${host.hostname}: no cluster's scopes match it and there is no default cluster`,
      );
    }
    this.#byHost.get(facts.id)?.connection.close({
      code: "conflict",
      message: `A newer connection of host ${facts.id} took over; two daemons must not share a host id`,
    });
    const cluster = this.#cluster(clusterId);
    session.hostId = facts.id;
    session.cluster = cluster;
    this.#byHost.set(facts.id, session);
    const heartbeat_ms = Math.max(1, Math.floor(this.config.hostTimeoutMs / HEARTBEATS_PER_TIMEOUT));
    const welcome: SchedulerMessage = { type: "welcome", v: SCHEDULER_PROTOCOL, cluster_id: clusterId, heartbeat_ms };
    session.connection.send(JSON.stringify(welcome));
    cluster.connected(facts, session.connection);
    this.deps.log.info("host joined", { host_id: facts.id, hostname: facts.hostname, cluster_id: clusterId });
  }

  /** Answered one after the other, so that a host that asks much holds up itself alone. */
  #find(session: Session, cluster: Cluster, { find_id, task_ids }: MessageOf<"find">): void {
    session.finding = session.finding.then(async () => {
      const jobs = await this.deps.jobsOf?.(task_ids) ?? [];
      const found: SchedulerMessage = { type: "found", find_id, tasks: cluster.find(task_ids), jobs };
      session.connection.send(JSON.stringify(found));
    }).catch((error) => this.deps.log.error("tasks could not be found", { host_id: session.hostId, error }));
  }

  #ended(session: Session, reason: string): void {
    this.#sessions.delete(session);
    if (session.hostId === null) return;
    if (this.#byHost.get(session.hostId) === session) this.#byHost.delete(session.hostId);
    session.cluster?.gone(session.hostId);
    this.deps.log.info("host left", { host_id: session.hostId, cluster_id: session.cluster?.id, reason });
  }

  /** Ends connections that are silent, for as long as there are any. */
  async #watch(): Promise<void> {
    const { clock } = this.deps;
    try {
      while (this.#sessions.size > 0) {
        await clock.sleep(Math.min(WATCH_MS_MAX, this.config.hostTimeoutMs / 4), this.#stop.signal);
        for (const session of [...this.#sessions]) this.#check(session, clock.nowMs());
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) this.deps.log.error("watching hosts failed", { error });
    } finally {
      this.#watching = undefined;
    }
  }

  #check({ connection, hostId, heardAtMs }: Session, nowMs: number): void {
    const silentMs = nowMs - heardAtMs;
    const limitMs = hostId === null ? HELLO_TIMEOUT_MS : this.config.hostTimeoutMs;
    if (silentMs <= limitMs) return;
    const what = hostId === null ? "no hello" : "no message";
    connection.close({ code: "timeout", message: `Cannot keep the connection: ${what} within ${limitMs} ms` });
  }
}

/** Compares secrets in a time that does not depend on them. */
function isEqual(a: string, b: string): boolean {
  const bytes = (text: string) => new TextEncoder().encode(sha256Hex(text));
  return timingSafeEqual(bytes(a), bytes(b));
}
