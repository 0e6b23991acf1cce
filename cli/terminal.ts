/**
 * What is written to stderr for people. Nothing from a URL, a header or another
 * host reaches the terminal with control characters in it, secrets are blotted
 * out, and the length is bounded: the one place for all three.
 */
import { escapeControls, redactText } from "../peer/core/log.ts";
import { writeAll } from "../peer/core/wire/json_lines.ts";

/** Characters of one line of a message. */
const MESSAGE_LENGTH_MAX = 2000;

/** What is said on stderr; a test gives its own. */
export interface Terminal {
  /** Columns of the terminal behind stderr; null when there is none. */
  columns(): number | null;
  /** Writes text as it is. */
  write(text: string): void;
  /** Whether the bar may use colours and move the cursor. */
  readonly plain: boolean;
}

/** The stderr of this process; a closed one is no failure of the download. */
export function stderrTerminal(env: (name: string) => string | undefined = (name) => Deno.env.get(name)): Terminal {
  return {
    columns: () => Deno.stderr.isTerminal() ? columnsOf(env) : null,
    write: (text) => {
      let bytes = new TextEncoder().encode(text);
      try {
        while (bytes.length > 0) bytes = bytes.subarray(Deno.stderr.writeSync(bytes));
      } catch {
        // Nobody reads it any more.
      }
    },
    plain: env("TERM") === "dumb",
  };
}

/** A message as one harmless line: escaped, redacted, cut. */
export function safeLine(message: string): string {
  const line = redactText(message).replace(/\s*\n\s*/g, " ");
  const escaped = escapeControls(line);
  return escaped.length <= MESSAGE_LENGTH_MAX ? escaped : `${escaped.slice(0, MESSAGE_LENGTH_MAX)}…`;
}

/** All of the text to stdout. @throws {Deno.errors.BrokenPipe} when its reader is gone */
export async function writeStdout(text: string): Promise<void> {
  await writeAll(Deno.stdout, new TextEncoder().encode(text));
}

function columnsOf(env: (name: string) => string | undefined): number {
  try {
    return Deno.consoleSize().columns;
  } catch {
    return Number(env("COLUMNS")) || 80;
  }
}
