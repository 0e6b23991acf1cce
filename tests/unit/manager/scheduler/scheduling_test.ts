import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { LinkChanges } from "../../../../manager/scheduler/link_changes.ts";
import { MESH_MAX } from "../../../../manager/scheduler/idc_graph.ts";
import type { Place } from "../../../../manager/scheduler/links.ts";
import { NeighbourGraph } from "../../../../manager/scheduler/scheduling.ts";
import { seededRandom } from "../../../../peer/core/clock.ts";

const NOWHERE: Place = { idc: "", location: "" };

function graphOf(count: number, { degree = 12, seed = 1, place = (_: number): Place => NOWHERE } = {}) {
  const changes = new LinkChanges();
  const graph = new NeighbourGraph(degree, seededRandom(seed), changes);
  const ids = Array.from({ length: count }, (_, index) => `h${String(index).padStart(4, "0")}`);
  for (const [index, id] of ids.entries()) graph.add(id, place(index));
  return { graph, ids, changes };
}

/** Sizes of the graph's parts. */
function parts(graph: NeighbourGraph, ids: readonly string[]): number[] {
  const seen = new Set<string>();
  return ids.filter((id) => graph.has(id)).flatMap((start) => {
    if (seen.has(start)) return [];
    const reached = [start];
    seen.add(start);
    for (const id of reached) {
      for (const other of graph.neighboursOf(id)) if (!seen.has(other)) seen.add(other), reached.push(other);
    }
    return [reached.length];
  });
}

Deno.test(`up to ${MESH_MAX} members everybody is everybody's neighbour`, () => {
  const { graph, ids } = graphOf(MESH_MAX);
  for (const id of ids) assertEquals(graph.neighboursOf(id).length, MESH_MAX - 1);
});

for (const count of [33, 50, 100, 400]) {
  Deno.test(`of ${count} members each has about 12 neighbours and all are connected`, () => {
    const { graph, ids } = graphOf(count);
    const degrees = ids.map((id) => graph.neighboursOf(id).length);
    assert(Math.min(...degrees) >= 10 && Math.max(...degrees) <= 16, `${Math.min(...degrees)}-${Math.max(...degrees)}`);
    assertEquals(parts(graph, ids), [count]);
  });
}

Deno.test("a large graph has a small diameter", () => {
  const { graph, ids } = graphOf(400);
  const distance = new Map([[ids[0]!, 0]]);
  for (const [id, steps] of distance) {
    for (const other of graph.neighboursOf(id)) if (!distance.has(other)) distance.set(other, steps + 1);
  }
  assert(Math.max(...distance.values()) <= 4);
});

for (const idc of ["", "one"]) {
  Deno.test(`in ${idc === "" ? "no" : "one"} idc about two thirds of the edges stay within a location`, () => {
    const { graph, ids } = graphOf(300, { place: (index) => ({ idc, location: `loc${index % 3}` }) });
    const ends = ids.flatMap((id, index) =>
      graph.neighboursOf(id).map((other) => ids.indexOf(other) % 3 === index % 3)
    );
    const share = ends.filter(Boolean).length / ends.length;
    assert(share > 0.5 && share < 0.85, `${share}`);
  });
}

for (const idcs of [2, 3, 8]) {
  Deno.test(`of 400 members in ${idcs} idcs only carriers know others elsewhere, and they know each other`, () => {
    const { graph, ids } = graphOf(400, { place: (index) => ({ idc: `idc${index % idcs}`, location: "" }) });
    const idcOf = (id: string) => Number(id.slice(1)) % idcs;
    const carriers = new Set(ids.flatMap((id) => graph.carriersOf(id)!));
    assertEquals(carriers.size, idcs * Math.min(8, Math.floor(32 / idcs)));
    for (const id of ids) {
      const far = graph.neighboursOf(id).filter((other) => idcOf(other) !== idcOf(id));
      const known = carriers.has(id) ? [...carriers].filter((other) => idcOf(other) !== idcOf(id)) : [];
      assertEquals(far, known.sort());
      assertEquals(graph.mayCross(id), carriers.has(id));
      if (!carriers.has(id)) continue;
      for (const other of graph.carriersOf(id)!) assert(other === id || graph.isLinked(id, other));
    }
    assertEquals(parts(graph, ids), [400]);
    // Each idc is in one part by itself, so that what its carriers bring reaches all of it.
    for (let idc = 0; idc < idcs; idc++) {
      const own = ids.filter((id) => idcOf(id) === idc);
      const reached = new Set(own.slice(0, 1));
      for (const id of reached) {
        for (const other of graph.neighboursOf(id)) if (idcOf(other) === idc) reached.add(other);
      }
      assertEquals(reached.size, own.length);
    }
  });
}

Deno.test("an idc that leaves for the greatest part stays connected to the rest", () => {
  const { graph, ids } = graphOf(120, { place: (index) => ({ idc: `idc${index % 4}`, location: "" }) });
  for (const [index, id] of ids.entries()) if (index % 4 === 0 && index > 8) graph.remove(id);
  assertEquals(parts(graph, ids), [graph.size]);
});

Deno.test("members that lose neighbours get others", () => {
  const { graph, ids } = graphOf(200);
  for (const id of ids.slice(0, 120)) graph.remove(id);
  const degrees = ids.slice(120).map((id) => graph.neighboursOf(id).length);
  assert(Math.min(...degrees) >= 8 && Math.max(...degrees) <= 18, degrees.join(" "));
});

Deno.test("a graph that shrinks becomes a mesh again", () => {
  const { graph, ids } = graphOf(40);
  for (const id of ids.slice(0, 30)) graph.remove(id);
  for (const id of ids.slice(30)) assertEquals(graph.neighboursOf(id).length, 9);
});

Deno.test("a banned edge is gone and never comes back, until the host is pardoned", () => {
  const { graph } = graphOf(5);
  graph.ban("h0000", "h0001");
  assertEquals([graph.isLinked("h0000", "h0001"), graph.connect("h0001", "h0000")], [false, false]);
  graph.pardon("h0001");
  assertEquals([graph.isBanned("h0000", "h0001"), graph.connect("h0001", "h0000")], [false, true]);
});

Deno.test("a member that bans its neighbours one by one is never cut off", () => {
  const { graph, ids } = graphOf(40, { degree: 4 });
  for (let round = 0; round < 25; round++) {
    graph.ban("h0000", graph.neighboursOf("h0000")[0]!);
    assertEquals(parts(graph, ids), [40]);
  }
});

Deno.test("strangers and oneself are not linked", () => {
  const { graph } = graphOf(2);
  assertEquals([graph.connect("h0000", "h0000"), graph.connect("h0000", "x")], [false, false]);
  graph.remove("x");
  graph.ban("x", "y");
  assertEquals(graph.neighboursOf("x"), []);
});

Deno.test("the changes told make up the graph, and only a mesh depends on nothing but its members", () => {
  const { graph, changes, ids } = graphOf(60);
  const told = new Map(changes.take().map(({ hostId, add }) => [hostId, [...add]]));
  for (const id of ids) assertEquals(told.get(id), graph.neighboursOf(id));
});

Deno.test("whatever comes and goes: edges are symmetric, told truly, degrees bounded, all in one part", () => {
  const step = fc.tuple(fc.constantFrom("add", "add", "add", "remove", "ban"), fc.nat(79), fc.nat(79));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: "max" }), fc.nat(), (steps, seed) => {
      const changes = new LinkChanges();
      const graph = new NeighbourGraph(6, seededRandom(seed), changes);
      const told = new Map<string, Set<string>>();
      let bans = 0;
      for (const [kind, a, b] of steps) {
        const id = `h${a}`;
        if (kind === "add") graph.add(id, { idc: "", location: `${a % 3}` });
        if (kind === "remove") graph.remove(id);
        if (kind === "ban" && bans++ < 5) graph.ban(id, `h${b}`);
        for (const { hostId, add, remove } of changes.take()) {
          const known = told.get(hostId) ?? new Set();
          told.set(hostId, known);
          for (const other of remove) assert(known.delete(other));
          for (const other of add) assert(!known.has(other) && known.add(other));
        }
      }
      const ids = Array.from({ length: 80 }, (_, index) => `h${index}`);
      for (const id of ids) {
        const neighbours = graph.neighboursOf(id);
        assertEquals(neighbours, [...told.get(id) ?? []].sort());
        for (const other of neighbours) assert(graph.isLinked(other, id) && !graph.isBanned(id, other));
        if (!graph.isMesh) assert(neighbours.length <= 12, `${neighbours.length}`);
      }
      if (graph.size > 7) assertEquals(parts(graph, ids), [graph.size]);
    }),
    { numRuns: 60 },
  );
});
