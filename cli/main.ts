/**
 * `lacewing`: reads the command line, runs the command, and translates what
 * comes of it into an exit code and at most one line on stderr. Commands are
 * loaded when they are run: `version` must not wait for the code of a download.
 */
import { systemClock } from "../peer/core/clock.ts";
import { explain, Interrupted } from "./failure.ts";
import type { CommandContext } from "./context.ts";
import { parseCommand, type ParsedCommand } from "./parse.ts";
import { stderrTerminal } from "./terminal.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs one command line. @returns the exit code */
export async function main(args: readonly string[]): Promise<number> {
  const terminal = stderrTerminal();
  const stop = new AbortController();
  const cleanups = new Set<() => void>();
  try {
    const parsed = parseCommand(args);
    if (parsed.command === "daemon" && parsed.values.get("help") !== true) {
      // It has its own signals, its own log and its own exit codes.
      return await (await import("./commands/daemon.ts")).runDaemon(parsed, terminal);
    }
    using _signals = listen(stop, cleanups);
    await run(parsed, {
      terminal,
      cleanups,
      signal: stop.signal,
      clock: systemClock,
      cwd: Deno.cwd(),
      env: (name) => Deno.env.get(name),
    });
    return 0;
  } catch (error) {
    const { exitCode, line } = await explain(stop.signal.aborted ? stop.signal.reason : error);
    if (line !== null) terminal.write(`${line}\n`);
    return exitCode;
  }
}

async function run(parsed: ParsedCommand, context: CommandContext): Promise<void> {
  if (parsed.values.get("help") === true || parsed.command === "help") {
    return await (await import("./commands/help.ts")).showHelp(parsed);
  }
  switch (parsed.command) {
    case "completion":
      return await (await import("./commands/completion.ts")).showCompletion(parsed);
    case "doc":
      return await (await import("./commands/doc.ts")).writeDocuments(parsed, context);
    case "plugin":
      return await (await import("./commands/plugin.ts")).listSources(parsed, context);
    case "setup":
      return await (await import("./commands/setup.ts")).setUp(parsed, context);
    case "task":
      return await (await import("./commands/task.ts")).explainTask(parsed, context);
    case "version":
      return await (await import("./commands/version.ts")).showVersion(parsed);
    default:
      return await (await import("./commands/download.ts")).download(parsed, context);
  }
}

/** The first signal stops the command cleanly; a second one stops the process, still without leaving half files. */
function listen(stop: AbortController, cleanups: ReadonlySet<() => void>): Disposable {
  const handlers = SIGNALS.map((signal) => {
    const handle = () => {
      if (!stop.signal.aborted) return stop.abort(new Interrupted(signal));
      for (const cleanup of cleanups) cleanup();
      Deno.exit(130);
    };
    Deno.addSignalListener(signal, handle);
    return () => Deno.removeSignalListener(signal, handle);
  });
  return { [Symbol.dispose]: () => handlers.forEach((remove) => remove()) };
}

if (import.meta.main) Deno.exit(await main(Deno.args));
