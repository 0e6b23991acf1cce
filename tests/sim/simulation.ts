/**
 * One run: hosts that join, the scheduler, the faults in their time, and what
 * came of it. The same configuration gives the same run, to the last event.
 */
import { type Random, seededRandom } from "../../peer/core/clock.ts";
import { boundMs, type SimConfig } from "./config.ts";
import { EventQueue } from "./event_queue.ts";
import { SimHost } from "./host.ts";
import type { HostPorts } from "./host_ports.ts";
import { Network } from "./network.ts";
import { SchedulerSide } from "./scheduler_side.ts";
import { SPEC } from "./words.ts";

/** Children of a host in the tree that the scheduler knows nothing of. */
const TREE_FANOUT = 3;

export interface Outcome {
  readonly boundMs: number;
  /** When the last host that was to have everything had it; Infinity when one has not. */
  readonly lastMs: number;
  readonly medianMs: number;
  /** `lastMs` and `medianMs` as multiples of the bound. */
  readonly stretch: number;
  readonly medianStretch: number;
  readonly originCopies: number;
  /** Pieces sent in vain, as a share of all that were wanted. */
  readonly waste: number;
  readonly uploadUse: number;
  /** Messages with the scheduler, for each host on average and for the one with most; have-announcements heard. */
  readonly messages: number;
  readonly messagesMax: number;
  readonly haves: number;
  readonly cries: number;
  readonly longestIdleMs: number;
  /** Live honest hosts without all of it, and those that hold a wrong piece. */
  readonly incomplete: number;
  readonly wrong: number;
  /** Looks at the graph that found it in parts. */
  readonly islands: number;
  /** Bytes between racks, as a multiple of what must cross. */
  readonly crossCopies: number;
  readonly duplicates: number;
  readonly refused: number;
  readonly failures: readonly string[];
  readonly schedulerEvents: number;
  readonly schedulerMs: number;
  readonly wallMs: number;
}

export class Simulation {
  readonly queue = new EventQueue();
  readonly hosts: SimHost[] = [];
  readonly net: Network;
  readonly side: SchedulerSide;
  readonly #random: Random;
  #left = 0;
  #islands = 0;
  #away = 0;
  #restartsLeft: number;

  constructor(readonly config: SimConfig) {
    this.#random = seededRandom(config.seed);
    this.net = new Network(config, this.queue, seededRandom(config.seed + 1_000_003));
    this.side = new SchedulerSide(config, this.queue, this.hosts);
    this.#restartsLeft = config.restarts.length;
    this.#populate();
  }

  run(): Outcome {
    const startMs = performance.now();
    const { config, queue } = this;
    for (const host of this.hosts) {
      const atMs = config.topology === "tree" && host.index === 0 ? 0 : this.#random() * config.joinMs;
      queue.at(atMs, () => this.#join(host));
    }
    for (const fault of config.kills) queue.at(fault.atMs, () => this.#kill(fault));
    for (const { atMs, awayMs } of config.restarts) {
      queue.at(atMs, () => {
        this.#restartsLeft -= 1;
        this.side.restart(awayMs);
      });
    }
    if (config.watchMs > 0) this.#watch();
    queue.run(config.endMs, () => this.#left === 0 && this.#away === 0 && this.#restartsLeft === 0);
    return this.#outcome(performance.now() - startMs);
  }

  #populate(): void {
    const { config } = this;
    const ports: HostPorts = {
      net: this.net,
      say: (host, message) => this.side.say(host, message),
      hostOf: (id) => this.hosts[Number(id.slice(1))],
      fixedNeighbours: (host) => this.#parentOf(host),
      onComplete: () => this.#left -= 1,
    };
    for (let index = 0; index < config.hosts; index++) {
      const id = `h${String(index).padStart(6, "0")}`;
      const isLiar = index >= config.hosts - config.liars;
      const host = new SimHost(ports, { id, index, rack: index % config.racks, isLiar });
      host.canSource = config.topology === "tree" ? index === 0 : !isLiar;
      this.hosts.push(host);
      if (!isLiar) this.#left += 1;
    }
  }

  #parentOf({ index }: SimHost): SimHost[] | undefined {
    if (this.config.topology !== "tree") return undefined;
    return index === 0 ? [] : [this.hosts[Math.floor((index - 1) / TREE_FANOUT)]!];
  }

  #join(host: SimHost): void {
    host.start();
    this.side.connect(host);
  }

  #kill({ count, backAfterMs }: SimConfig["kills"][number]): void {
    const candidates = this.hosts.filter((host) => host.isAlive && !host.isComplete && !host.isLiar);
    for (let killed = 0; killed < count && candidates.length > 0; killed++) {
      const host = candidates.splice(Math.floor(this.#random() * candidates.length), 1)[0]!;
      host.kill();
      this.side.gone(host);
      if (backAfterMs === null) {
        this.#left -= 1;
        continue;
      }
      this.#away += 1;
      this.queue.after(backAfterMs, () => {
        this.#away -= 1;
        this.#join(host);
      });
    }
  }

  /** Looks whether the members' graph is in one part. */
  #watch(): void {
    this.queue.after(this.config.watchMs, () => {
      const swarm = this.side.isUp ? this.side.scheduler.swarms.get(SPEC.task_id) : undefined;
      const ids = [...swarm?.members.keys() ?? []];
      const reached = new Set(ids.slice(0, 1));
      for (const id of reached) for (const other of swarm?.neighboursOf(id) ?? []) reached.add(other);
      if (ids.some((id) => !reached.has(id) && !this.#isLiar(id))) this.#islands += 1;
      this.#watch();
    });
  }

  #isLiar(id: string): boolean {
    return this.hosts[Number(id.slice(1))]?.isLiar ?? false;
  }

  #outcome(wallMs: number): Outcome {
    const { config, net, side } = this;
    const wanted = this.hosts.filter((host) => host.isAlive && !host.isLiar);
    const times = wanted.map(({ completeAtMs }) => completeAtMs ?? Infinity).sort((a, b) => a - b);
    const [bound, lastMs, medianMs] = [boundMs(config), times.at(-1) ?? Infinity, times[times.length >> 1] ?? Infinity];
    const sent = this.hosts.reduce((sum, { uplink }) => sum + uplink.link.sentBytes, 0);
    const capacity = this.hosts.reduce((sum, { index }) => sum + config.upRate(index), 0);
    const mean = (of: (host: SimHost) => number) => this.hosts.reduce((sum, host) => sum + of(host), 0) / config.hosts;
    return {
      boundMs: bound,
      lastMs,
      medianMs,
      stretch: lastMs / bound,
      medianStretch: medianMs / bound,
      originCopies: net.origin.sentBytes / config.contentLength,
      waste: (net.count.wasted + net.count.lost) / (config.hosts * net.pieceCount),
      uploadUse: sent / (lastMs * capacity),
      messages: mean(({ messages }) => messages),
      messagesMax: this.hosts.reduce((max, { messages }) => Math.max(max, messages), 0),
      haves: net.count.haves / config.hosts,
      cries: this.hosts.reduce((sum, { cries }) => sum + cries, 0),
      longestIdleMs: wanted.reduce((max, { idleness }) => Math.max(max, idleness.longestMs), 0),
      incomplete: wanted.filter(({ isComplete }) => !isComplete).length,
      wrong: wanted.filter(({ wrongCount }) => wrongCount > 0).length,
      islands: this.#islands,
      crossCopies: config.racks > 1 ? net.count.crossed / ((config.racks - 1) * config.contentLength) : 0,
      duplicates: net.count.duplicates,
      refused: net.count.refused,
      failures: [...new Set(this.hosts.flatMap(({ failure }) => failure ?? []))],
      schedulerEvents: side.events,
      schedulerMs: side.spentMs,
      wallMs,
    };
  }
}

export function simulate(config: SimConfig): Outcome {
  return new Simulation(config).run();
}
