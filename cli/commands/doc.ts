/** `lacewing doc --path DIR`: Markdown and man pages of every command. */
import { LacewingError } from "../../peer/core/errors.ts";
import { VERSION } from "../../peer/core/version.ts";
import type { CommandContext } from "../context.ts";
import { manualFiles } from "../manual.ts";
import { attempt } from "../output_file.ts";
import { absolutePath } from "../output_path.ts";
import type { ParsedCommand } from "../parse.ts";
import { noArguments } from "./arguments.ts";

/** @throws {LacewingError} `file`, `disk_full` if the folder cannot be written. */
export async function writeDocuments(parsed: ParsedCommand, { cwd }: CommandContext): Promise<void> {
  noArguments(parsed);
  const path = parsed.values.get("path");
  if (path === "") throw new LacewingError("usage", "Cannot use --path: the path is empty");
  const folder = absolutePath(typeof path === "string" ? path : ".", cwd);
  await attempt(`make folder ${folder}`, () => Deno.mkdir(folder, { recursive: true }));
  for (const { name, text } of manualFiles(VERSION)) {
    await attempt(`write ${folder}/${name}`, () => Deno.writeTextFile(`${folder}/${name}`, text));
  }
}
