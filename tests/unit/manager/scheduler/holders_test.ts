import { assert, assertEquals } from "@std/assert";
import { IdleHolders } from "../../../../manager/scheduler/holders.ts";
import { LinkChanges } from "../../../../manager/scheduler/link_changes.ts";
import { seededRandom } from "../../../../peer/core/clock.ts";

const NOWHERE = { idc: "", location: "" };

/** Holders drawn as `id@idc`; ids that begin with `seed` are seeds. */
function draw(holders: string): { idle: IdleHolders; changes: LinkChanges } {
  const changes = new LinkChanges();
  const idle = new IdleHolders(seededRandom(1), changes);
  for (const holder of holders.split(" ").filter(Boolean)) {
    const [id = "", idc = ""] = holder.split("@");
    idle.add(id, { idc, location: "", isSeed: id.startsWith("seed") });
  }
  return { idle, changes };
}

for (
  const [holders, idc, want] of [
    ["", "", ""],
    ["a b", "", "a b"],
    ["a b c seed1 seed2@x", "", "2 others seed1 seed2"],
    ["a@x b@x c@x d@x e@y f@y", "x", "a b c d"],
    ["a@y seed1@y b@x c@x d@x e@x", "x", "3 others seed1"],
  ] as [string, string, string][]
) {
  Deno.test(`of ${holders || "nobody"} a member in idc ${idc || "(none)"} is given ${want || "nobody"}`, () => {
    const { idle } = draw(holders);
    idle.offer("m", { idc, location: "" }, () => false);
    const given = idle.knownTo("m");
    const others = given.filter((id) => !id.startsWith("seed"));
    const shown = /others/.test(want)
      ? [`${others.length} others`, ...given.filter((id) => id.startsWith("seed"))]
      : given;
    assertEquals(shown.join(" "), want);
  });
}

Deno.test("banned holders are not given, known ones not twice", () => {
  const { idle, changes } = draw("a b");
  assertEquals(idle.offer("m", NOWHERE, (id) => id === "a"), 1);
  assertEquals(idle.offer("m", NOWHERE, (id) => id === "a"), 0);
  assertEquals(changes.take(), [{ hostId: "m", add: ["b"], remove: [] }]);
});

Deno.test("one holder is given to 64 members at most", () => {
  const { idle } = draw("a");
  const given = Array.from({ length: 100 }, (_, index) => idle.offer(`m${index}`, NOWHERE, () => false));
  assertEquals(given.filter((count) => count === 1).length, 64);
  idle.forgetMember("m0");
  assertEquals(idle.offer("late", NOWHERE, () => false), 1);
});

Deno.test("members are spread over the holders", () => {
  const { idle } = draw(Array.from({ length: 12 }, (_, index) => `h${index}`).join(" "));
  for (let index = 0; index < 30; index++) idle.offer(`m${index}`, NOWHERE, () => false);
  const counts = Map.groupBy(
    Array.from({ length: 30 }, (_, index) => idle.knownTo(`m${index}`)).flat(),
    (id) => id,
  );
  assertEquals(counts.size, 12);
  assert([...counts.values()].every(({ length }) => length < 25));
});

Deno.test("a holder that is removed is taken from everybody, a member keeps 32 at most", () => {
  const { idle, changes } = draw(Array.from({ length: 40 }, (_, index) => `h${index}`).join(" "));
  for (let index = 0; index < 40; index++) idle.link("m", `h${index}`);
  assertEquals(idle.knownTo("m").length, 32);
  changes.take();
  idle.remove("h0");
  assertEquals(changes.take(), [{ hostId: "m", add: [], remove: ["h0"] }]);
  assertEquals([idle.has("h0"), idle.size], [false, 39]);
});
