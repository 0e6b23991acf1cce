import { assertEquals } from "@std/assert";
import { SharedTick } from "../../../../peer/transfer/shared_tick.ts";

Deno.test("SharedTick is one moment for all who wait, and never the same turn", async () => {
  const tick = new SharedTick(10_000);
  const order: string[] = [];
  const first = tick.next().then(() => order.push("first"));
  const second = tick.next().then(() => order.push("second"));
  order.push("asked");
  await Promise.resolve();
  order.push("microtask");
  await Promise.all([first, second]);
  assertEquals(order, ["asked", "microtask", "first", "second"]);
});

Deno.test("SharedTick lets the first word out at once and the next ones at the end of the interval", async () => {
  const intervalMs = 30;
  const tick = new SharedTick(intervalMs);
  await tick.next();
  const beganMs = performance.now();
  await tick.next();
  // Timers may fire a fraction of a millisecond early.
  assertEquals(performance.now() - beganMs > intervalMs - 3, true);
});
