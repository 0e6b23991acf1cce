import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { IdcGraph } from "../../../../manager/scheduler/idc_graph.ts";
import { LinkChanges } from "../../../../manager/scheduler/link_changes.ts";
import { Links } from "../../../../manager/scheduler/links.ts";
import { seededRandom } from "../../../../peer/core/clock.ts";

/** A graph of one idc, driven as scheduling.ts does. */
class World {
  readonly links = new Links(new LinkChanges());
  readonly graph: IdcGraph;

  constructor({ degree = 6, seed = 1 } = {}) {
    this.graph = new IdcGraph(this.links, degree, seededRandom(seed));
  }

  add(id: string): void {
    if (!this.links.nodes.has(id)) this.graph.add(this.links.add(id, { idc: "", location: "" }));
  }

  remove(id: string): void {
    const node = this.links.nodes.get(id);
    if (node === undefined) return;
    const orphans = [...node.near].sort().map((other) => this.links.get(other));
    for (const orphan of orphans) this.links.unlink(node, orphan);
    this.links.nodes.delete(id);
    this.graph.remove(node, orphans);
  }

  ban(a: string, b: string): void {
    this.links.ban(a, b);
    const [from, to] = [this.links.nodes.get(a), this.links.nodes.get(b)];
    if (from === undefined || to === undefined) return;
    this.links.unlink(from, to);
    this.graph.parted(from, to);
  }

  /** Members that the first one reaches, as a share of all. */
  get reached(): number {
    const [first] = this.links.nodes.values();
    return first === undefined ? 1 : this.links.reach(first, new Set()).length / this.links.nodes.size;
  }

  /** Members that the ring goes through, each a neighbour of the next; 0 when two are not. */
  get ringLength(): number {
    const [first] = this.links.nodes.values();
    let [at, length] = [first, 0];
    do {
      const next = at?.after;
      if (at === undefined || !next || next.before !== at || !this.links.areLinked(at, next)) return 0;
      at = next;
      length += 1;
    } while (at !== first);
    return length;
  }
}

const step = fc.tuple(fc.constantFrom("add", "add", "remove", "ban"), fc.nat(99), fc.nat(99));

Deno.test("whoever comes and goes: a ring of neighbours goes through all members of a sparse graph", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: "max" }), fc.nat(), (steps, seed) => {
      const world = new World({ seed });
      for (let index = 0; index < 60; index++) world.add(`h${index}`);
      for (const [kind, a] of steps) {
        if (kind === "remove") world.remove(`h${a}`);
        else world.add(`h${a}`);
        assertEquals(world.graph.isWhole, !world.graph.isMesh);
        if (!world.graph.isMesh) assertEquals(world.ringLength, world.links.nodes.size);
      }
    }),
    { numRuns: 20 },
  );
});

Deno.test("whoever is banned: a graph that says it is whole is in one part", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: "max" }), fc.nat(), (steps, seed) => {
      const world = new World({ seed, degree: 2 });
      for (let index = 0; index < 60; index++) world.add(`h${index}`);
      for (const [kind, a, b] of steps) {
        if (kind === "ban" && a !== b) world.ban(`h${a}`, `h${b}`);
        else if (kind === "remove") world.remove(`h${a}`);
        else world.add(`h${a}`);
        if (!world.graph.isWhole) continue;
        assertEquals([world.ringLength, world.reached], [world.links.nodes.size, 1]);
      }
    }),
    { numRuns: 40 },
  );
});

Deno.test("a gap that a ban makes in the ring closes when one of the two leaves", () => {
  const world = new World();
  for (let index = 0; index < 60; index++) world.add(`h${index}`);
  const node = world.links.get("h7");
  world.ban(node.id, node.after!.id);
  assertEquals(world.graph.isWhole, false);
  world.remove(node.id);
  assert(world.graph.isWhole);
  assertEquals(world.ringLength, 59);
});

Deno.test("a member of a graph of two edges each has those of the ring", () => {
  const world = new World({ degree: 2 });
  for (let index = 0; index < 200; index++) world.add(`h${index}`);
  assertEquals(world.ringLength, 200);
  for (const { near } of world.links.nodes.values()) assert(near.size >= 2 && near.size <= 4, `${near.size}`);
});
