/** covers: tests/demo/settings.ts */
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { LacewingError } from "../../../peer/core/errors.ts";
import { checkSpace, readSettings } from "../../demo/settings.ts";

const MIB = 2 ** 20;

Deno.test("readSettings() takes 4 hosts and 256 MiB unless told otherwise", () => {
  assertEquals(readSettings([]), { hosts: 4, size: 256 * MIB, keep: false });
  assertEquals(readSettings(["--hosts", "32", "--size=0", "--keep"]), { hosts: 32, size: 0, keep: true });
  assertEquals([readSettings(["--help"]), readSettings(["-h"])], [null, null]);
});

const WRONG: [string[], string][] = [
  [["--hosts", "0"], '--hosts "0"'],
  [["--hosts", "33"], '--hosts "33"'],
  [["--hosts", "1.5"], '--hosts "1.5"'],
  [["--hosts", "0x4"], '--hosts "0x4"'],
  [["--hosts"], '--hosts ""'],
  [["--size", "lots"], '"lots"'],
  [["--size", "-1"], "size"],
  [["--size"], "size"],
  [["--host", "3"], '"--host"'],
  [["3"], '"3"'],
];
for (const [args, named] of WRONG) {
  Deno.test(`readSettings() refuses ${args.join(" ")} by name`, () => {
    const error = assertThrows(() => readSettings(args), LacewingError);
    assertEquals(error.code, "usage");
    assertStringIncludes(error.message, named);
  });
}

Deno.test("checkSpace() refuses what the folder cannot hold, before anything starts", () => {
  checkSpace({ hosts: 2, size: 1024, keep: false }, ".");
  const error = assertThrows(() => checkSpace({ hosts: 2, size: 2 ** 50, keep: false }, "."), LacewingError);
  assertEquals(error.code, "disk_full");
  assertStringIncludes(error.message, "3 copies of 1024.0 TiB");
});
