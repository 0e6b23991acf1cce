// covers: peer/task/piece_picker.ts
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { Bitmap } from "../../../../peer/core/bitmap.ts";
import { seededRandom } from "../../../../peer/core/clock.ts";
import { PiecePicker } from "../../../../peer/task/piece_picker.ts";

const SEED = Deno.env.get("SEED");
const OPTIONS = SEED === undefined ? {} : { seed: Number(SEED) };
const PIECES = 30;
const HOSTS = ["a", "b", "c", "d", "e"];

function pickerOf(seed: number, budget: { duplicatesMax?: number; endGameMax?: number } = {}): PiecePicker {
  const made = new PiecePicker({ pieceCount: PIECES, random: seededRandom(seed), ...budget });
  made.want(0, PIECES);
  return made;
}

function bitmapOf(numbers: readonly number[]): Bitmap {
  const bitmap = new Bitmap(PIECES);
  for (const number of numbers) bitmap.add(number);
  return bitmap;
}

const offers = fc.array(fc.uniqueArray(fc.nat(PIECES - 1), { maxLength: PIECES }), {
  minLength: HOSTS.length,
  maxLength: HOSTS.length,
});
const step = fc.record({
  kind: fc.constantFrom("pick", "pick", "pick", "arrive", "fail", "lose", "come", "hedge"),
  host: fc.nat(HOSTS.length - 1),
  at: fc.nat(100),
});

/** A picker, and beside it what it should know. */
class Model {
  readonly flights: { number: number; hostId: string }[] = [];
  readonly offered = new Map<string, readonly number[]>();
  duplicates = 0;
  /** Of these, such as `pick` asked for. */
  endGame = 0;
  requests = 0;

  constructor(readonly picker: PiecePicker) {}

  offer(hostId: string, numbers: readonly number[]): void {
    this.offered.set(hostId, numbers);
    this.picker.offer(hostId, bitmapOf(numbers));
  }

  lose(hostId: string): void {
    this.offered.delete(hostId);
    this.picker.lost(hostId);
    for (const flight of this.flights.filter((one) => one.hostId === hostId)) this.end(flight, false);
  }

  end(flight: { number: number; hostId: string }, isHeld: boolean): void {
    this.flights.splice(this.flights.indexOf(flight), 1);
    if (isHeld) this.picker.held(flight.number);
    this.picker.failed(flight.number, flight.hostId);
  }

  hedge(hostId: string, number: number): void {
    if (!this.picker.hedge(number, hostId)) return;
    this.duplicates += 1;
    this.flights.push({ number, hostId });
  }

  pick(hostId: string): boolean {
    const picked = this.picker.pick(hostId);
    if (picked === null) return false;
    const { number, duplicate } = picked;
    const before = this.flights.filter((flight) => flight.number === number);
    assert(this.offered.get(hostId)!.includes(number) && !this.picker.isHeld(number));
    assertEquals(before.length, duplicate ? 1 : 0);
    if (duplicate) {
      this.duplicates += 1;
      this.endGame += 1;
      const idle = [...this.offered.values()].flat().filter((other) =>
        !this.picker.isHeld(other) && !this.flights.some((flight) => flight.number === other)
      );
      assertEquals(idle, [], "a piece is asked twice while others are not asked at all");
    }
    this.requests += 1;
    this.flights.push({ number, hostId });
    return true;
  }
}

Deno.test("never a piece asked twice outside the end game, and duplicates stay within the budget", () => {
  const budgets = fc.option(fc.record({ duplicatesMax: fc.nat(6), endGameMax: fc.nat(6) }), { nil: undefined });
  const all = [offers, fc.array(step, { maxLength: 150 }), budgets, fc.integer()] as const;
  const property = fc.property(...all, (offered, steps, budget, seed) => {
    const model = new Model(pickerOf(seed, budget));
    for (const [index, numbers] of offered.entries()) model.offer(HOSTS[index]!, numbers);
    for (const { kind, host, at } of steps) {
      const flight = model.flights[at % Math.max(1, model.flights.length)];
      if (kind === "pick") model.pick(HOSTS[host]!);
      else if (kind === "come") model.offer(HOSTS[host]!, offered[(host + at) % HOSTS.length]!);
      else if (kind === "lose") model.lose(HOSTS[host]!);
      else if (flight === undefined) continue;
      else if (kind === "hedge") model.hedge(HOSTS[host]!, flight.number);
      else model.end(flight, kind === "arrive");
    }
    assert(model.duplicates <= (budget?.duplicatesMax ?? Math.max(2, Math.ceil(PIECES / 100))), `${model.duplicates}`);
    assert(model.endGame <= (budget?.endGameMax ?? Math.floor(PIECES / 100)), `${model.endGame} in the end game`);
  });
  fc.assert(property, { numRuns: 200, ...OPTIONS });
});

Deno.test("no starvation: whatever is offered and fails now and then, everything offered is held in the end", () => {
  const property = fc.property(offers, fc.array(fc.boolean(), { minLength: 7, maxLength: 40 }), fc.integer(), (
    offered,
    fates,
    seed,
  ) => {
    const model = new Model(pickerOf(seed));
    for (const [index, numbers] of offered.entries()) model.offer(HOSTS[index]!, numbers);
    const all = new Set(offered.flat());
    // One request in two at the latest succeeds.
    for (let round = 0; round < 20 * PIECES && model.picker.heldCount < all.size; round++) {
      const started = HOSTS.map((hostId) => model.pick(hostId));
      assert(started.some(Boolean) || model.flights.length > 0, "pieces are missing, offered, and not asked for");
      for (const flight of [...model.flights]) {
        if (!model.flights.includes(flight)) continue;
        model.end(flight, round % 2 === 0 || fates[(round + flight.number) % fates.length]!);
      }
    }
    assertEquals(model.picker.heldCount, all.size);
  });
  fc.assert(property, { numRuns: 100, ...OPTIONS });
});

Deno.test("what is asked does not depend on the order in which neighbours came", () => {
  const order = fc.shuffledSubarray(HOSTS, { minLength: HOSTS.length });
  const property = fc.property(offers, order, fc.integer(), (offered, came, seed) => {
    const decide = (hosts: readonly string[]) => {
      const model = new Model(pickerOf(seed));
      for (const hostId of hosts) model.offer(hostId, offered[HOSTS.indexOf(hostId)]!);
      for (let round = 0; round < 3; round++) for (const hostId of HOSTS) model.pick(hostId);
      return model.flights;
    };
    assertEquals(decide(came), decide(HOSTS));
  });
  fc.assert(property, { numRuns: 100, ...OPTIONS });
});
