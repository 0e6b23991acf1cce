/** Others' TOML, right and wrong. */
import { assertEquals, assertThrows } from "@std/assert";
import { readToml, tableAt, tablesIn, textIn } from "../../../../cli/setup/toml.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

Deno.test("tables, lists of tables and texts are found, and what is of another kind is not there", () => {
  const table = readToml('a = "x"\nn = 1\nd = 1979-05-27\n[t.u]\nv = "y"\n[[l]]\nk = 1\n[[l]]\n', "/f");
  assertEquals([textIn(table, "a"), textIn(table, "n"), textIn(table, "z")], ["x", null, null]);
  assertEquals(tableAt(table, "t", "u"), { v: "y" });
  for (const keys of [["a"], ["d"], ["t", "z"], ["l"], ["a", "b"]]) assertEquals(tableAt(table, ...keys), {});
  assertEquals(tablesIn(table.l).length, 2);
  assertEquals(tablesIn(table.t), []);
});

for (
  const [text, line] of [["x = [", 1], ["a = 1\na = 2\n", 2], ["a = 1\n[t\n", 2], ["= 1", 1], [
    'password = "s3',
    1,
  ]] as const
) {
  Deno.test(`${JSON.stringify(text)} is refused with its line, and without its text`, () => {
    const error = assertThrows(
      () => readToml(text, "/etc/f.toml"),
      LacewingError,
      "Cannot read /etc/f.toml: not TOML: line",
    );
    assertEquals(error.code, "config_invalid");
    assertEquals(Number(/line (\d+)/.exec(error.message)?.[1]) >= line, true, error.message);
    assertEquals(error.message.includes("s3"), false);
  });
}
