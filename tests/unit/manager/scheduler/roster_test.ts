import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { createMember, type Member } from "../../../../manager/scheduler/resource.ts";
import { Roster } from "../../../../manager/scheduler/roster.ts";

function member(hostId: string, leaseCount = 0): Member {
  return { ...createMember({ id: hostId, type: "normal" }, 1, 0), canSource: true, leaseCount };
}

Deno.test("Roster keeps its members in order of their ids, whoever comes and goes", () => {
  const change = fc.record({ id: fc.constantFrom("a", "b", "c", "d", "e"), isJoin: fc.boolean() });
  fc.assert(fc.property(fc.array(change), (changes) => {
    const roster = new Roster();
    for (const { id, isJoin } of changes) isJoin ? roster.set(id, member(id)) : roster.delete(id);
    assertEquals([...roster.ordered].map(({ hostId }) => hostId), [...roster.keys()].sort());
    assertEquals([...roster.ordered].every((it) => roster.get(it.hostId) === it), true);
  }));
});

Deno.test("Roster replaces a member of the same id, and is empty when cleared", () => {
  const roster = new Roster();
  for (const id of ["b", "a"]) roster.set(id, member(id));
  roster.set("a", member("a", 7));
  assertEquals([...roster.ordered].map(({ leaseCount }) => leaseCount), [7, 0]);
  assertEquals([roster.delete("x"), roster.delete("b")], [false, true]);
  roster.clear();
  assertEquals([roster.size, roster.ordered.size], [0, 0]);
});
