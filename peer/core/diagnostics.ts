/**
 * What a process shows of its own work to those who look for faults: spans to
 * a collector and profiles over HTTP. Both are loaded only where they are asked
 * for, so that nobody else waits for their code.
 */
import { LacewingError } from "./errors.ts";
import type { Logger } from "./log.ts";
import { noTracer, type Tracer } from "./telemetry.ts";

export interface DiagnosticsOptions {
  /** URL of an OTLP/HTTP collector; null: no traces. */
  readonly collector: string | null;
  /** What the process is called in traces. */
  readonly serviceName: string;
  /** Port of the profiles on loopback, 0 for a free one; null: none. */
  readonly pprofPort: number | null;
  readonly log: Logger;
}

export interface Diagnostics extends AsyncDisposable {
  readonly tracer: Tracer;
  /** URL of the profiles. */
  readonly pprof: string | null;
}

/** @throws {LacewingError} `usage` for a collector that is no URL, `network` when the port is taken */
export async function startDiagnostics(
  { collector, serviceName, pprofPort, log }: DiagnosticsOptions,
): Promise<Diagnostics> {
  await using stack = new AsyncDisposableStack();
  const telemetry = collector === null
    ? null
    : stack.use((await import("./otlp.ts")).openTelemetry({ collector, serviceName, log: log.room("telemetry") }));
  const pprof = pprofPort === null
    ? null
    : stack.use(await (await import("./pprof_server.ts")).startPprofServer(pprofPort));
  const owned = stack.move();
  return {
    tracer: telemetry?.tracer ?? noTracer,
    pprof: pprof?.url ?? null,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/**
 * Reads `--pprof-port`.
 *
 * @returns null for -1, which is off
 * @throws {LacewingError} `usage`
 */
export function parsePprofPort(text: string): number | null {
  if (text === "-1") return null;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : NaN;
  if (port <= 65535) return port;
  throw new LacewingError("usage", `Cannot use port ${JSON.stringify(text)}: want 0 to 65535, or -1 for none`);
}
