/**
 * The folder of one daemon: made at the first start, held by a lock while the
 * daemon runs, so that a second one says so and leaves. The lock goes with the
 * process, however it ends.
 */
import { LacewingError } from "./core/errors.ts";

export interface WorkHome extends Disposable {
  readonly path: string;
}

/**
 * @throws {LacewingError} `already_running` when another daemon holds it, `file` when it cannot be used.
 */
export async function lockWorkHome(path: string): Promise<WorkHome> {
  let file: Deno.FsFile;
  try {
    await Deno.mkdir(path, { recursive: true, mode: 0o755 });
    file = await Deno.open(`${path}/daemon.lock`, { create: true, read: true, write: true });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LacewingError("file", `Cannot use work home ${path}: ${reason}; give another one with --workhome`, {
      cause,
    });
  }
  if (await file.tryLock(true)) {
    file.truncateSync();
    file.writeSync(new TextEncoder().encode(`${Deno.pid}\n`));
    return { path, [Symbol.dispose]: () => file.close() };
  }
  const holder = new TextDecoder().decode(await readSome(file)).trim();
  file.close();
  throw new LacewingError(
    "already_running",
    `Cannot start: a daemon${holder === "" ? "" : ` (process ${holder})`} already runs on work home ${path}`,
  );
}

async function readSome(file: Deno.FsFile): Promise<Uint8Array> {
  const buffer = new Uint8Array(32);
  return buffer.subarray(0, await file.read(buffer) ?? 0);
}
