/**
 * What the store does once at its start and at its end: opens its database (a
 * damaged one is moved aside, never repaired), learns which run of the machine
 * this is, and brings written bytes to the disk before it says that it
 * stopped cleanly.
 */
import { open } from "node:fs/promises";
import { systemClock } from "../core/clock.ts";
import type { Logger } from "../core/log.ts";
import { removeFile } from "./content_file.ts";
import { isDamagedDatabase, isMissing } from "./file_errors.ts";
import { Metadata } from "./metadata.ts";

const DATABASE = "pieces.db";
const BOOT_ID_PATH = "/proc/sys/kernel/random/boot_id";
/** A stop takes no longer for this; files not synced by then are checked if the machine goes down. */
const SYNC_TIME_MAX_MS = 5000;
const SYNC_FILES_AT_ONCE = 4;

/** Names this run of the machine, or null where the kernel gives no name. */
export async function readBootId(): Promise<string | null> {
  try {
    return (await Deno.readTextFile(BOOT_ID_PATH)).trim();
  } catch {
    return null;
  }
}

/** Opens the database; a damaged one is kept as `pieces.db.damaged` and an empty one takes its place. */
export async function openMetadata(
  folder: string,
  { bootId, log }: { bootId: string | null; log: Logger },
): Promise<Metadata> {
  const path = `${folder}/${DATABASE}`;
  try {
    return openWhole(path, { folder, bootId });
  } catch (error) {
    if (!isDamagedDatabase(error)) throw error;
    log.error("the store's database is damaged; it starts empty", { path, moved_to: `${path}.damaged`, error });
    await Deno.rename(path, `${path}.damaged`);
    await removeFile(`${path}-wal`);
    await removeFile(`${path}-shm`);
    return openWhole(path, { folder, bootId });
  }
}

/** Removes the database; one that is open elsewhere fails when it is opened. */
export async function removeMetadata(folder: string): Promise<void> {
  for (const suffix of ["", "-wal", "-shm"]) await removeFile(`${folder}/${DATABASE}${suffix}`);
}

/** Brings files to the disk. @returns whether every one of them is there */
export async function syncFiles(paths: string[], log: Logger): Promise<boolean> {
  if (paths.length === 0) return true;
  const done = new AbortController();
  const queue = [...paths];
  const workers = Array.from({ length: SYNC_FILES_AT_ONCE }, async () => {
    for (let path = queue.shift(); path !== undefined && !done.signal.aborted; path = queue.shift()) {
      await syncFile(path);
    }
  });
  try {
    const isDone = await Promise.race([
      Promise.all(workers).then(() => true),
      systemClock.sleep(SYNC_TIME_MAX_MS, done.signal).then(() => false),
    ]);
    if (!isDone) log.warn("not every file reached the disk before the stop", { waited_ms: SYNC_TIME_MAX_MS });
    return isDone;
  } catch (error) {
    log.warn("a file could not be brought to the disk", { error });
    return false;
  } finally {
    done.abort();
  }
}

async function syncFile(path: string): Promise<void> {
  try {
    const file = await open(path, "r+");
    try {
      await file.datasync();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Opens the database and reads all of it once, so that damage shows here and not in the middle of a download. */
function openWhole(path: string, { folder, bootId }: { folder: string; bootId: string | null }): Metadata {
  const metadata = new Metadata(path, { folder, bootId });
  try {
    metadata.generations();
    return metadata;
  } catch (error) {
    metadata.close(false);
    throw error;
  }
}
