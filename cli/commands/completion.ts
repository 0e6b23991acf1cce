/** `lacewing completion SHELL`. */
import { LacewingError } from "../../peer/core/errors.ts";
import { SHELLS } from "../commands.ts";
import { renderCompletion } from "../completion.ts";
import { NotKnown, type ParsedCommand } from "../parse.ts";
import { writeStdout } from "../terminal.ts";
import { atMostOneArgument } from "./arguments.ts";

/** @throws {LacewingError} `usage` without a shell, or for one that is not known. */
export async function showCompletion(parsed: ParsedCommand): Promise<void> {
  const word = atMostOneArgument(parsed);
  const known = SHELLS.join(", ");
  if (word === null) throw new LacewingError("usage", `Cannot complete: no shell is given, want one of ${known}`);
  const shell = SHELLS.find((name) => name === word);
  if (shell === undefined) {
    throw new NotKnown(`Cannot complete for ${JSON.stringify(word)}: want one of ${known}`, { word, known: SHELLS });
  }
  await writeStdout(renderCompletion(shell));
}
