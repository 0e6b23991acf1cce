/**
 * All schedulers of this host's cluster: their list comes from the manager (or
 * is fixed by the configuration), and a task belongs to one of them by
 * rendezvous hashing, so that every host asks the same one.
 */
import { z } from "zod";
import { sha256Hex } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import type { HeldTask, TaskSpec } from "../core/wire/scheduler.ts";
import type { Membership, Swarm, SwarmListener } from "../task/swarm.ts";
import { type ConnectionDeps, type Found, SchedulerConnection } from "./connection.ts";

/** How long a task waits for the first list. */
const FIRST_LIST_GRACE_MS = 2_000;
const LIST_TIMEOUT_MS = 5_000;
const LIST_LENGTH_MAX = 64;
const RETRY_MS = 500;

const schedulerList = z.array(z.object({ url: z.string().regex(/^wss?:\/\//).max(2048) })).max(LIST_LENGTH_MAX);

export interface SchedulerSetConfig {
  /** Base URL of the manager, or null when the list is fixed. */
  readonly managerUrl: string | null;
  readonly refreshIntervalMs: number;
  /** WebSocket URLs used instead of a manager's list. */
  readonly fixedUrls: readonly string[];
}

export class SchedulerSet implements Swarm, AsyncDisposable {
  readonly #connections = new Map<string, SchedulerConnection>();
  readonly #stop = new AbortController();
  readonly #firstList = Promise.withResolvers<void>();
  #refreshing: Promise<void> = Promise.resolve();

  constructor(private readonly deps: ConnectionDeps, private readonly config: SchedulerSetConfig) {
    if (config.managerUrl === null) {
      this.#use(config.fixedUrls);
      this.#firstList.resolve();
    } else this.#refreshing = this.#refresh(config.managerUrl);
  }

  /** Schedulers that answer now. */
  get upCount(): number {
    return [...this.#connections.values()].filter((connection) => connection.isUp).length;
  }

  join(task: TaskSpec, listener: SwarmListener): Membership {
    const now = this.#pick(task.task_id);
    if (now !== null) return now.join(task, listener);
    return new LateMembership(this.#firstListOrGrace().then(() => this.#pick(task.task_id)), task, listener);
  }

  /** Asks each task's own scheduler who has it. @throws {LacewingError} `unavailable`, `timeout` */
  async find(taskIds: readonly string[]): Promise<Pick<Found, "tasks" | "jobs">> {
    const answers = await Promise.all(taskIds.map((taskId) => {
      const connection = this.#pick(taskId);
      if (connection === null) throw new LacewingError("unavailable", "Cannot ask a scheduler: none is known yet");
      return connection.find([taskId]);
    }));
    return { tasks: answers.flatMap(({ tasks }) => tasks), jobs: answers.flatMap(({ jobs }) => jobs) };
  }

  tell(held: readonly HeldTask[], dropped: readonly string[]): void {
    for (const connection of this.#connections.values()) connection.tell(held, dropped);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new DOMException("The daemon is stopping", "AbortError"));
    this.#firstList.resolve();
    await this.#refreshing;
    await Promise.all([...this.#connections.values()].map((connection) => connection[Symbol.asyncDispose]()));
  }

  async #firstListOrGrace(): Promise<void> {
    const graceOver = new AbortController();
    const grace = this.deps.clock.sleep(FIRST_LIST_GRACE_MS, AbortSignal.any([graceOver.signal, this.#stop.signal]))
      .catch(() => {});
    await Promise.race([this.#firstList.promise, grace]);
    graceOver.abort();
  }

  #pick(taskId: string): SchedulerConnection | null {
    let best: SchedulerConnection | null = null;
    let bestScore = "";
    for (const connection of this.#connections.values()) {
      const score = sha256Hex(`${taskId}\n${connection.url}`);
      if (best === null || score > bestScore) [best, bestScore] = [connection, score];
    }
    return best;
  }

  async #refresh(managerUrl: string): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      let waitMs = this.config.refreshIntervalMs;
      try {
        this.#use(await this.#fetchList(managerUrl));
        this.#firstList.resolve();
      } catch (error) {
        if (signal.aborted) return;
        this.deps.log.debug("cannot get the schedulers from the manager", { manager: managerUrl, error });
        // Known schedulers stay: a manager that is away changes nothing for the swarm.
        if (error instanceof LacewingError) {
          this.deps.log.warn("the manager refuses to list schedulers", { manager: managerUrl, error });
        }
        this.#firstList.resolve();
        waitMs = this.#connections.size === 0 ? RETRY_MS : waitMs;
      }
      await this.deps.clock.sleep(waitMs, signal).catch(() => {});
    }
  }

  async #fetchList(managerUrl: string): Promise<string[]> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
    const { joinToken } = this.deps;
    const response = await fetch(new URL("/api/v1/schedulers", managerUrl), {
      signal,
      headers: joinToken === "" ? {} : { authorization: `Bearer ${joinToken}` },
    });
    const body = await response.text();
    if (!response.ok) {
      throw new LacewingError("unauthorized", `The manager answered ${response.status} to the list of schedulers`);
    }
    return schedulerList.parse(JSON.parse(body)).map(({ url }) => url);
  }

  #use(urls: readonly string[]): void {
    for (const url of urls) {
      if (!this.#connections.has(url)) this.#connections.set(url, new SchedulerConnection(url, this.deps));
    }
    for (const [url, connection] of [...this.#connections]) {
      if (urls.includes(url)) continue;
      this.#connections.delete(url);
      void connection[Symbol.asyncDispose]();
    }
  }
}

/** A membership whose scheduler is found out later; what is said before is lost with nobody to hear it. */
class LateMembership implements Membership {
  #inner: Membership | null = null;
  #left = false;

  constructor(connection: Promise<SchedulerConnection | null>, task: TaskSpec, listener: SwarmListener) {
    connection.then((found) => {
      if (this.#left) return;
      if (found === null) listener.onDown();
      else this.#inner = found.join(task, listener);
    });
  }

  meta(...args: Parameters<Membership["meta"]>): void {
    this.#inner?.meta(...args);
  }
  pieces(...args: Parameters<Membership["pieces"]>): void {
    this.#inner?.pieces(...args);
  }
  leaseEnd(...args: Parameters<Membership["leaseEnd"]>): void {
    this.#inner?.leaseEnd(...args);
  }
  starving(...args: Parameters<Membership["starving"]>): void {
    this.#inner?.starving(...args);
  }
  badPeer(...args: Parameters<Membership["badPeer"]>): void {
    this.#inner?.badPeer(...args);
  }
  checked(...args: Parameters<Membership["checked"]>): void {
    this.#inner?.checked(...args);
  }
  complete(...args: Parameters<Membership["complete"]>): void {
    this.#inner?.complete(...args);
  }
  update(): void {
    this.#inner?.update();
  }
  leave(): void {
    this.#left = true;
    this.#inner?.leave();
  }
}
