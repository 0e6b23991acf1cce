/** The examples of the table are command lines that work. */
// covers: cli/commands.ts
import { assertEquals } from "@std/assert";
import { COMMAND_TABLE, EXIT_CODES } from "../../../cli/commands.ts";
import { COMMANDS } from "../../../cli/options.ts";
import { parseCommand } from "../../../cli/parse.ts";
import { ERRORS } from "../../../peer/core/errors.ts";

for (const command of COMMANDS) {
  for (const [purpose, example] of COMMAND_TABLE[command].examples) {
    Deno.test(`example of ${command} is understood: ${purpose}`, () => {
      const words = example.match(/lacewing ([^|>)]*)/)?.[1]?.match(/'[^']*'|"[^"]*"|\S+/g) ?? [];
      const parsed = parseCommand(words.map((word) => word.replace(/^(['"])(.*)\1$/, "$2")));
      assertEquals(parsed.command, command);
    });
  }
}

Deno.test("every exit code that an error may have is explained", () => {
  const explained = EXIT_CODES.map(([code]) => Number(code));
  for (const { exitCode } of Object.values(ERRORS)) assertEquals(explained.includes(exitCode), true, String(exitCode));
});
