// covers: manager/scheduler/scheduler.ts manager/scheduler/swarm.ts manager/scheduler/starving.ts
import { assert, assertEquals } from "@std/assert";
import { seededRandom } from "../../../../peer/core/clock.ts";
import { CONFIG, digests, metaOf, SPEC, TASK, World } from "./world.ts";

const HOSTS = [...Array.from({ length: 58 }, (_, index) => `h${index}`), "seed1", "seed2"];
const PIECES = 24;
const CODES = [
  undefined,
  undefined,
  "network",
  "source_refused",
  "source_not_found",
  "content_changed",
  "canceled",
  "timeout",
  "nonsense",
];

/** What a host believes from what it was told. */
interface Belief {
  neighbours: Set<string>;
  generation: string | null;
  digests: Set<number>;
}

class Fuzz {
  readonly world: World;
  readonly #random: () => number;
  readonly #beliefs = new Map<string, Belief>();
  #orders = 0;

  constructor(seed: number) {
    this.world = new World({ seed });
    this.#random = seededRandom(seed * 7919);
  }

  step(): void {
    const { world } = this;
    const id = this.#pick(HOSTS);
    if (!world.scheduler.hosts.has(id)) world.connect(id, { idc: this.#pick(["", "x", "y"]) });
    this.#act(id, this.#random());
    this.#listen();
    this.#check();
  }

  end(): void {
    for (const id of HOSTS) this.world.gone(id);
    assertEquals([this.world.scheduler.tasks.size, this.world.scheduler.swarms.size], [0, 0]);
  }

  #act(id: string, dice: number): void {
    const { world } = this;
    const meta = metaOf(this.#pick([PIECES, PIECES, PIECES, 0]), {
      generation: this.#pick(["g1", "g1", "g1", "g2"]),
      ranges: this.#random() < 0.8,
    });
    if (dice < 0.2) this.#join(id, meta);
    else if (dice < 0.25) world.leave(id);
    else if (dice < 0.3) world.gone(id);
    else if (dice < 0.35) world.meta(id, meta);
    else if (dice < 0.6) this.#work(id);
    else if (dice < 0.65) world.starving(id, [this.#piece(), this.#piece(), 99], this.#generation());
    else if (dice < 0.68) world.say(id, { type: "bad_peer", task_id: TASK, host_id: this.#pick(HOSTS), piece: 1 });
    else if (dice < 0.73) world.complete(id, this.#generation());
    else if (dice < 0.78) world.held(id, meta, this.#random() < 0.5 ? { complete: false, piece_count: 3 } : {});
    else if (dice < 0.8) world.say(id, { type: "dropped", task_ids: [TASK, "b".repeat(64)] });
    else if (dice < 0.9) world.wait(this.#pick([200, 1_000, 12_000]));
    else if (dice < 0.96) world.flush();
    else this.#order(id);
  }

  #join(id: string, meta: ReturnType<typeof metaOf>): void {
    this.world.join(id, {
      ...(this.#random() < 0.3 ? { meta, piece_count: Math.floor(this.#random() * 5) } : {}),
      can_source: this.#random() < 0.8,
      anonymous: this.#random() < 0.5,
      partial: this.#random() < 0.1,
    });
  }

  /** Mostly what a lease asks for; sometimes anything. */
  #work(id: string): void {
    const leases = this.world.swarm()?.leases.filter(({ hostId }) => hostId === id) ?? [];
    const lease = leases[0];
    if (lease === undefined || this.#random() < 0.1) {
      return void this.world.pieces(id, this.#piece(), 2, this.#generation());
    }
    if (this.#random() < 0.3) this.world.leaseEnd(id, lease.id, this.#pick(CODES));
    else this.world.pieces(id, lease.first, Math.max(1, lease.count), this.#generation());
  }

  #order(id: string): void {
    const { world } = this;
    const kind = this.#pick(["preheat", "cancel", "drop", "progress", "progress"] as const);
    const orderId = `o${kind === "preheat" ? ++this.#orders : Math.ceil(this.#random() * this.#orders)}`;
    if (kind === "preheat") {
      const scope = this.#pick(["all_peers", "all_seed_peers", "single_seed_peer"] as const);
      world.apply({ type: "preheat", orderId, task: { ...SPEC, headers: {} }, scope });
    } else if (kind === "cancel") world.apply({ type: "cancel", orderId });
    else if (kind === "drop") world.apply({ type: "drop", taskId: TASK });
    else {
      const order_id = world.sent(id, "order").at(-1)?.order_id ?? orderId;
      const state = this.#pick(["running", "success", "failure"] as const);
      const counts = { content_length: null, done: 0, from_source: 0, from_peers: 0 };
      world.say(id, { type: "order_progress", order_id, state, ...counts });
    }
  }

  /** Takes in what was sent, as a host does. */
  #listen(): void {
    for (const effect of this.world.effects.splice(0)) {
      if (effect.type !== "send") continue;
      const { hostId, message } = effect;
      if (message.type === "task") {
        const neighbours = new Set(message.neighbours.map(({ host_id }) => host_id));
        this.#beliefs.set(hostId, { neighbours, generation: message.meta?.generation ?? null, digests: new Set() });
      }
      const belief = this.#beliefs.get(hostId);
      if (belief === undefined) continue;
      if (message.type === "neighbours") {
        for (const id of message.remove) assert(belief.neighbours.delete(id), `${hostId} never knew ${id}`);
        for (const { host_id } of message.add) {
          assert(!belief.neighbours.has(host_id), `${hostId} is told of ${host_id} twice`);
          belief.neighbours.add(host_id);
        }
      }
      if (message.type === "meta") Object.assign(belief, { generation: message.meta.generation, digests: new Set() });
      if (message.type === "digests" && message.generation === belief.generation) {
        for (const [number] of message.pieces) belief.digests.add(number);
      }
    }
  }

  #check(): void {
    const { scheduler } = this.world;
    const swarm = scheduler.swarms.get(TASK);
    if (swarm === undefined) return;
    const { members, task } = swarm;
    assert(members.size > 0);
    const covered = new Set<number>();
    for (const lease of swarm.leases) {
      assert(members.has(lease.hostId), `${lease.hostId} has a lease and is no member`);
      if (lease.extra) continue;
      for (const number of lease.left) {
        assert(!covered.has(number), `piece ${number} is leased twice`);
        covered.add(number);
      }
    }
    assert(swarm.leases.filter(({ extra }) => !extra).length <= CONFIG.sourceConnectionsPerTask + 1);
    for (const [id, { leaseCount }] of members) {
      assertEquals(leaseCount, swarm.leases.filter(({ hostId }) => hostId === id).length);
      assert(leaseCount <= 2, `${id} has ${leaseCount} leases`);
      const neighbours = swarm.neighboursOf(id);
      assertEquals([...this.#beliefs.get(id)!.neighbours].sort(), neighbours, `neighbours of ${id}`);
      for (const other of neighbours) {
        assert(scheduler.hosts.has(other) && other !== id);
        if (members.has(other)) assert(swarm.neighboursOf(other).includes(id), `${id}-${other} is one-sided`);
        else assert(task.isComplete(other), `${other} is a neighbour and holds nothing`);
      }
    }
  }

  #generation(): string {
    return this.world.swarm()?.task.meta?.generation ?? "g1";
  }

  #piece(): number {
    return Math.floor(this.#random() * PIECES);
  }

  #pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random() * items.length)]!;
  }
}

/** One seed from the environment, or many. */
const SEEDS = Deno.env.get("SEED") === undefined
  ? Array.from({ length: 6 }, (_, index) => index + 1)
  : [Number(Deno.env.get("SEED"))];

Deno.test("whatever hosts say: nothing throws, leases do not overlap, hosts believe what is so", () => {
  for (const seed of SEEDS) {
    const fuzz = new Fuzz(seed);
    for (let step = 0; step < 500; step++) {
      try {
        fuzz.step();
      } catch (cause) {
        throw new Error(`step ${step} of SEED=${seed}: ${cause instanceof Error ? cause.message : cause}`, { cause });
      }
    }
    fuzz.end();
  }
});

Deno.test("the same events in another order of hosts lead to the same leases and seeds", () => {
  const decide = (order: readonly string[]) => {
    const world = new World();
    for (const id of order) world.held(id, metaOf(8), { complete: false, piece_count: 2 });
    world.join("reader");
    for (const id of order) world.connect(`x${id}`);
    world.apply({ type: "preheat", orderId: "o", task: { ...SPEC, headers: {} }, scope: "single_seed_peer" });
    return [
      world.leases(),
      [...world.inbox].filter(([, sent]) => sent.some(({ type }) => type === "order")).map(([id]) => id),
    ];
  };
  assertEquals(decide(["a", "b", "c", "seed1", "seed2"]), decide(["seed2", "c", "seed1", "b", "a"]));
  assertEquals(digests(0, 1).length, 1);
});
