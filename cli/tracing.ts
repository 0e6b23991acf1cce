/**
 * The client's part of a trace, and its profiles. Both are loaded only where
 * the command line asks for them.
 */
import type { Logger } from "../peer/core/log.ts";
import type { Attributes, Span, Tracer } from "../peer/core/telemetry.ts";
import type { CommandContext } from "./context.ts";
import type { DownloadSettings } from "./settings.ts";

export interface Tracing extends AsyncDisposable {
  /** The settings as the download gets them: what it asks others for belongs to its span. */
  readonly settings: DownloadSettings;
  readonly context: CommandContext;
  /** Ends the download's span; only the first call counts. */
  end(attributes: Attributes, error?: unknown): void;
}

/** @throws {LacewingError} `network` when the port of the profiles is taken */
export async function beginTracing(
  settings: DownloadSettings,
  { context, log }: { context: CommandContext; log: Logger },
): Promise<Tracing> {
  const { jaeger, serviceName, pprofPort } = settings;
  if (jaeger === null && pprofPort === null) {
    return { settings, context, end() {}, [Symbol.asyncDispose]: () => Promise.resolve() };
  }
  const { startDiagnostics } = await import("../peer/core/diagnostics.ts");
  const diagnostics = await startDiagnostics({ collector: jaeger, serviceName, pprofPort, log });
  const { tracer, pprof } = diagnostics;
  if (pprof !== null) context.terminal.write(`lacewing: profiles at ${pprof}\n`);
  const span = startSpan(settings, tracer);
  return {
    settings: span.traceparent === undefined ? settings : { ...settings, traceparent: span.traceparent },
    context: tracer.isOn ? { ...context, tracer } : context,
    end(attributes, error) {
      span.set(attributes);
      span.end(error);
    },
    async [Symbol.asyncDispose]() {
      span.end();
      await diagnostics[Symbol.asyncDispose]();
    },
  };
}

function startSpan({ url, tag, range, recursive }: DownloadSettings, tracer: Tracer): Span {
  return tracer.start("download", {
    kind: "client",
    attributes: {
      "url.full": url,
      "lacewing.tag": tag === "" ? undefined : tag,
      "lacewing.has_range": range !== null,
      "lacewing.recursive": recursive !== null,
    },
  });
}
