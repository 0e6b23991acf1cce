import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { OrderedList } from "../../../../manager/scheduler/ordered_list.ts";
import { seededRandom } from "../../../../peer/core/clock.ts";
import { shuffled } from "../../../../manager/scheduler/sorted_ids.ts";

interface Item {
  readonly id: string;
  readonly version: number;
}

function listOf(items: readonly Item[]): OrderedList<Item> {
  const list = new OrderedList<Item>(({ id }) => id);
  for (const item of items) list.put(item);
  return list;
}

/** Of five digits each, so that their order is that of the numbers. */
function itemsOf(count: number): Item[] {
  return Array.from({ length: count }, (_, index) => ({ id: String(index).padStart(5, "0"), version: 0 }));
}

Deno.test("OrderedList holds what a map holds, ascending", () => {
  const step = fc.tuple(fc.boolean(), fc.string({ maxLength: 2 }));
  fc.assert(fc.property(fc.array(step), (steps) => {
    const [list, model] = [listOf([]), new Map<string, Item>()];
    for (const [version, [adds, id]] of steps.entries()) {
      if (adds) assertEquals(list.put({ id, version }), !model.has(id));
      else assertEquals(list.delete(id), model.has(id));
      adds ? model.set(id, { id, version }) : model.delete(id);
      assertEquals([list.has(id), list.size], [adds, model.size]);
    }
    const expected = [...model.values()].sort((a, b) => a.id < b.id ? -1 : 1);
    assertEquals([...list], expected);
    assertEquals(expected.map((_, place) => list.at(place)), expected);
    assertEquals([list.at(model.size), list.at(-1)], [undefined, undefined]);
  }));
});

Deno.test("OrderedList of many items answers the same, in whatever order they came and went", () => {
  const items = itemsOf(20_000);
  const random = seededRandom(1);
  const kept = items.filter((_, index) => index % 7 === 0 || (index > 5_000 && index < 8_000));
  const gone = items.filter((item) => !kept.includes(item));
  const list = listOf(shuffled(items, random));
  for (const { id } of shuffled(gone, random)) assertEquals(list.delete(id), true);
  for (const one of [list, listOf(kept), listOf([...kept].reverse())]) {
    assertEquals([one.size, [...one]], [kept.length, kept]);
    for (const place of [0, 1, 714, 2_000, kept.length - 1]) assertEquals(one.at(place), kept[place]);
    assertEquals([kept.every(({ id }) => one.has(id)), gone.some(({ id }) => one.has(id))], [true, false]);
  }
});

Deno.test("OrderedList finds items by what is asked of them, in order", () => {
  const list = listOf(itemsOf(6_000).reverse());
  assertEquals(list.filter(({ id }) => id.endsWith("999")).map(({ id }) => id), [
    "00999",
    "01999",
    "02999",
    "03999",
    "04999",
    "05999",
  ]);
  assertEquals([list.some(({ id }) => id === "05999"), list.some(({ version }) => version === 1)], [true, false]);
});

Deno.test("OrderedList is empty when cleared, and when all have gone", () => {
  const items = itemsOf(5_000);
  const list = listOf(items);
  for (const { id } of items) list.delete(id);
  assertEquals([list.size, [...list], list.at(0), list.delete("00000")], [0, [], undefined, false]);
  for (const item of items) list.put(item);
  list.clear();
  assertEquals([list.size, [...list], list.has("00000")], [0, [], false]);
});
