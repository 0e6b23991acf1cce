/** The help of every command, from the tables. */
import { assert, assertEquals } from "@std/assert";
import { renderHelp } from "../../../cli/help.ts";
import { COMMANDS, isAvailable, optionsOf } from "../../../cli/options.ts";

for (const command of COMMANDS) {
  Deno.test(`help of ${command} fits 80 columns and holds printable characters`, () => {
    for (const line of renderHelp(command).split("\n")) {
      assert(line.length <= 80, line);
      assert(/^[\x20-\x7e]*$/.test(line), line);
    }
  });

  Deno.test(`help of ${command} names every option that it knows`, () => {
    const [known = "", idle = ""] = renderHelp(command).split("Accepted, without effect here");
    for (const option of optionsOf(command)) {
      const text = isAvailable(option, command) ? known : idle;
      assert(text.includes(`--${option.name}`), option.name);
      if (option.short !== undefined && isAvailable(option, command)) assert(known.includes(`-${option.short}, --`));
    }
  });
}

Deno.test("help of the client shows commands, examples and every exit code of the contract", () => {
  const help = renderHelp("download");
  for (const word of ["daemon", "completion", "Examples:", "lacewing <url> -O <path>", "Default: 100.0MB"]) {
    assert(help.includes(word), word);
  }
  const codes = [...help.matchAll(/^ {2}(\d+) +\S/gm)].map((match) => Number(match[1]));
  assertEquals(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 130]);
});
