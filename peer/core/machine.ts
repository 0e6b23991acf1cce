/**
 * The facts about this machine and user that `paths.ts` decides with, and the
 * private folder of a user's socket. Looks at the file system, keeps nothing.
 */
import { LacewingError } from "./errors.ts";
import type { PathFacts } from "./paths.ts";

/** This machine and this user. */
export function machineFacts(): PathFacts {
  return {
    platform: Deno.build.os,
    uid: Deno.uid(),
    env: (name) => Deno.env.get(name),
    writable,
  };
}

/**
 * Makes the folder of a socket, for this user alone. A folder under a shared
 * one (`/tmp`) that is another user's, or open to others, is not trusted: who
 * owns it could answer in the daemon's place.
 *
 * @throws {LacewingError} `file` if it cannot be made or is not this user's own.
 */
export function ensurePrivateFolder(folder: string): void {
  try {
    Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new LacewingError("file", `Cannot make folder ${folder}: ${reasonOf(cause)}`, { cause });
  }
  const state = Deno.lstatSync(folder);
  const foreign = state.uid !== null && state.uid !== Deno.uid();
  const open = state.mode !== null && (state.mode & 0o022) !== 0;
  if (!state.isDirectory || foreign || open) {
    throw new LacewingError(
      "file",
      `Cannot use folder ${folder}: it must be a folder that only its owner, this user, can write`,
    );
  }
}

/** Found out by doing it: only the system knows all its rules, and `node:fs` with its `access` takes 25 ms to load. */
function writable(folder: string): boolean {
  try {
    Deno.removeSync(Deno.makeTempFileSync({ dir: folder, prefix: ".lacewing-" }));
    return true;
  } catch {
    return !exists(folder) && canBeMadeIn(parentOf(folder));
  }
}

/** Whether a folder could be made in it, or in the nearest one above that is there. */
function canBeMadeIn(parent: string): boolean {
  return parent !== "/" && parent !== "" && writable(parent);
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
