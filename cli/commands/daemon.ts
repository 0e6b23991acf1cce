/**
 * `lacewing daemon`: the one file of the client that loads the daemon. The
 * options have been read against the client's table before, so that a wrong
 * one is answered alike here and there; those of a download are accepted, and
 * said to have no effect.
 */
import { isAvailable, OPTIONS } from "../options.ts";
import type { ParsedCommand } from "../parse.ts";
import type { Terminal } from "../terminal.ts";
import { noArguments } from "./arguments.ts";

/** @returns the daemon's exit code */
export async function runDaemon(parsed: ParsedCommand, terminal: Terminal): Promise<number> {
  noArguments(parsed);
  const { args, idle } = daemonFlags(parsed);
  if (idle.length > 0) {
    const [have, them] = idle.length === 1 ? ["has", "it"] : ["have", "them"];
    terminal.write(`lacewing: ${idle.join(", ")} ${have} no effect on a daemon: give ${them} to a download\n`);
  }
  const { main } = await import("../../peer/main.ts");
  return await main(args);
}

/** The flags that the daemon itself reads, and the names of those given that it does not. */
export function daemonFlags({ values }: ParsedCommand): { args: string[]; idle: string[] } {
  const args: string[] = [];
  const idle: string[] = [];
  for (const option of OPTIONS) {
    const value = values.get(option.name);
    if (value === undefined || value === false) continue;
    if (!isAvailable(option, "daemon")) idle.push(`--${option.name}`);
    else args.push(value === true ? `--${option.name}` : `--${option.name}=${value}`);
  }
  return { args, idle };
}
