import { assert, assertEquals } from "@std/assert";
import { Throttle } from "../../../../manager/auth/throttle.ts";

Deno.test("an address waits after ten failures until its minute is over", () => {
  const throttle = new Throttle();
  for (let count = 0; count < 9; count++) throttle.failed("a", 1000);
  assertEquals(throttle.waitMs("a", 1000), 0);
  throttle.failed("a", 2000);
  assertEquals(throttle.waitMs("a", 2000), 59_000);
  assertEquals(throttle.waitMs("b", 2000), 0);
  assertEquals(throttle.waitMs("a", 61_000), 0);
  throttle.failed("a", 61_000);
  assertEquals(throttle.waitMs("a", 61_000), 0, "counting starts anew");
});

Deno.test("it remembers a bounded number of addresses, the newest", () => {
  const throttle = new Throttle();
  for (let count = 0; count < 10; count++) throttle.failed("first", 0);
  for (let number = 0; number < 10_000; number++) throttle.failed(`address-${number}`, 0);
  assertEquals(throttle.waitMs("first", 0), 0);
  for (let count = 0; count < 9; count++) throttle.failed("address-9999", 0);
  assert(throttle.waitMs("address-9999", 0) > 0);
});
