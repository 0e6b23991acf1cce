import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { DEPTH_MIN } from "../../../../peer/task/request_depth.ts";
import { RequestGate } from "../../../../peer/task/request_gate.ts";

Deno.test("all tasks together ask no more than the depth, and each may ask for one", () => {
  const gate = new RequestGate(DEPTH_MIN);
  for (let own = 0; own < DEPTH_MIN; own++) {
    assertEquals(gate.isOpenTo(own), true);
    gate.started();
  }
  assertEquals([gate.isOpenTo(DEPTH_MIN), gate.isOpenTo(1), gate.isOpenTo(0)], [false, false, true]);
  gate.ended();
  assertEquals(gate.isOpenTo(1), true);
});

Deno.test("whoever waits is woken once, in order, when a request has ended", () => {
  const gate = new RequestGate(1);
  const woken: string[] = [];
  const looks = ["a", "b", "c"].map((name) => () => void woken.push(name));
  for (const look of [...looks, looks[0]!]) gate.wait(look);
  gate.forget(looks[1]!);
  gate.started();
  assertEquals(woken, []);
  gate.ended();
  gate.started();
  gate.ended();
  assertEquals(woken, ["a", "c"]);
});

Deno.test("who waits again while it is woken is woken with the next end", () => {
  const gate = new RequestGate(1);
  let count = 0;
  const look = () => {
    count += 1;
    gate.wait(look);
  };
  gate.wait(look);
  gate.wake();
  assertEquals(count, 1);
  gate.wake();
  assertEquals(count, 2);
});

Deno.test("tasks see one load of a neighbour, which is forgotten with the last of them", () => {
  const gate = new RequestGate(8);
  const load = gate.neighbour("a");
  assert(gate.neighbour("a") === load && gate.neighbour("b") !== load);
  load.pausedUntilMs = 100;
  gate.release("a");
  assert(gate.neighbour("a") === load);
  gate.release("a");
  gate.release("a");
  assertEquals(gate.neighbour("a"), { inFlight: 0, failures: 0, pausedUntilMs: 0 });
  gate.release("nobody");
});

/** Tasks that each want some pieces and start one whenever they may; requests end in any order. */
Deno.test("never more requests than the depth and one for each task, and every task gets all it wants", () => {
  const property = fc.property(
    fc.integer({ min: 1, max: 12 }),
    fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 }),
    fc.array(fc.nat(1000), { minLength: 1, maxLength: 50 }),
    (max, wants, ends) => {
      const gate = new RequestGate(max);
      const tasks = wants.map((left) => ({ left, own: 0, look: () => {} }));
      const flights: typeof tasks = [];
      for (const task of tasks) {
        task.look = () => {
          while (task.left > 0 && gate.isOpenTo(task.own)) {
            task.left -= 1;
            task.own += 1;
            gate.started();
            flights.push(task);
          }
          if (task.left > 0) gate.wait(task.look);
        };
        task.look();
      }
      for (let step = 0; flights.length > 0; step++) {
        assert(flights.length < gate.depth.count + tasks.length, `${flights.length} requests`);
        const [task] = flights.splice(ends[step % ends.length]! % flights.length, 1);
        task!.own -= 1;
        gate.ended();
      }
      assertEquals(tasks.map(({ left, own }) => [left, own]), wants.map(() => [0, 0]));
      assertEquals(gate.isBusy, false);
    },
  );
  fc.assert(property, { numRuns: 200 });
});
