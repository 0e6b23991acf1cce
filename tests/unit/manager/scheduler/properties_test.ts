// covers: manager/scheduler/leases.ts manager/scheduler/lease_desk.ts manager/scheduler/scheduling.ts
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { LeaseBook } from "../../../../manager/scheduler/leases.ts";
import { LinkChanges } from "../../../../manager/scheduler/link_changes.ts";
import { NeighbourGraph } from "../../../../manager/scheduler/scheduling.ts";
import { seededRandom } from "../../../../peer/core/clock.ts";
import { CONFIG, metaOf, World } from "./world.ts";

const SEED = Deno.env.get("SEED");
const OPTIONS = SEED === undefined ? {} : { seed: Number(SEED) };
const PIECES = 40;
const PIECE_LENGTH = 256 * 1024;

const bookStep = fc.record({
  kind: fc.constantFrom("grant", "grant", "starve", "deliver", "deliver", "end", "probe"),
  host: fc.constantFrom("a", "b", "c", "d"),
  number: fc.nat(PIECES - 1),
  afterMs: fc.nat(5_000),
});

Deno.test("whatever is leased and delivered: no piece has two first readers, and every lease that ends leaves nothing", () => {
  fc.assert(
    fc.property(fc.array(bookStep, { maxLength: 120 }), (steps) => {
      const book = new LeaseBook();
      const done = new Set<number>();
      const isDone = (number: number) => done.has(number);
      book.setLayout({ contentLength: PIECES * PIECE_LENGTH, pieceLength: PIECE_LENGTH }, { ranges: true });
      let nowMs = 0;
      for (const [index, { kind, host, number, afterMs }] of steps.entries()) {
        nowMs += afterMs;
        const facts = { id: index + 1, hostId: host, generation: "g", extra: kind === "starve" };
        if (kind === "grant") {
          const run = book.nextRun(isDone, { remaining: PIECES - done.size, readers: 4, isLone: false });
          if (run !== undefined) book.grant(facts, run, nowMs);
        } else if (kind === "starve") {
          const run = book.starvingRun([...done].sort((a, b) => a - b), { share: 1, stale: () => number % 2 === 0 });
          if (run !== undefined) book.grant(facts, run, nowMs);
        } else if (kind === "deliver") {
          for (const lease of book.delivered(host, number, nowMs)) assertEquals(lease.left.size, 0);
          done.add(number);
        } else if (kind === "end") book.end(book.of(host)[0]?.id ?? -1);
        else if (book.size === 0) book.end(book.probe(index + 1, host, nowMs).id);
        assertFirstReadersApart(book);
      }
      for (const { id } of [...book.live]) book.end(id);
      const left = Array.from({ length: PIECES }, (_, piece) => piece).filter((piece) => book.isLeased(piece));
      assertEquals([book.size, left, book.pendingCount], [0, [], 0]);
    }),
    { numRuns: 150, ...OPTIONS },
  );
});

function assertFirstReadersApart(book: LeaseBook): void {
  const covered = new Set<number>();
  for (const { left, extra } of book.live) {
    if (extra) continue;
    for (const number of left) {
      assert(!covered.has(number), `piece ${number} has two first readers`);
      covered.add(number);
    }
  }
}

Deno.test("every lease ends: hosts that fall silent lose theirs, and those that answer finish the content", () => {
  const property = fc.property(
    fc.integer({ min: 2, max: 45 }),
    fc.array(fc.boolean(), { minLength: 45, maxLength: 45 }),
    fc.integer(),
    (hosts, silences, seed) => {
      const world = new World({ seed }).begin("h0", metaOf(PIECES)).pieces("h0", 0, 1);
      for (let index = 1; index < hosts; index++) world.join(`h${index}`);
      // The last one always answers.
      const isSilent = (id: string) => id !== `h${hosts - 1}` && silences[Number(id.slice(1))] === true;
      const everLeased = new Set<number>();
      for (let round = 0; round < 3_000 && !isKnown(world); round++) {
        for (const { id, hostId, first, count } of world.swarm()!.leases) {
          everLeased.add(id);
          if (!isSilent(hostId)) world.pieces(hostId, first, Math.max(1, count)).leaseEnd(hostId, id);
        }
        world.wait(1_000);
      }
      assert(isKnown(world), `${world.swarm()!.task.digests.count} of ${PIECES} pieces known`);
      world.wait(600_000);
      assertEquals(world.leases().filter((lease) => !isSilent(lease.split(":")[0]!)), []);
      for (let index = 0; index < hosts; index++) world.gone(`h${index}`);
      assertEquals([world.scheduler.swarms.size, everLeased.size > 0], [0, true]);
    },
  );
  fc.assert(property, { numRuns: 25, ...OPTIONS });
});

function isKnown(world: World): boolean {
  return world.swarm()!.task.digests.isFull;
}

Deno.test("never an island: whoever leaves, every member still reaches every other one", () => {
  const step = fc.tuple(fc.boolean(), fc.nat(199));
  const property = fc.property(
    fc.array(step, { minLength: 100, maxLength: 400, size: "max" }),
    fc.nat(),
    (steps, seed) => {
      const graph = new NeighbourGraph(CONFIG.neighbours, seededRandom(seed), new LinkChanges());
      const ids = new Set(Array.from({ length: 120 }, (_, index) => `h${index}`));
      for (const id of ids) graph.add(id, { idc: `${id.length}`, location: "" });
      for (const [isJoin, number] of steps) {
        const id = `h${number}`;
        if (isJoin) graph.add(id, { idc: "", location: "x" });
        else graph.remove(id);
        if (isJoin) ids.add(id);
        else ids.delete(id);
        const reached = new Set([...ids].slice(0, 1));
        for (const at of reached) for (const other of graph.neighboursOf(at)) reached.add(other);
        assertEquals(reached.size, ids.size);
      }
    },
  );
  fc.assert(property, { numRuns: 15, ...OPTIONS });
});

Deno.test("who reads what does not depend on the order in which hosts came, or held", () => {
  const others = Array.from({ length: 20 }, (_, index) => `m${index}`);
  const decide = (order: readonly string[]) => {
    // What is leased to whom while hosts come depends on who is there: all come before the content is known.
    const world = new World().join("first");
    for (const id of order) world.join(id);
    world.meta("first", metaOf(PIECES));
    world.pieces("first", 0, 4);
    const seen: string[] = [];
    for (let round = 0; round < 12; round++) {
      seen.push(...world.leases());
      for (const { hostId, first, count } of world.swarm()!.leases) world.pieces(hostId, first, count);
    }
    return [seen, world.swarm()!.neighboursOf("m0")];
  };
  const expected = decide(others);
  const orders = fc.shuffledSubarray(others, { minLength: others.length });
  fc.assert(fc.property(orders, (order) => assertEquals(decide(order), expected)), { numRuns: 20, ...OPTIONS });
});
