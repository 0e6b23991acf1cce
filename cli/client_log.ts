/** Where the client's log records go: stdout with `--console`, else the bounded file in its folder. */
import { createLogger, type Logger } from "../peer/core/log.ts";
import { openLogFile } from "../peer/core/log_file.ts";
import { defaultLogDir, type PathFacts } from "../peer/core/paths.ts";
import { absolutePath } from "./output_path.ts";
import type { DaemonSettings } from "./settings.ts";

export interface ClientLog extends Disposable {
  readonly log: Logger;
}

/** @throws {LacewingError} `file` if the folder was given and cannot be written; the default one is then left out. */
export function openClientLog(settings: DaemonSettings, { facts, cwd }: { facts: PathFacts; cwd: string }): ClientLog {
  const level = settings.verbose ? "debug" : "info";
  if (settings.console) {
    return { log: createLogger(toStdout, { level, room: "client" }), [Symbol.dispose]: () => {} };
  }
  const folder = settings.logDir === null ? defaultLogDir(facts, "client") : absolutePath(settings.logDir, cwd);
  try {
    const file = openLogFile(`${folder}/core.log`);
    const log = createLogger((line) => file.write(line), { level, room: "client" });
    return { log, [Symbol.dispose]: () => file[Symbol.dispose]() };
  } catch (error) {
    if (settings.logDir !== null) throw error;
    return { log: createLogger(() => {}), [Symbol.dispose]: () => {} };
  }
}

function toStdout(line: string): void {
  let bytes = new TextEncoder().encode(line + "\n");
  try {
    while (bytes.length > 0) bytes = bytes.subarray(Deno.stdout.writeSync(bytes));
  } catch {
    // Nobody reads them any more.
  }
}
