/** `lacewing plugin`: what can be downloaded from, and where each source comes from. */
import type { ParsedCommand } from "../parse.ts";
import { SOURCES } from "../settings.ts";
import { writeStdout } from "../terminal.ts";
import { noArguments } from "./arguments.ts";

/** One line a URL scheme. */
export async function listSources(parsed: ParsedCommand): Promise<void> {
  noArguments(parsed);
  const width = Math.max(...SOURCES.map(([scheme]) => scheme.length));
  await writeStdout(SOURCES.map(([scheme, origin]) => `${scheme.padEnd(width)}  ${origin}\n`).join(""));
}
