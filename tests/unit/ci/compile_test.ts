/** What `deno task compile` reads from its command line and writes into its bundles. */
import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { EXECUTABLES, lacksDenort, readWishes, shebang } from "../../../.ci/compile.ts";

Deno.test("readWishes() makes standalone executables under dist/ unless told otherwise", () => {
  assertEquals(readWishes([], "/p"), { bundle: false, out: "/p/dist", target: null });
  assertEquals(readWishes(["--bundle", "--out", "/o", "--target", "t"], "/p"), {
    bundle: true,
    out: "/o",
    target: "t",
  });
});

for (const args of [["--bundel"], ["--out"], ["dist"], ["--target"]]) {
  Deno.test(`readWishes() refuses ${args}`, () => {
    assertThrows(() => readWishes(args, "/p"), TypeError, args[0]);
  });
}

Deno.test("only the client may start processes, and nobody may load native code", () => {
  const allowed = (permission: string) =>
    EXECUTABLES.filter(({ permissions }) => permissions.includes(permission)).map(({ name }) => name);
  assertEquals(allowed("--allow-run"), ["lacewing"]);
  assertEquals(allowed("--allow-all"), []);
  assertEquals(allowed("--allow-ffi"), []);
});

Deno.test("shebang() holds the permissions and lets nothing be fetched", () => {
  const line = shebang(["--allow-net"], ["--unstable-x"]);
  assertMatch(line, /^#!\/usr\/bin\/env -S deno run [^\n]*--no-remote --no-npm --unstable-x --allow-net\n$/);
});

Deno.test("lacksDenort() tells a missing runtime from a mistake in the code", () => {
  assertEquals(lacksDenort("error: Download of https://dl.deno.land/release/v2/denort.zip: dns error"), true);
  assertEquals(lacksDenort("TS2322 [ERROR]: Type 'string' is not assignable to type 'number'."), false);
});
