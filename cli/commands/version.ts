/** `lacewing version [--json]`. */
import { VERSION } from "../../peer/core/version.ts";
import type { ParsedCommand } from "../parse.ts";
import { writeStdout } from "../terminal.ts";
import { noArguments } from "./arguments.ts";

/** What `version --json` prints. */
export interface VersionFacts {
  readonly version: string;
  /** Of the checkout that this runs from; null where that is not known. */
  readonly commit: string | null;
  readonly deno: string;
  readonly platform: string;
}

export async function showVersion(parsed: ParsedCommand): Promise<void> {
  noArguments(parsed);
  const facts: VersionFacts = {
    version: VERSION,
    commit: commit(),
    deno: Deno.version.deno,
    platform: `${Deno.build.os}/${Deno.build.arch}`,
  };
  await writeStdout(
    parsed.values.get("json") === true
      ? `${JSON.stringify(facts)}\n`
      : `lacewing ${facts.version} (commit ${facts.commit ?? "unknown"}, Deno ${facts.deno}, ${facts.platform})\n`,
  );
}

/** Of a bundle and an executable: .ci/compile.ts writes it between the quotes. */
const BUILT_FROM = "";

/** Of what was built, else read from the checkout itself. */
function commit(): string | null {
  return BUILT_FROM === "" ? commitOf(new URL("../../", import.meta.url)) : BUILT_FROM;
}

/** The commit that is checked out; null where there is no repository. */
export function commitOf(root: URL): string | null {
  const head = read(new URL(".git/HEAD", root));
  const reference = head?.match(/^ref: (refs\/[\w./-]+)$/)?.[1];
  const id = reference === undefined
    ? head
    : read(new URL(`.git/${reference}`, root)) ?? packed(read(new URL(".git/packed-refs", root)), reference);
  return id !== null && id !== undefined && /^[0-9a-f]{40,64}$/.test(id) ? id : null;
}

function packed(references: string | null, name: string): string | null {
  return references?.split("\n").find((line) => line.endsWith(` ${name}`))?.split(" ")[0] ?? null;
}

function read(url: URL): string | null {
  try {
    return Deno.readTextFileSync(url).trim();
  } catch {
    return null;
  }
}
