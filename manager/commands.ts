/**
 * The manager's commands: they work on its store, also while it runs, and
 * return the text to print.
 */
import { LacewingError } from "../peer/core/errors.ts";
import { parseDuration } from "../peer/core/units.ts";
import type { ManagerConfig } from "./config.ts";
import { makeToken, tokenView } from "./routes/tokens.ts";
import { databasePath, openStore, type Store } from "./store/store.ts";
import { TOKEN_SCOPES, type TokenScope } from "./store/tokens.ts";
import { makeWorkHome } from "./work_home.ts";

export const COMMANDS = ["migrate", "token"] as const;
export type Command = typeof COMMANDS[number];

export interface CommandFlags {
  readonly name?: string;
  readonly scopes?: string;
  readonly expires?: string;
}

export function isCommand(name: string): name is Command {
  return (COMMANDS as readonly string[]).includes(name);
}

/** @throws {LacewingError} `usage`, and what the store throws. */
export async function runCommand(
  command: Command,
  args: readonly string[],
  { config, flags }: { config: ManagerConfig; flags: CommandFlags },
): Promise<string> {
  const action = command === "token" ? tokenAction(args, flags) : migrateAction(args);
  makeWorkHome(config.workHome);
  await using store = await openStore(databasePath(config.database.url, config.workHome));
  return await action(store);
}

type Action = (store: Store) => string | Promise<string>;

/** Opening the store migrates it; this says what that did. */
function migrateAction(args: readonly string[]): Action {
  if (args.length > 0) throw new LacewingError("usage", `Cannot run migrate: it takes no argument, not ${args[0]}`);
  return ({ migrated }) =>
    migrated.length === 0 ? "The database is up to date.\n" : migrated.map((name) => `applied ${name}\n`).join("");
}

function tokenAction([verb, ...rest]: readonly string[], flags: CommandFlags): Action {
  const wanted = verb === "revoke" ? 1 : 0;
  if (rest.length > wanted) {
    throw new LacewingError("usage", `Cannot run token ${verb}: ${rest[wanted]} is one argument too many`);
  }
  if (verb === "list") {
    return async ({ tokens }) => (await tokens.list()).map((token) => JSON.stringify(tokenView(token)) + "\n").join("");
  }
  if (verb === "revoke") {
    const id = Number(rest[0]);
    if (!Number.isSafeInteger(id) || id < 1) {
      throw new LacewingError("usage", "Cannot run token revoke: want the id of a token; token list shows them");
    }
    return async ({ tokens }) => {
      await tokens.remove(id);
      return `revoked token ${id}\n`;
    };
  }
  if (verb === "create") return createAction(flags);
  throw new LacewingError("usage", "Cannot run token: want token create, token list or token revoke ID");
}

function createAction({ name, scopes, expires }: CommandFlags): Action {
  if (name === undefined || scopes === undefined) {
    throw new LacewingError("usage", "Cannot run token create: want --name NAME and --scopes SCOPE[,SCOPE…]");
  }
  const list = [...new Set(scopes.split(",").map((scope) => scope.trim()))];
  const unknown = list.find((scope) => !(TOKEN_SCOPES as readonly string[]).includes(scope));
  if (unknown !== undefined) {
    throw new LacewingError(
      "usage",
      `Cannot read --scopes: ${JSON.stringify(unknown)} is none of ${TOKEN_SCOPES.join(", ")}`,
    );
  }
  const expiresAtMs = expires === undefined ? null : Date.now() + parseDuration(expires);
  return async ({ tokens }) =>
    (await makeToken(tokens, { name, bio: "", scopes: list as TokenScope[], expiresAtMs })).token + "\n";
}
