/** Asks the daemon that runs one thing, and starts none: for commands that are worth something without it. */
import { LacewingError } from "../peer/core/errors.ts";
import { machineFacts } from "../peer/core/machine.ts";
import { socketCandidates } from "../peer/core/paths.ts";
import { connectDaemon, type DaemonConnection } from "../peer/ipc/client.ts";
import { absolutePath } from "./output_path.ts";

const ANSWER_TIMEOUT_MS = 10_000;

export interface Answer<T> {
  readonly value: T;
  /** Where the daemon was found. */
  readonly socket: string;
}

/**
 * Asks at the socket that was told, else at the usual places.
 *
 * @returns null, and the reason, where no daemon answers
 * @throws {LacewingError} what the daemon answers
 */
export async function askDaemon<T>(
  ask: (connection: DaemonConnection) => Promise<T>,
  { socket: told, cwd }: { socket: string | null; cwd: string },
): Promise<Answer<T> | { readonly value: null; readonly reason: LacewingError }> {
  let reason = new LacewingError("no_daemon", "no daemon answers");
  for (const socket of told === null ? socketCandidates(machineFacts()) : [absolutePath(told, cwd)]) {
    try {
      using connection = await connectDaemon(socket);
      const timer = setTimeout(() => connection[Symbol.dispose](), ANSWER_TIMEOUT_MS);
      return { value: await ask(connection).finally(() => clearTimeout(timer)), socket };
    } catch (error) {
      if (!(error instanceof LacewingError) || error.code !== "no_daemon") throw error;
      reason = error;
    }
  }
  return { value: null, reason };
}
