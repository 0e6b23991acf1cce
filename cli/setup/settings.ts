/** From the texts of a command line to what `setup` is asked for. Pure: nothing is looked up on this machine. */
import { LacewingError } from "../../peer/core/errors.ts";
import { NotKnown, type ParsedCommand } from "../parse.ts";
import { type Registry, type Runtime, RUNTIMES } from "./plan.ts";
import { readRegistry } from "./registries.ts";

export interface SetupSettings {
  readonly runtime: Runtime;
  readonly registries: readonly Registry[];
  /** Null: it is not given. */
  readonly mirror: URL | null;
  /** As given; null: the machine's own. */
  readonly root: string | null;
  readonly dryRun: boolean;
  readonly remove: boolean;
}

/** @throws {LacewingError} `usage` naming what was given and what would be right. */
export function readSetupSettings({ positionals, values }: ParsedCommand): SetupSettings {
  const [word, ...more] = positionals;
  const known = RUNTIMES.join(", ");
  if (word === undefined) throw usage(`Cannot set up: no runtime is given, want one of ${known}`);
  const runtime = RUNTIMES.find((name) => name === word);
  if (runtime === undefined) {
    throw new NotKnown(`Cannot set up ${JSON.stringify(word)}: want one of ${known}`, { word, known: RUNTIMES });
  }
  const named = values.get("registry") as readonly string[] | undefined ?? [];
  // `--registry A B` reads as naming both.
  if (named.length === 0 && more.length > 0) {
    throw usage(`Cannot use ${JSON.stringify(more[0])}: "setup" takes one runtime; registries are named by --registry`);
  }
  const root = values.get("root");
  if (root === "") throw usage("Cannot use --root: the path is empty");
  const registries = new Map([...named, ...more].map(readRegistry).map((registry) => [registry.host, registry]));
  return {
    runtime,
    registries: [...registries.values()],
    mirror: readMirror((values.get("mirror") as readonly string[] | undefined)?.at(-1) ?? null),
    root: typeof root === "string" ? root : null,
    dryRun: values.get("dry-run") === true,
    remove: values.get("remove") === true,
  };
}

function readMirror(text: string | null): URL | null {
  if (text === null) return null;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === "") {
    throw usage(
      `Cannot use --mirror ${JSON.stringify(text)}: want an http or https URL such as http://127.0.0.1:65001`,
    );
  }
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") {
    throw usage(`Cannot use --mirror ${url.origin}: want scheme, host and port alone, without user, path or query`);
  }
  return url;
}

function usage(message: string): LacewingError {
  return new LacewingError("usage", message);
}
