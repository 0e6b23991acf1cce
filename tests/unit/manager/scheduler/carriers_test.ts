// covers: manager/scheduler/border.ts manager/scheduler/swarm.ts
import { assert, assertEquals } from "@std/assert";
import { metaOf, World } from "./world.ts";

/** Hosts `a0`, `a1`, … in the idc `a`, and so on, that take part. */
function racksOf(counts: Record<string, number>, { can_source = true } = {}): { world: World; ids: string[] } {
  const world = new World();
  const ids: string[] = [];
  for (const [idc, count] of Object.entries(counts)) {
    for (let index = 0; index < count; index++) {
      ids.push(`${idc}${index}`);
      world.join(ids.at(-1)!, { can_source: can_source || ids.length === 1 }, { idc });
    }
  }
  return { world, ids };
}

/** Who carries, as the host was told last. */
function heardBy(world: World, id: string): readonly string[] | null | undefined {
  const words = (world.inbox.get(id) ?? []).filter(({ type }) => type === "task" || type === "neighbours");
  return words.reduce<readonly string[] | null | undefined>((last, word) => {
    if (word.type === "task") return word.carriers ?? null;
    return word.type === "neighbours" && word.carriers !== undefined ? word.carriers : last;
  }, undefined);
}

Deno.test("while there are few members nobody is told of carriers", () => {
  const { world, ids } = racksOf({ a: 16, b: 16 });
  for (const id of ids) assertEquals(heardBy(world, id), null);
});

Deno.test("each host of a large task hears whether it carries, also one that joins later and one that takes over", () => {
  const { world, ids } = racksOf({ a: 30, b: 30 });
  const carriersOf = (idc: string) =>
    ids.filter((id) => id.startsWith(idc) && world.swarm()?.members.has(id) && heardBy(world, id)!.includes(id)).sort();
  const carriers = carriersOf("a");
  assertEquals([carriers.length, carriersOf("b").length], [8, 8]);
  for (const id of carriers) assertEquals(heardBy(world, id), carriers);
  world.gone(carriers[0]!).join("a99", {}, { idc: "a" });
  const after = carriersOf("a");
  assertEquals([after.length, after.includes(carriers[0]!)], [8, false]);
  for (const id of after) assertEquals(heardBy(world, id), after);
  assertEquals(heardBy(world, "a99"), after);
});

Deno.test("all hear that all carry again when few are left", () => {
  const { world, ids } = racksOf({ a: 30, b: 30 });
  for (const id of ids.slice(0, 50)) world.gone(id);
  for (const id of ids.slice(50)) assertEquals(heardBy(world, id), null);
});

Deno.test("of several idcs the carriers read the origin, others where no carrier can", () => {
  const { world } = racksOf({ a: 30, b: 30 });
  world.meta("a0", metaOf(100)).pieces("a0", 0, 4);
  for (let round = 0; round < 20; round++) {
    for (const { id, hostId, first, count } of world.swarm()!.leases) {
      assert(heardBy(world, hostId)!.includes(hostId), `${hostId} reads`);
      world.pieces(hostId, first, count).leaseEnd(hostId, id);
    }
  }
  const poor = racksOf({ a: 30, b: 30 }, { can_source: false }).world;
  assertEquals(poor.leases().map((lease) => lease.split(":")[0]), ["a0"]);
});

Deno.test("a host that takes no part and has all of it is made known in its idc, and elsewhere to carriers", () => {
  const { world, ids } = racksOf({ a: 30, b: 30 });
  world.meta("a0", metaOf(8)).connect("holder", { idc: "b" }).held("holder", metaOf(8));
  const knowing = ids.filter((id) => world.swarm()!.neighboursOf(id).includes("holder"));
  assert(knowing.some((id) => id.startsWith("b")));
  for (const id of knowing) assert(id.startsWith("b") || heardBy(world, id)!.includes(id), id);
  assertEquals(knowing.filter((id) => id.startsWith("a")).length, 8);
});

Deno.test("a host that starves hears of others elsewhere only when nobody could read for it", () => {
  for (const can_source of [true, false]) {
    const { world, ids } = racksOf({ a: 30, b: 30 }, { can_source });
    world.meta("a0", metaOf(8)).pieces("a0", 0, 8);
    if (!can_source) world.join("a0", { can_source: false });
    const far = ids.find((id) => id.startsWith("b") && !heardBy(world, id)!.includes(id))!;
    for (let second = 0; second < 7; second++) world.starving(far, [1, 2]).wait(1_000);
    assertEquals(world.swarm()!.neighboursOf(far).some((id) => id.startsWith("a")), !can_source);
    assertEquals(world.sent(far, "lease").length > 0, can_source);
  }
});
