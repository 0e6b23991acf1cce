/** `lacewing plugin`: what can be downloaded from, and where each source comes from. */
import type { CommandContext } from "../context.ts";
import { originPlugins } from "../direct/origin_source.ts";
import type { ParsedCommand } from "../parse.ts";
import { readDaemonSettings, SOURCES } from "../settings.ts";
import { safeLine, writeStdout } from "../terminal.ts";
import { noArguments } from "./arguments.ts";

/** One line a URL scheme; a plug-in that cannot be used is listed with the reason. */
export async function listSources(parsed: ParsedCommand, context: CommandContext): Promise<void> {
  noArguments(parsed);
  await using plugins = await originPlugins(readDaemonSettings(parsed, context.env), context);
  const rows: [string, string][] = SOURCES.map(([scheme, origin]) => [scheme, origin]);
  for (const { scheme, path } of await plugins.files()) {
    const problem = await plugins.find(scheme).then(() => null, (error: Error) => error.message);
    rows.push([scheme, problem === null ? path : `not usable: ${problem}`]);
  }
  const width = Math.max(...rows.map(([scheme]) => scheme.length));
  await writeStdout(rows.map(([scheme, origin]) => `${scheme.padEnd(width)}  ${safeLine(origin)}\n`).join(""));
}
