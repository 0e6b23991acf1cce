import { assert, assertEquals } from "@std/assert";
import { rendezvous } from "../../../../manager/scheduler/seed_peers.ts";

const TASKS = Array.from({ length: 300 }, (_, index) => `task${index}`);

Deno.test("rendezvous() does not depend on the order of the hosts", () => {
  for (const task of TASKS) assertEquals(rendezvous(task, ["a", "b", "c"]), rendezvous(task, ["c", "a", "b"]));
});

Deno.test("rendezvous() moves only the tasks of a host that leaves", () => {
  for (const task of TASKS) {
    const before = rendezvous(task, ["a", "b", "c"]);
    if (before !== "b") assertEquals(rendezvous(task, ["a", "c"]), before);
  }
});

Deno.test("rendezvous() spreads tasks over the hosts", () => {
  const counts = Map.groupBy(TASKS, (task) => rendezvous(task, ["a", "b", "c"]));
  for (const host of ["a", "b", "c"]) assert(counts.get(host)!.length > 60);
});

Deno.test("rendezvous() of nobody is undefined", () => assertEquals(rendezvous("task", []), undefined));
