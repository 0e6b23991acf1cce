/**
 * `lacewing daemon`: the one file of the client that loads the daemon. The
 * options have been read against the client's table before, so that a wrong
 * one is answered alike here and there.
 */
import { noArguments } from "./arguments.ts";
import type { ParsedCommand } from "../parse.ts";

/** @returns the daemon's exit code */
export async function runDaemon(parsed: ParsedCommand, args: readonly string[]): Promise<number> {
  noArguments(parsed);
  const { main } = await import("../../peer/main.ts");
  return await main([...args]);
}
