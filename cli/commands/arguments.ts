/** How many arguments the small commands take. */
import { LacewingError } from "../../peer/core/errors.ts";
import type { ParsedCommand } from "../parse.ts";

/** @throws {LacewingError} `usage` if there is an argument. */
export function noArguments({ command, positionals }: ParsedCommand): void {
  const [first] = positionals;
  if (first === undefined) return;
  throw new LacewingError("usage", `Cannot use ${JSON.stringify(first)}: "${command}" takes no argument`);
}

/** @throws {LacewingError} `usage` if there are more. */
export function atMostOneArgument({ command, positionals }: ParsedCommand): string | null {
  const [first, second] = positionals;
  if (second === undefined) return first ?? null;
  throw new LacewingError("usage", `Cannot use ${JSON.stringify(second)}: "${command}" takes one argument`);
}
