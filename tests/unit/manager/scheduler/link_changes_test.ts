import { assertEquals } from "@std/assert";
import { LinkChanges } from "../../../../manager/scheduler/link_changes.ts";

/** Changes drawn as `host+neighbour` and `host-neighbour`. */
function taken(...drawn: string[]): string[] {
  const changes = new LinkChanges();
  for (const [host, sign, neighbour] of drawn) changes.note(host!, neighbour!, sign === "+");
  return changes.take().map(({ hostId, add, remove }) => `${hostId} +${add.join("")} -${remove.join("")}`);
}

for (
  const [drawn, want] of [
    [["a+b"], ["a +b -"]],
    [["b+a", "a+c", "a+b"], ["a +bc -", "b +a -"]],
    [["a+b", "a-b"], []],
    [["a-b", "a+b"], []],
    [["a-b", "a+b", "a-b"], ["a + -b"]],
    [["a+b", "a+b"], ["a +b -"]],
    [["a-b", "a+c"], ["a +c -b"]],
    [[], []],
  ] as [string[], string[]][]
) {
  Deno.test(`changes ${drawn.join(" ") || "(none)"} are told as ${want.join(", ") || "nothing"}`, () => {
    assertEquals(taken(...drawn), want);
  });
}

Deno.test("forget() drops what one host need not hear, take() tells nothing twice", () => {
  const changes = new LinkChanges();
  changes.note("a", "b", true);
  changes.note("b", "a", true);
  changes.forget("a");
  assertEquals(changes.take(), [{ hostId: "b", add: ["a"], remove: [] }]);
  assertEquals(changes.take(), []);
});
