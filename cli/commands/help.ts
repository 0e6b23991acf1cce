/** `lacewing help [command]`, and `--help` of every command. */
import { COMMANDS } from "../options.ts";
import { renderHelp } from "../help.ts";
import { NotKnown, type ParsedCommand } from "../parse.ts";
import { writeStdout } from "../terminal.ts";
import { atMostOneArgument } from "./arguments.ts";

/** @throws {LacewingError} `usage` if there is no such command. */
export async function showHelp(parsed: ParsedCommand): Promise<void> {
  if (parsed.command !== "help") return await writeStdout(renderHelp(parsed.command));
  const word = atMostOneArgument(parsed);
  const command = word === null ? "download" : COMMANDS.find((name) => name === word);
  if (command === undefined) {
    throw new NotKnown(`Cannot help: there is no command ${JSON.stringify(word)}`, {
      word: word ?? "",
      known: COMMANDS,
    });
  }
  await writeStdout(renderHelp(command));
}
