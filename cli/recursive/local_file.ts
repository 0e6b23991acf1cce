/**
 * What stands in the output folder where a file of the tree shall go. Nothing
 * below the folder is followed or replaced but plain files: a symbolic link in
 * the way could lead out of it.
 */
import { attempt, lstat, OutputError } from "../output_file.ts";

/** A file as it lies in the output folder. */
export interface LocalFile {
  readonly size: number;
  readonly modifiedMs: number;
}

/** What the origin says of a file; null where it does not say exactly. */
export interface RemoteFile {
  readonly size: number | null;
  readonly modifiedMs: number | null;
}

/**
 * Whether a file is what the origin has: length and time, which a download sets to the origin's.
 *
 * @returns null when the origin must be asked
 */
export function isCurrent(local: LocalFile, { size, modifiedMs }: RemoteFile): boolean | null {
  if (size !== null && size !== local.size) return false;
  if (modifiedMs !== null && seconds(modifiedMs) !== seconds(local.modifiedMs)) return false;
  return size === null || modifiedMs === null ? null : true;
}

/**
 * Looks where a file shall go.
 *
 * @param path names below `root`
 * @returns the file that is there, or null
 * @throws {LacewingError} `file` when something else is in the way
 */
export async function lookBelow(root: string, path: readonly string[]): Promise<LocalFile | null> {
  const names = [...path];
  const last = names.pop() ?? "";
  const folder = await checkFolders(root, names);
  if (folder === null) return null;
  const found = await lstat(`${folder}/${last}`);
  if (found === null || found.isSymlink) return null;
  if (found.isDirectory) throw new OutputError("file", `Cannot write ${folder}/${last}: a folder is in its place`);
  return found.isFile ? { size: found.size, modifiedMs: found.mtime?.getTime() ?? 0 } : null;
}

/** Makes a folder and those around it, below `root`. @throws {LacewingError} `file` when something is in the way */
export async function makeFolders(root: string, path: readonly string[]): Promise<void> {
  await checkFolders(root, path);
  const folder = [root, ...path].join("/");
  await attempt(`make folder ${folder}`, () => Deno.mkdir(folder, { recursive: true }));
}

/** Dates a file as the origin does; where this user may not, the next run fetches it again. */
export async function dateFile(path: string, modifiedMs: number): Promise<void> {
  try {
    const { mtime } = await Deno.lstat(path);
    if (seconds(mtime?.getTime() ?? -1) === seconds(modifiedMs)) return;
    await Deno.utime(path, new Date(modifiedMs), new Date(modifiedMs));
  } catch {
    // A link of the daemon's file has its date already, and another owner.
  }
}

/** @returns the folder's path, or null where a part of it is not there yet */
async function checkFolders(root: string, names: readonly string[]): Promise<string | null> {
  let folder = root;
  for (const name of names) {
    folder += `/${name}`;
    const found = await lstat(folder);
    if (found === null) return null;
    if (found.isSymlink) {
      throw new OutputError("file", `Cannot write into ${folder}: it is a symbolic link, which is not followed`);
    }
    if (!found.isDirectory) throw new OutputError("file", `Cannot make folder ${folder}: a file is in its place`);
  }
  return folder;
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}
