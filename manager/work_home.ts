/**
 * The folder of one manager, for its user alone, and the locks that keep a
 * second manager from it and from its database. A lock goes with the process,
 * however it ends.
 */
import { LacewingError } from "../peer/core/errors.ts";

/**
 * Makes the folder if it is missing.
 *
 * @throws {LacewingError} `file` when it cannot be made.
 */
export function makeWorkHome(path: string): void {
  try {
    Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new LacewingError("file", `Cannot use work home ${path}: ${reasonOf(cause)}; name another with --workhome`, {
      cause,
    });
  }
}

/**
 * Takes a lock, or says who has it.
 *
 * @param what names the thing for messages
 * @throws {LacewingError} `already_running` when another process holds it, `file` when it cannot be written.
 */
export async function lock(path: string, what: string): Promise<Disposable> {
  let file: Deno.FsFile;
  try {
    file = await Deno.open(path, { create: true, read: true, write: true, mode: 0o600 });
  } catch (cause) {
    throw new LacewingError("file", `Cannot lock ${what}: ${reasonOf(cause)}`, { cause });
  }
  if (await file.tryLock(true)) {
    file.truncateSync();
    file.writeSync(new TextEncoder().encode(`${Deno.pid}\n`));
    return { [Symbol.dispose]: () => file.close() };
  }
  const buffer = new Uint8Array(32);
  const holder = new TextDecoder().decode(buffer.subarray(0, file.readSync(buffer) ?? 0)).trim();
  file.close();
  throw new LacewingError(
    "already_running",
    `Cannot start: another manager (process ${
      holder || "unknown"
    }) runs on ${what}; stop it, or use another --workhome`,
  );
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
