import { assertEquals } from "@std/assert";
import { systemClock } from "../../../../peer/core/clock.ts";
import { Watchdog } from "../../../../peer/transfer/watchdog.ts";
import { FakeClock } from "../core/fake_clock.ts";

Deno.test("Watchdog expires once when its time is over", async () => {
  const clock = new FakeClock();
  let expired = 0;
  using watchdog = new Watchdog(clock, () => expired++);
  watchdog.arm(100);
  await clock.advance(99);
  assertEquals(expired, 0);
  await clock.advance(1);
  assertEquals(expired, 1);
  await clock.advance(500);
  assertEquals(expired, 1);
});

Deno.test("Watchdog that is armed again counts from then", async () => {
  const clock = new FakeClock();
  let expired = 0;
  using watchdog = new Watchdog(clock, () => expired++);
  watchdog.arm(100);
  await clock.advance(80);
  watchdog.arm(100);
  await clock.advance(80);
  assertEquals(expired, 0);
  await clock.advance(20);
  assertEquals(expired, 1);
});

Deno.test("Watchdog takes an earlier deadline than the one it sleeps for", async () => {
  const clock = new FakeClock();
  let expired = 0;
  using watchdog = new Watchdog(clock, () => expired++);
  watchdog.arm(10_000);
  watchdog.arm(10);
  await clock.advance(10);
  assertEquals(expired, 1);
});

Deno.test("Watchdog that is disarmed does not expire, and can be armed again", async () => {
  const clock = new FakeClock();
  let expired = 0;
  using watchdog = new Watchdog(clock, () => expired++);
  watchdog.arm(100);
  watchdog.disarm();
  await clock.advance(200);
  assertEquals(expired, 0);
  watchdog.arm(50);
  await clock.advance(50);
  assertEquals(expired, 1);
});

Deno.test("Watchdog may be armed by its own expiry", async () => {
  const clock = new FakeClock();
  let expired = 0;
  using watchdog: Watchdog = new Watchdog(clock, () => ++expired < 3 && watchdog.arm(10));
  watchdog.arm(10);
  for (let turn = 0; turn < 5; turn++) await clock.advance(10);
  assertEquals(expired, 3);
});

Deno.test("Watchdog that is disposed leaves no timer and ignores what comes later", () => {
  const watchdog = new Watchdog(systemClock, () => {
    throw new Error("expired after its end");
  });
  watchdog.arm(60_000);
  watchdog[Symbol.dispose]();
  watchdog.arm(1);
});
