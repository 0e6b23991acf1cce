/**
 * Turns what the file system and SQLite throw into the two codes of the store:
 * `disk_full` (no space or quota left) and `file` (everything else). SQLite
 * errors carry no code of their own here, so that their texts are matched in
 * this file and nowhere else.
 */
import { LacewingError } from "../core/errors.ts";

const FULL_CODES = new Set(["ENOSPC", "EDQUOT"]);

/**
 * The typed error for a failed file operation; a LacewingError passes untouched.
 *
 * @param action what was tried, after "Cannot": `write piece data`
 * @param folder the data folder that a full disk is reported with
 */
export function fileError(cause: unknown, { action, folder }: { action: string; folder: string }): LacewingError {
  if (cause instanceof LacewingError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  if (isDiskFull(cause)) {
    return new LacewingError(
      "disk_full",
      `Cannot ${action}: no space left in ${folder} (${reason}); free some, or lower storage.diskGCThreshold`,
      { cause },
    );
  }
  return new LacewingError("file", `Cannot ${action} in ${folder}: ${reason}`, { cause });
}

/** Whether a database error says that the file itself is damaged. */
export function isDamagedDatabase(error: unknown): boolean {
  return error instanceof Error && /malformed|not a database|disk image|corrupt/i.test(error.message);
}

/** Whether a database error says that another process holds the database. */
export function isLockedDatabase(error: unknown): boolean {
  return error instanceof Error && /database( table)? is locked/i.test(error.message);
}

/** Whether a file operation failed because the name does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound || codeOf(error) === "ENOENT";
}

function isDiskFull(error: unknown): boolean {
  if (FULL_CODES.has(codeOf(error))) return true;
  // Deno's own errors have no errno for a quota; SQLite only ever says it in words.
  return error instanceof Error && /os error (28|122)\)|database or disk is full/.test(error.message);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}
