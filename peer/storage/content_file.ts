/**
 * The data files of the store: where they lie, how they are made, which of
 * them nobody owns, and whether one is still what was recorded of it.
 *
 * A finished file shares its inode with the outputs that were linked to it, so
 * that a user may have edited it: before such a file is mended, it gets an
 * inode of its own, and the user's file stays as it is.
 */
import { closeSync, fchmodSync, ftruncateSync, openSync } from "node:fs";
import { pieceCount, pieceRange } from "../core/piece.ts";
import { sha256Hex } from "../core/digest.ts";
import { type Content, type ContentFile, layoutOf } from "./content.ts";
import { isMissing } from "./file_errors.ts";
import type { GenerationRecord } from "./metadata.ts";

const DATA_FILE = /^([0-9a-f]{64})\.[\w-]{1,64}\.data(\.new)?$/;
const SAFE_GENERATION = /^[\w-]{1,64}$/;
/** Others may read a file that is linked to an output; the folder above keeps them out until then. */
const FILE_MODE = 0o644;

/** Absolute path of a generation's file. A generation's name came over a wire: what is no plain name is digested. */
export function dataPath(folder: string, { spec, meta }: Pick<GenerationRecord, "spec" | "meta">): string {
  const { task_id: taskId } = spec;
  const name = SAFE_GENERATION.test(meta.generation) ? meta.generation : sha256Hex(meta.generation).slice(0, 32);
  return `${folder}/${taskId.slice(0, 3)}/${taskId}.${name}.data`;
}

/** Makes the sparse file of a content; one that is there already is replaced. */
export async function createDataFile(path: string, length: number): Promise<ContentFile> {
  const descriptor = await createNew(path);
  try {
    fchmodSync(descriptor, FILE_MODE);
    ftruncateSync(descriptor, length);
  } catch (error) {
    closeSync(descriptor);
    await removeFile(path);
    throw error;
  }
  return { path, descriptor };
}

/** Nearly always the folder is there and the file is not: that is tried first. */
async function createNew(path: string): Promise<number> {
  try {
    return openSync(path, "wx+", FILE_MODE);
  } catch {
    // What else is in the way is said below.
  }
  await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  await removeFile(path);
  return openSync(path, "wx+", FILE_MODE);
}

/** Removes a file; one that is not there is fine. */
export async function removeFile(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** What became of a file since it was recorded. */
export type FileState = "same" | "doubtful" | "missing";

/**
 * Whether a file may be taken at its record's word. Pure.
 *
 * @param found size and modification time on disk, or null when there is no file
 */
export function judgeFile(
  record: Pick<GenerationRecord, "meta" | "complete" | "suspect" | "fileMtimeMs">,
  found: { size: number; mtimeMs: number } | null,
): FileState {
  if (found === null) return "missing";
  if (record.suspect || found.size !== record.meta.content_length) return "doubtful";
  return record.complete && record.fileMtimeMs !== found.mtimeMs ? "doubtful" : "same";
}

/** Size, modification time and number of names of a file, or null when there is none. */
export async function lookAt(path: string): Promise<{ size: number; mtimeMs: number; nameCount: number } | null> {
  try {
    const { size, mtime, nlink } = await Deno.lstat(path);
    return { size, mtimeMs: mtime?.getTime() ?? 0, nameCount: nlink ?? 1 };
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Opens a file for reading and writing, with the length that it should have. */
export function openDataFile(path: string, { length, size }: { length: number; size: number }): ContentFile {
  const descriptor = openSync(path, "r+");
  try {
    if (size !== length) ftruncateSync(descriptor, length);
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
  return { path, descriptor };
}

/** Gives a path an inode of its own with the same bytes. */
export async function breakLink(path: string): Promise<void> {
  const copy = `${path}.new`;
  await Deno.copyFile(path, copy);
  await Deno.chmod(copy, FILE_MODE);
  await Deno.rename(copy, path);
}

/** Numbers of the pieces whose bytes do not have the digest that is recorded. */
export async function findWrongPieces(content: Content): Promise<number[]> {
  const layout = layoutOf(content.record);
  if (pieceCount(layout) === 0) return [];
  const buffer = new Uint8Array(Math.min(layout.pieceLength, layout.contentLength));
  const wrong: number[] = [];
  for (const [number, digest] of content.digests()) {
    const { offset, length } = pieceRange(number, layout);
    const bytes = buffer.subarray(0, length);
    const count = await content.read(bytes, offset);
    if (count !== length || sha256Hex(bytes) !== digest) wrong.push(number);
  }
  return wrong;
}

/** Removes every data file that is not of `known`, and folders that are left empty. @returns how many files */
export async function removeOrphans(folder: string, known: ReadonlySet<string>): Promise<number> {
  let count = 0;
  for await (const { name: prefix, isDirectory } of Deno.readDir(folder)) {
    if (!isDirectory || !/^[0-9a-f]{3}$/.test(prefix)) continue;
    let isEmpty = true;
    for await (const { name } of Deno.readDir(`${folder}/${prefix}`)) {
      const path = `${folder}/${prefix}/${name}`;
      if (!DATA_FILE.test(name) || known.has(path)) {
        isEmpty = false;
        continue;
      }
      await removeFile(path);
      count += 1;
    }
    if (isEmpty) await Deno.remove(`${folder}/${prefix}`);
  }
  return count;
}
