// covers: manager/scheduler/swarm.ts manager/scheduler/lease_desk.ts manager/scheduler/starving.ts
/**
 * A swarm whose hosts do what daemons do, in rounds: read leases from an
 * origin, fetch from the neighbours they were told of, say when they starve.
 */
import { assert, assertEquals } from "@std/assert";
import { seededRandom } from "../../../../peer/core/clock.ts";
import { metaOf, type World, World as SchedulerWorld } from "./world.ts";

const ROUND_MS = 100;
const FETCHES_PER_ROUND = 4;

interface SimHost {
  readonly id: string;
  readonly canSource: boolean;
  readonly held: Set<number>;
  readonly digests: Set<number>;
  readonly neighbours: Set<string>;
  readonly leases: Map<number, number[]>;
  meta: ReturnType<typeof metaOf> | null;
  read: number;
  idleMs: number;
  failed: string | null;
  complete: boolean;
}

class Sim {
  readonly world: World;
  readonly hosts = new Map<string, SimHost>();
  originReads = 0;
  readonly #random: () => number;

  constructor(readonly pieces: number, readonly options: { seed?: number; ranges?: boolean } = {}) {
    this.world = new SchedulerWorld({ seed: options.seed ?? 1 });
    this.#random = seededRandom(options.seed ?? 1);
  }

  add(id: string, { canSource = true, anonymous = false } = {}): void {
    this.hosts.set(id, {
      id,
      canSource,
      held: new Set(),
      digests: new Set(),
      neighbours: new Set(),
      leases: new Map(),
      meta: null,
      read: 0,
      idleMs: 0,
      failed: null,
      complete: false,
    });
    this.world.join(id, { can_source: canSource, anonymous });
    this.#deliver();
  }

  kill(id: string): void {
    this.hosts.delete(id);
    this.world.gone(id);
    this.#deliver();
  }

  /** Runs until everybody is complete. @returns rounds */
  run(roundsMax: number, between: (round: number) => void = () => {}): number {
    for (let round = 1; round <= roundsMax; round++) {
      between(round);
      for (const host of [...this.hosts.values()]) this.#act(host);
      this.world.flush().wait(ROUND_MS);
      this.#deliver();
      if ([...this.hosts.values()].every(({ complete }) => complete)) return round;
    }
    const left = [...this.hosts.values()].filter(({ complete }) => !complete).map(({ id, held }) =>
      `${id}:${held.size}`
    );
    throw new Error(
      `not complete after ${roundsMax} rounds: ${left.join(" ")}, leases ${this.world.leases().join(" ")}`,
    );
  }

  #act(host: SimHost): void {
    if (host.complete || host.failed !== null) return;
    const before = host.held.size;
    for (const [leaseId, left] of [...host.leases]) this.#read(host, leaseId, left);
    for (let fetch = 0; fetch < FETCHES_PER_ROUND && host.meta !== null; fetch++) this.#fetch(host);
    host.idleMs = host.held.size > before || host.leases.size > 0 ? 0 : host.idleMs + ROUND_MS;
    if (host.meta !== null && host.idleMs >= 300 && host.idleMs % 1000 === 300) {
      const missing = Array.from({ length: this.pieces }, (_, number) => number).filter((n) => !host.held.has(n));
      this.world.starving(host.id, missing.slice(0, 64));
    }
    if (host.meta !== null && host.held.size === this.pieces) {
      host.complete = true;
      this.world.complete(host.id);
    }
    this.#deliver();
  }

  /** One piece of a lease from the origin. */
  #read(host: SimHost, leaseId: number, left: number[]): void {
    const number = left.shift();
    if (number !== undefined) {
      if (!host.held.has(number)) this.originReads += 1;
      host.held.add(number);
      host.digests.add(number);
      this.world.pieces(host.id, number, 1);
    }
    if (left.length > 0) return;
    host.leases.delete(leaseId);
    this.world.leaseEnd(host.id, leaseId);
  }

  /** Any piece that a neighbour has and whose digest is known. */
  #fetch(host: SimHost): void {
    const offers = [...host.neighbours].flatMap((id) => [...this.hosts.get(id)?.held ?? []]);
    const wanted = offers.filter((number) => !host.held.has(number) && host.digests.has(number));
    const number = wanted[Math.floor(this.#random() * wanted.length)];
    if (number !== undefined) host.held.add(number);
  }

  #deliver(): void {
    for (const effect of this.world.effects.splice(0)) {
      const host = effect.type === "send" ? this.hosts.get(effect.hostId) : undefined;
      if (host === undefined || effect.type !== "send") continue;
      const { message } = effect;
      if (message.type === "task") {
        host.meta = message.meta;
        for (const { host_id } of message.neighbours) host.neighbours.add(host_id);
      } else if (message.type === "meta") host.meta = message.meta;
      else if (message.type === "neighbours") {
        for (const { host_id } of message.add) host.neighbours.add(host_id);
        for (const id of message.remove) host.neighbours.delete(id);
      } else if (message.type === "digests") { for (const [number] of message.pieces) host.digests.add(number); }
      else if (message.type === "failed") host.failed = message.error.code;
      else if (message.type === "revoke") host.leases.delete(message.lease_id);
      else if (message.type === "lease") this.#lease(host, message);
    }
  }

  #lease(host: SimHost, { lease_id, generation, first, count }: {
    lease_id: number;
    generation: string | null;
    first: number;
    count: number;
  }): void {
    if (generation !== null) {
      return void host.leases.set(lease_id, Array.from({ length: count }, (_, index) => first + index));
    }
    host.meta = metaOf(this.pieces, { ranges: this.options.ranges ?? true });
    const covered = host.meta.ranges ? Math.min(4, this.pieces) : this.pieces;
    host.leases.set(lease_id, Array.from({ length: covered }, (_, index) => index));
    this.world.meta(host.id, host.meta);
    this.#deliver();
  }
}

for (const [hosts, pieces] of [[1, 40], [2, 40], [8, 64], [40, 100], [70, 100]] as const) {
  Deno.test(`${hosts} hosts all get ${pieces} pieces, the origin sends each once`, () => {
    const sim = new Sim(pieces);
    for (let index = 0; index < hosts; index++) sim.add(`h${index}`);
    sim.run(600);
    assertEquals(sim.originReads, pieces);
  });
}

Deno.test("many hosts read the origin, none of them everything", () => {
  const sim = new Sim(256);
  for (let index = 0; index < 16; index++) sim.add(`h${index}`);
  const readers = new Set<string>();
  sim.run(600, () => sim.world.swarm()!.leases.forEach(({ hostId }) => readers.add(hostId)));
  assert(readers.size >= 12, `${readers.size} readers`);
});

Deno.test("an origin without ranges is read once", () => {
  const sim = new Sim(60, { ranges: false });
  for (let index = 0; index < 10; index++) sim.add(`h${index}`);
  sim.run(600);
  assertEquals(sim.originReads, 60);
});

Deno.test("hosts that cannot read the origin get everything from those that can", () => {
  const sim = new Sim(60);
  sim.add("reader");
  for (let index = 0; index < 10; index++) sim.add(`h${index}`, { canSource: false });
  sim.run(600);
  assertEquals(sim.originReads, 60);
});

for (const seed of [1, 2, 3, 4, 5, 6]) {
  Deno.test(`readers that die take little with them, seed ${seed}`, () => {
    const sim = new Sim(120, { seed });
    for (let index = 0; index < 12; index++) sim.add(`h${index}`);
    sim.run(900, (round) => {
      if (round % 4 !== 0 || sim.hosts.size <= 6) return;
      const victim = sim.world.swarm()?.leases[0]?.hostId;
      if (victim !== undefined) sim.kill(victim);
    });
    assert(sim.originReads <= 120 * 1.3, `${sim.originReads} of 120`);
  });
}

Deno.test("joiners in waves, above and below the mesh, all finish; late ones read nothing", () => {
  const sim = new Sim(80);
  for (let index = 0; index < 10; index++) sim.add(`h${index}`);
  sim.run(900, (round) => {
    if (round % 3 === 0 && round < 60) { for (let index = 0; index < 4; index++) sim.add(`r${round}-${index}`); }
  });
  assertEquals(sim.originReads, 80);
  const readsBefore = sim.originReads;
  for (const id of sim.hosts.keys()) sim.world.leave(id);
  sim.add("late");
  sim.run(100);
  assertEquals(sim.originReads, readsBefore);
});

Deno.test("when a seed takes part it alone reads", () => {
  const sim = new Sim(60);
  sim.add("seed1");
  for (let index = 0; index < 8; index++) sim.add(`h${index}`);
  const readers = new Set<string>();
  sim.run(600, () => sim.world.swarm()!.leases.forEach(({ hostId }) => readers.add(hostId)));
  assertEquals([[...readers], sim.originReads], [["seed1"], 60]);
});
