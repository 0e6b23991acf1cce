/** What a command gets of the process around it; a test gives its own. */
import type { Clock } from "../peer/core/clock.ts";
import type { Tracer } from "../peer/core/telemetry.ts";
import type { Terminal } from "./terminal.ts";

export interface CommandContext {
  readonly terminal: Terminal;
  readonly clock: Clock;
  /** Aborted when the user stops the command; its reason says how. */
  readonly signal: AbortSignal;
  /** What must still be done when the process is ended at once. */
  readonly cleanups: Set<() => void>;
  readonly cwd: string;
  readonly env: (name: string) => string | undefined;
  /** Left out where nobody traces. */
  readonly tracer?: Tracer;
}
