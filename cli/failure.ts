/**
 * The one place where a failure becomes an exit code and a line on stderr:
 * what went wrong, and what to do about it. Codes come from the table of
 * peer/core/errors.ts; an error that nobody expected is said to be one.
 */
import { type ErrorCode, ERRORS, LacewingError } from "../peer/core/errors.ts";
import { NotKnown } from "./parse.ts";
import { safeLine } from "./terminal.ts";

/** Why the command was stopped from outside; the reason of the aborted signal. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";

  constructor(readonly signal: "SIGINT" | "SIGTERM" | "SIGHUP") {
    super(`stopped by ${signal}`);
  }
}

/** How the process ends. */
export interface Failure {
  readonly exitCode: number;
  /** Line for stderr, without newline; null: nothing is said. */
  readonly line: string | null;
}

/** 128 and the number of the signal, as shells have it. */
const SIGNAL_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
/** 128 + SIGPIPE: the reader of stdout has gone. */
const PIPE_CLOSED_CODE = 141;
/** A defect, not a failure: INTERFACE's "unknown failure". */
const DEFECT_CODE = 1;

const HINTS: Partial<Record<ErrorCode, string>> = {
  usage: 'see "lacewing help"',
  no_daemon: 'start one with "lacewing daemon", or leave out --disable-back-source and --original-offset',
  no_holder: "leave out --disable-back-source to read the origin",
  source_refused: "give credentials with --header",
  tls: "give the daemon further CA certificates in download.source.caCerts of its configuration",
  disk_full: "make room, or choose another --output",
  digest_mismatch: "the content is not what the digest promises; nothing was kept",
  content_changed: "run the command again to get the new content",
};

/** What an error means to the one who ran the command. */
export async function explain(error: unknown): Promise<Failure> {
  if (error instanceof Interrupted) return { exitCode: SIGNAL_CODES[error.signal], line: null };
  if (error instanceof Deno.errors.BrokenPipe) return { exitCode: PIPE_CLOSED_CODE, line: null };
  if (error instanceof LacewingError) {
    const hint = error instanceof NotKnown ? await didYouMean(error) : HINTS[error.code];
    const text = hint === undefined ? error.message : `${error.message} (${hint})`;
    return { exitCode: ERRORS[error.code].exitCode, line: `lacewing: ${safeLine(text)}` };
  }
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return {
    exitCode: DEFECT_CODE,
    line: `lacewing: ${safeLine(`unexpected ${text} (this is a defect of lacewing; the log has more)`)}`,
  };
}

async function didYouMean({ word, known }: NotKnown): Promise<string | undefined> {
  const { nearest } = await import("../peer/core/config.ts");
  const near = nearest(word, known);
  return near === null ? HINTS.usage : `did you mean ${near}?`;
}
