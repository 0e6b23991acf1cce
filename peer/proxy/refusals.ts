/**
 * The answers that the proxy gives in its own name, as the distribution
 * specification words errors. Pure. It says 404 only where the origin said
 * so: its own trouble is 502, 503 or 504, after which runtimes go to the next host.
 */
import { LacewingError } from "../core/errors.ts";
import { redactText } from "../core/log.ts";
import type { Field } from "./http_message.ts";

export interface Refusal {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: string;
}

const DETAIL_LENGTH_MAX = 500;

/** An error envelope of the distribution specification. */
export function refusal(status: number, code: string, message: string, fields: readonly Field[] = []): Refusal {
  const text = redactText(message).slice(0, DETAIL_LENGTH_MAX);
  return {
    status,
    fields: [["Content-Type", "application/json"], ...fields],
    body: JSON.stringify({ errors: [{ code, message: text }] }) + "\n",
  };
}

/** The answer to a request that failed for this reason before anything was sent. */
export function refusalOf(error: unknown): Refusal {
  if (!(error instanceof LacewingError)) return refusal(500, "UNKNOWN", "Something unexpected went wrong here");
  const { code, message } = error;
  if (code === "protocol" || code === "bad_request" || code === "usage") return refusal(400, "UNSUPPORTED", message);
  if (code === "policy" || code === "forbidden") return refusal(403, "DENIED", message);
  if (code === "timeout") return refusal(504, "UNAVAILABLE", message);
  if (["unavailable", "disk_full", "file", "canceled"].includes(code)) return refusal(503, "UNAVAILABLE", message);
  return refusal(502, "UNAVAILABLE", message);
}
