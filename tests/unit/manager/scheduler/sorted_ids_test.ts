import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { shuffled, SortedIds } from "../../../../manager/scheduler/sorted_ids.ts";
import { seededRandom } from "../../../../peer/core/clock.ts";

Deno.test("SortedIds holds what a set holds, ascending", () => {
  fc.assert(fc.property(fc.array(fc.tuple(fc.boolean(), fc.string({ maxLength: 2 }))), (steps) => {
    const [ids, model] = [new SortedIds(), new Set<string>()];
    for (const [adds, id] of steps) {
      if (adds) ids.add(id), model.add(id);
      else ids.delete(id), model.delete(id);
      assertEquals(ids.has(id), adds);
    }
    assertEquals([...ids], [...model].sort());
    assertEquals(ids.size, model.size);
  }));
});

Deno.test("draws depend on what is in the set and not on the order in which it came", () => {
  const [one, other] = [new SortedIds(), new SortedIds()];
  for (const id of ["a", "b", "c", "d", "e"]) one.add(id);
  for (const id of ["e", "c", "a", "d", "b"]) other.add(id);
  assertEquals(one.draw(seededRandom(3)), other.draw(seededRandom(3)));
  assertEquals(one.sample(2, seededRandom(3)), other.sample(2, seededRandom(3)));
});

Deno.test("sample() gives different ids, all of them when there are few", () => {
  const ids = new SortedIds();
  assertEquals([ids.draw(Math.random), ids.sample(3, Math.random)], [undefined, []]);
  for (const id of ["b", "a", "c"]) ids.add(id);
  assertEquals(ids.sample(3, Math.random), ["a", "b", "c"]);
  for (let seed = 0; seed < 50; seed++) assertEquals(new Set(ids.sample(2, seededRandom(seed))).size, 2);
});

Deno.test("shuffled() keeps every item and leaves its input alone", () => {
  const items = ["a", "b", "c", "d"];
  assertEquals(shuffled(items, seededRandom(5)).sort(), items);
  assertEquals(items, ["a", "b", "c", "d"]);
});
