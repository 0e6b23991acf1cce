/**
 * `lacewing <url> -O <path>`: one content into one output, or with
 * --recursive a folder into a folder; with the deadline, the log and the
 * cleaning up that both have.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import { machineFacts } from "../../peer/core/machine.ts";
import { formatDuration } from "../../peer/core/units.ts";
import { openClientLog } from "../client_log.ts";
import type { CommandContext } from "../context.ts";
import { Delivery } from "../delivery.ts";
import { type ContentJob, fetchContent, type Outcome, usualReach } from "../fetch_content.ts";
import { LinkedOutput } from "../linked_output.ts";
import { OutputFile } from "../output_file.ts";
import { absolutePath, outputPath, splitPath } from "../output_path.ts";
import type { ParsedCommand } from "../parse.ts";
import { ProgressDisplay } from "../progress.ts";
import { type DownloadSettings, readDaemonSettings, readDownloadSettings, wantsPlugin } from "../settings.ts";
import { renderSummary } from "../summary.ts";
import { safeLine } from "../terminal.ts";
import { beginTracing } from "../tracing.ts";

/** @throws {LacewingError} with the code of what went wrong */
export async function download(parsed: ParsedCommand, around: CommandContext): Promise<void> {
  const asked = readDownloadSettings(
    parsed,
    around.env,
    wantsPlugin(parsed) ? await pluginSchemes(parsed, around) : [],
  );
  const startedMs = around.clock.nowMs();
  using deadline = startDeadline(asked.timeoutMs, around.signal);
  const { signal } = deadline;
  using clientLog = openClientLog(asked, { facts: machineFacts(), cwd: around.cwd });
  const { log } = clientLog;
  await using tracing = await beginTracing(asked, { context: around, log });
  const { settings, context } = tracing;
  try {
    await checkConfig(settings, context);
    if (settings.recursive !== null) {
      const { downloadTree } = await import("../recursive/tree.ts");
      return await downloadTree({ ...settings, recursive: settings.recursive }, { context, signal, log });
    }
    const path = settings.output === "-"
      ? null
      : outputPath(settings.output, { ...context, url: settings.url, isFolder });
    const linked = path === null || !settings.originalOffset ? null : await LinkedOutput.prepare(path, {
      digest: settings.digest,
      signal,
    });
    using output = path === null || linked !== null ? null : await OutputFile.prepare(path);
    using _cleanup = onExit(context, () => output?.discard());
    log.info("download", { url: settings.url, output: path, tag: settings.tag, filter: settings.filter });
    const outcome = await run(settings, {
      context,
      signal,
      log,
      output,
      linked,
      name: path === null ? "-" : splitPath(path).base,
    });
    const elapsedMs = context.clock.nowMs() - startedMs;
    log.info("done", { ...outcome.stats, direct: outcome.direct, elapsed_ms: Math.round(elapsedMs) });
    context.terminal.write(`${safeLine(renderSummary({ ...outcome, elapsedMs }))}\n`);
    tracing.end({ "lacewing.length": outcome.stats.length, "lacewing.direct": outcome.direct });
  } catch (error) {
    const reason = signal.aborted ? signal.reason : error;
    tracing.end({}, reason);
    log.error("failed", { error: reason });
    throw reason;
  }
}

async function run(
  settings: DownloadSettings,
  { context, signal, log, output, linked, name }: Pick<ContentJob, "context" | "signal" | "log" | "linked"> & {
    output: OutputFile | null;
    name: string;
  },
): Promise<Outcome> {
  using display = settings.showProgress ? new ProgressDisplay(context.terminal, { name, clock: context.clock }) : null;
  const delivery = new Delivery({ output, digest: settings.digest, signal });
  const job: ContentJob = {
    ...usualReach(settings, { context, log, signal }),
    settings,
    context,
    signal,
    log,
    linked,
    delivery,
    onProgress: (progress) => display?.update(progress),
    say: (message) => {
      const line = `lacewing: ${safeLine(message)}`;
      if (display === null) context.terminal.write(`${line}\n`);
      else display.say(line);
    },
  };
  return await fetchContent(job);
}

async function pluginSchemes(parsed: ParsedCommand, context: CommandContext): Promise<string[]> {
  const { originPlugins } = await import("../direct/origin_source.ts");
  await using plugins = await originPlugins(readDaemonSettings(parsed, context.env), context);
  return (await plugins.files()).map(({ scheme }) => scheme);
}

/** A configuration that was named must be there, whoever reads it in the end. */
async function checkConfig({ config }: DownloadSettings, { cwd }: CommandContext): Promise<void> {
  if (config === null) return;
  const path = absolutePath(config, cwd);
  try {
    (await Deno.open(path)).close();
  } catch (cause) {
    const reason = cause instanceof Deno.errors.NotFound ? "no such file" : "it cannot be read";
    throw new LacewingError("config_invalid", `Cannot read configuration ${path}: ${reason}`, { cause });
  }
}

/** A signal that ends with the user's signals, or after `timeoutMs`; 0 never. */
function startDeadline(timeoutMs: number, signal: AbortSignal): Disposable & { signal: AbortSignal } {
  if (timeoutMs === 0) return { signal, [Symbol.dispose]: () => {} };
  const late = new AbortController();
  const reason = new LacewingError("timeout", `Cannot finish within ${formatDuration(timeoutMs)}, the --timeout`);
  // Longer than a timer can count (24 days) is as good as never.
  const timer = setTimeout(() => late.abort(reason), Math.min(timeoutMs, 2 ** 31 - 1));
  return { signal: AbortSignal.any([signal, late.signal]), [Symbol.dispose]: () => clearTimeout(timer) };
}

function onExit({ cleanups }: CommandContext, cleanup: () => void): Disposable {
  cleanups.add(cleanup);
  return { [Symbol.dispose]: () => cleanups.delete(cleanup) };
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}
