import { assertEquals } from "@std/assert";
import type { Neighbour } from "../../../../peer/core/wire/scheduler.ts";
import { type Hearer, Neighbourhood } from "../../../../peer/task/neighbourhood.ts";

function neighbour(id: string): Neighbour {
  return { host_id: id, address: `10.0.0.1:${id.length}`, type: "normal", idc: "" };
}

/** What a session hears, in words. */
function hearer(): { session: Hearer; heard: string[] } {
  const heard: string[] = [];
  const session = {
    neighbours: (add: readonly Neighbour[], remove: readonly string[]) =>
      void heard.push(`+${add.map(({ host_id }) => host_id)} -${remove}`),
    setCarriers: (hostIds: readonly string[] | null) => void heard.push(`carriers ${hostIds}`),
  };
  return { session, heard };
}

Deno.test("Neighbourhood passes on what changes, and tells a new session all of it, carriers first", () => {
  const around = new Neighbourhood();
  around.change([neighbour("a"), neighbour("b")], [], null);
  around.setCarriers(["a"], null);
  const first = hearer();
  around.introduce(first.session);
  around.change([neighbour("c")], ["a"], first.session);
  around.setCarriers(null, first.session);
  assertEquals(first.heard, ["carriers a", "+a,b -", "+c -a", "carriers null"]);
  const second = hearer();
  around.introduce(second.session);
  assertEquals(second.heard, ["carriers null", "+b,c -"]);
});

Deno.test("Neighbourhood knows who is new, who is gone, and a stranger by its id only", () => {
  const around = new Neighbourhood();
  around.change([neighbour("a"), neighbour("bb")], [], null);
  assertEquals([around.size, around.allBut([neighbour("bb"), neighbour("c")])], [2, ["a"]]);
  assertEquals([around.nameOf("bb"), around.nameOf("c")], ["10.0.0.1:2", "c"]);
});
