import { assert, assertEquals, assertMatch } from "@std/assert";
import { VERSION } from "../../../../peer/core/version.ts";

Deno.test("VERSION is the version that deno.json tells packagers", async () => {
  const { version } = JSON.parse(await Deno.readTextFile(new URL("../../../../deno.json", import.meta.url)));
  assertEquals(VERSION, version);
});

Deno.test("VERSION is a semantic version that fits the wire", () => {
  assertMatch(VERSION, /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/);
  assert(VERSION.length <= 64);
});
