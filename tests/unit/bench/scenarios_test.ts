// The scenarios of the bench: tests/bench/scenarios.ts
import { assert, assertEquals } from "@std/assert";
import { atSpeed, scenarioById, SCENARIOS } from "../../bench/scenarios.ts";

const SETTINGS = { peers: 16, size: 64 * 2 ** 20 };

Deno.test("every scenario has its own id, hosts with names of their own, and bytes to move", () => {
  assertEquals(new Set(SCENARIOS.map(({ id }) => id)).size, SCENARIOS.length);
  for (const scenario of SCENARIOS) {
    const names = scenario.hosts(SETTINGS).map(({ name }) => name);
    assertEquals(new Set(names).size, names.length, scenario.id);
    assert(scenario.sizes(SETTINGS).length > 0, scenario.id);
  }
});

Deno.test("E has a quarter of fast hosts and a quarter of slow ones", () => {
  const rates = scenarioById("e")!.hosts(SETTINGS).map(({ up }) => up / 1e6);
  assertEquals(Map.groupBy(rates, (rate) => rate).get(100)?.length, 4);
  assertEquals(Map.groupBy(rates, (rate) => rate).get(50)?.length, 8);
  assertEquals(Map.groupBy(rates, (rate) => rate).get(12.5)?.length, 4);
});

Deno.test("G puts half of the hosts into the other rack", () => {
  assertEquals(scenarioById("g")!.hosts(SETTINGS).filter(({ rack }) => rack === 1).length, 8);
});

Deno.test("J is shaped like an image, and shrinks with the size", () => {
  const sizes = scenarioById("j")!.sizes(SETTINGS);
  assertEquals([sizes.length, sizes.at(-1)], [204, 16 * 2 ** 20]);
  assertEquals(scenarioById("j")!.sizes({ ...SETTINGS, size: 1 }).length, 2);
});

Deno.test("atSpeed() scales every link, and nothing else", () => {
  const scenario = scenarioById("g")!;
  const slow = atSpeed(scenario, 0.5);
  assertEquals([slow.originUp, slow.trunk], [scenario.originUp / 2, scenario.trunk! / 2]);
  assertEquals(slow.hosts(SETTINGS)[9], { name: "p10", up: 25e6, down: 25e6, rack: 1 });
  assertEquals(atSpeed(scenarioById("k")!, 0.5).seed?.up, 25e6);
});

Deno.test("scenarioById() knows no others", () => assertEquals(scenarioById("z"), undefined));
