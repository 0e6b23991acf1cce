/**
 * The one table of expected failures. A code maps here, and nowhere else, to
 * an HTTP status (manager API), an exit code (client) and whether trying again
 * can help. Codes are public: added, never renamed. `cause` is always kept.
 */

/** What a code means at each edge. */
export interface ErrorFacts {
  /** HTTP status of the manager API. */
  readonly status: number;
  /** Exit code of the client, INTERFACE section 2. */
  readonly exitCode: number;
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean;
}

/** Every stable code with its meaning at the edges. */
export const ERRORS = {
  unknown: { status: 500, exitCode: 1, retryable: false },
  already_running: { status: 409, exitCode: 1, retryable: false },
  usage: { status: 400, exitCode: 2, retryable: false },
  config_invalid: { status: 500, exitCode: 2, retryable: false },
  source_not_found: { status: 404, exitCode: 3, retryable: false },
  source_refused: { status: 403, exitCode: 4, retryable: false },
  network: { status: 502, exitCode: 5, retryable: true },
  no_holder: { status: 404, exitCode: 5, retryable: true },
  timeout: { status: 504, exitCode: 6, retryable: true },
  tls: { status: 502, exitCode: 7, retryable: false },
  source_failed: { status: 502, exitCode: 8, retryable: true },
  disk_full: { status: 507, exitCode: 9, retryable: false },
  file: { status: 500, exitCode: 11, retryable: false },
  digest_mismatch: { status: 502, exitCode: 12, retryable: false },
  range_not_satisfiable: { status: 416, exitCode: 13, retryable: false },
  content_changed: { status: 409, exitCode: 13, retryable: true },
  no_daemon: { status: 503, exitCode: 14, retryable: true },
  policy: { status: 403, exitCode: 15, retryable: false },
  canceled: { status: 409, exitCode: 130, retryable: false },
  protocol: { status: 400, exitCode: 5, retryable: false },
  peer_failed: { status: 502, exitCode: 5, retryable: true },
  bad_request: { status: 400, exitCode: 2, retryable: false },
  invalid: { status: 422, exitCode: 2, retryable: false },
  unauthorized: { status: 401, exitCode: 4, retryable: false },
  forbidden: { status: 403, exitCode: 4, retryable: false },
  not_found: { status: 404, exitCode: 3, retryable: false },
  method_not_allowed: { status: 405, exitCode: 2, retryable: false },
  conflict: { status: 409, exitCode: 2, retryable: false },
  too_large: { status: 413, exitCode: 2, retryable: false },
  unsupported_media_type: { status: 415, exitCode: 2, retryable: false },
  too_many_requests: { status: 429, exitCode: 8, retryable: true },
  unavailable: { status: 503, exitCode: 5, retryable: true },
} as const satisfies Record<string, ErrorFacts>;

export type ErrorCode = keyof typeof ERRORS;

/** An expected failure: `code` is the contract, `message` is for people. */
export class LacewingError extends Error {
  override readonly name = "LacewingError";

  constructor(readonly code: ErrorCode, message: string, init?: ErrorOptions) {
    super(message, init);
  }
}

/** Whether `value` is one of the stable codes (a code that came over a wire may not be). */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(ERRORS, value);
}

/** Characters of a message on a wire; half of what a receiver takes. */
const WIRE_MESSAGE_LENGTH_MAX = 2000;

/** The error as it travels on a wire; anything unexpected becomes `unknown`. */
export function toWireError(error: unknown): { code: ErrorCode; message: string } {
  const message = error instanceof Error ? error.message : String(error);
  return { code: codeOf(error), message: message.slice(0, WIRE_MESSAGE_LENGTH_MAX) };
}

/** The code of anything thrown; aborts and timeouts of the platform have one, too. */
function codeOf(error: unknown): ErrorCode {
  if (error instanceof LacewingError) return error.code;
  if (error instanceof DOMException && error.name === "TimeoutError") return "timeout";
  if (error instanceof DOMException && error.name === "AbortError") return "canceled";
  return "unknown";
}

/** Back from the wire: an unknown code is kept as `unknown`, never trusted. */
export function fromWireError(wire: { code: string; message: string }): LacewingError {
  return new LacewingError(isErrorCode(wire.code) ? wire.code : "unknown", wire.message);
}
