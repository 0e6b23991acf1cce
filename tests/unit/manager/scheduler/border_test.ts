// covers: manager/scheduler/border.ts manager/scheduler/links.ts manager/scheduler/idc_graph.ts
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { Fitness } from "../../../../manager/scheduler/border.ts";
import { LinkChanges } from "../../../../manager/scheduler/link_changes.ts";
import { NeighbourGraph } from "../../../../manager/scheduler/scheduling.ts";
import { seededRandom } from "../../../../peer/core/clock.ts";

/** Members drawn as `idc*count`; their ids are `idc0`, `idc1`, and so on. */
function graphOf(drawn: string, { seed = 1 } = {}) {
  const changes = new LinkChanges();
  const graph = new NeighbourGraph(6, seededRandom(seed), changes);
  const ids: string[] = [];
  for (const group of drawn.split(" ")) {
    const [name = "", count] = group.split("*");
    const idc = name === "none" ? "" : name;
    for (let index = 0; index < Number(count); index++) {
      ids.push(`${name}${index}`);
      graph.add(ids.at(-1)!, { idc, location: "" });
    }
  }
  return { graph, ids, changes };
}

function reachedFrom(graph: NeighbourGraph, id: string): number {
  const reached = new Set([id]);
  for (const at of reached) for (const other of graph.neighboursOf(at)) reached.add(other);
  return reached.size;
}

Deno.test("up to 32 members everybody carries, whatever the idcs", () => {
  const { graph, ids } = graphOf("a*12 b*12 none*8");
  for (const id of ids) assertEquals([graph.carriersOf(id), graph.neighboursOf(id).length], [null, 31]);
});

for (
  const [drawn, want] of [
    ["none*60", { none: null }],
    ["a*60", { a: 8 }],
    ["a*40 b*20", { a: 8, b: 8 }],
    ["a*1 b*59", { a: 1, b: 8 }],
    ["none*30 b*30", { none: 8, b: 8 }],
    ["a*10 b*10 c*10 d*10 e*10 f*10 g*10 h*10", { a: 4, d: 4, h: 4 }],
  ] as [string, Record<string, number | null>][]
) {
  Deno.test(`of ${drawn} these carry: ${JSON.stringify(want)}`, () => {
    const { graph, ids } = graphOf(drawn);
    for (const [name, count] of Object.entries(want)) {
      assertEquals(graph.carriersOf(`${name}0`)?.length ?? null, count);
    }
    assertEquals(reachedFrom(graph, ids[0]!), ids.length);
  });
}

Deno.test("with more idcs than can all know each other each carrier knows some of the others", () => {
  const { graph, ids } = graphOf(Array.from({ length: 60 }, (_, index) => `i${index}x*4`).join(" "));
  assertEquals(reachedFrom(graph, ids[0]!), 240);
  for (const id of ids) {
    assertEquals(graph.carriersOf(id)!.length, 2);
    const far = graph.neighboursOf(id).filter((other) => other.split("x")[0] !== id.split("x")[0]);
    assert(graph.mayCross(id) ? far.length >= 8 && far.length <= 48 : far.length === 0, `${far.length}`);
  }
});

Deno.test("another carries when one leaves, and the others hear of it", () => {
  const { graph, changes } = graphOf("a*40 b*40");
  changes.take();
  const before = graph.carriersOf("a0")!;
  graph.remove(before[0]!);
  const after = graph.carriersOf(before[1]!)!;
  assertEquals([after.length, after.filter((id) => before.includes(id)).length], [8, 7]);
  const told = changes.take().filter(({ carriers }) => carriers).map(({ hostId }) => hostId);
  assertEquals(told, after);
});

Deno.test("a host that wants a part carries only where nobody else can, a seed peer before all", () => {
  const changes = new LinkChanges();
  const graph = new NeighbourGraph(6, seededRandom(1), changes);
  const add = (id: string, fitness: Fitness) => graph.add(id, { idc: id[0]!, location: "" }, fitness);
  for (let index = 0; index < 40; index++) add(`a${index}`, index < 30 ? 0 : 1);
  for (let index = 0; index < 3; index++) add(`b${index}`, 0);
  assertEquals(graph.carriersOf("a0")!.every((id) => Number(id.slice(1)) >= 30), true);
  assertEquals(graph.carriersOf("b0"), ["b0", "b1", "b2"]);
  add("a-seed", 2);
  assertEquals(graph.carriersOf("a0")!.includes("a-seed"), true);
  const carrier = graph.carriersOf("a0")!.find((id) => id !== "a-seed")!;
  graph.setFitness(carrier, 0);
  assertEquals([graph.carriersOf("a0")!.includes(carrier), graph.carriersOf("a0")!.length], [false, 8]);
});

Deno.test("members that all fall away but a few all know each other again, and all carry", () => {
  const { graph, ids } = graphOf("a*30 b*30 c*3");
  for (const id of ids.slice(0, 50)) graph.remove(id);
  for (const id of ids.slice(50)) {
    assertEquals([graph.carriersOf(id), graph.neighboursOf(id).length], [null, 12]);
  }
});

Deno.test("hosts that do not carry are linked across idcs only as a last resort", () => {
  const { graph } = graphOf("a*40 b*40");
  const plain = (name: string) =>
    Array.from({ length: 40 }, (_, i) => `${name}${i}`).find((id) => !graph.mayCross(id))!;
  const [a, b] = [plain("a"), plain("b")];
  assertEquals([graph.connect(a, b), graph.connect(a, b, { anywhere: true }), graph.isLinked(b, a)], [
    false,
    true,
    true,
  ]);
});

Deno.test("whoever comes and goes, in whatever idc: no island, edges told truly, few carriers who know each other", () => {
  const step = fc.tuple(fc.constantFrom("add", "add", "add", "remove", "part", "ban"), fc.nat(119), fc.nat(119));
  const property = fc.property(
    fc.array(step, { maxLength: 300, size: "max" }),
    fc.integer({ min: 1, max: 40 }),
    fc.nat(),
    (
      steps,
      idcs,
      seed,
    ) => {
      const changes = new LinkChanges();
      const graph = new NeighbourGraph(6, seededRandom(seed), changes);
      const told = new Map<string, Set<string>>();
      const carriersTold = new Map<string, readonly string[] | null>();
      const idcOf = (id: string) => Number(id.slice(1)) % idcs;
      const place = (id: string) => ({ idc: idcOf(id) === 0 ? "" : `${idcOf(id)}`, location: "" });
      let bans = 0;
      for (const [kind, a, b] of steps) {
        const id = `h${a}`;
        if (kind === "add" && !graph.has(id)) {
          graph.add(id, place(id), (b % 3) as Fitness);
          carriersTold.set(id, graph.carriersOf(id));
        }
        if (kind === "remove") graph.remove(id);
        if (kind === "part") graph.setFitness(id, (b % 3) as Fitness);
        if (kind === "ban" && bans++ < 4) graph.ban(id, `h${b}`);
        for (const { hostId, add, remove, carriers } of changes.take()) {
          const known = told.get(hostId) ?? new Set();
          told.set(hostId, known);
          for (const other of remove) assert(known.delete(other));
          for (const other of add) assert(!known.has(other) && known.add(other));
          if (carriers) carriersTold.set(hostId, graph.carriersOf(hostId));
        }
      }
      const ids = Array.from({ length: 120 }, (_, index) => `h${index}`).filter((id) => graph.has(id));
      for (const id of ids) {
        const neighbours = graph.neighboursOf(id);
        assertEquals(neighbours, [...told.get(id) ?? []].sort());
        const carriers = graph.carriersOf(id);
        // A host that carries hears of each change, any other one that it does not.
        if (carriers === null || graph.mayCross(id)) assertEquals(carriersTold.get(id), carriers);
        else assertEquals(carriersTold.get(id)?.includes(id), false);
        if (carriers !== null) assert(carriers.length >= 1 && carriers.length <= 8);
        for (const other of neighbours) assert(graph.isLinked(other, id) && !graph.isBanned(id, other));
      }
      if (ids.length > 7) assertEquals(reachedFrom(graph, ids[0]!), ids.length);
    },
  );
  fc.assert(property, { numRuns: 60 });
});

Deno.test("the graph depends on who came in which order, and on chance, but on nothing else", () => {
  const edges = () => {
    const { graph, ids } = graphOf("b*40 a*50 none*9", { seed: 7 });
    for (const id of ids.filter((_, index) => index % 4 === 0)) graph.remove(id);
    return ids.map((id) => `${id}: ${graph.neighboursOf(id)} ${graph.carriersOf(id)}`);
  };
  assertEquals(edges(), edges());
});
