/**
 * Errors as `application/problem+json` (RFC 9457). The one place that turns
 * what was thrown into an answer: expected failures by the table of codes, all
 * else into a 500 that says nothing of our insides.
 */
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { type ErrorCode, ERRORS, LacewingError } from "../../peer/core/errors.ts";
import { type Logger, redactText } from "../../peer/core/log.ts";

const TITLES: Record<number, string> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  416: "Range Not Satisfiable",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  507: "Insufficient Storage",
};
/** Text of the network in a detail, characters. */
const DETAIL_LENGTH_MAX = 2000;

export interface Problem {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly errors?: readonly { path: string; message: string }[];
  /** For 429 and 503. */
  readonly retryAfterSeconds?: number;
}

/** The answer for a problem; headers set on the context before are kept. */
export function problem(c: Context, { code, detail, errors, retryAfterSeconds }: Problem): Response {
  const { status } = ERRORS[code];
  const text = redactText(detail).slice(0, DETAIL_LENGTH_MAX);
  if (code === "unauthorized") c.header("WWW-Authenticate", 'Bearer realm="lacewing"');
  if (status === 429 || status === 503) c.header("Retry-After", String(retryAfterSeconds ?? 5));
  return c.body(
    JSON.stringify({
      type: `urn:lacewing:error:${code}`,
      title: TITLES[status] ?? "Error",
      status,
      detail: text,
      code,
      ...(errors === undefined ? {} : { errors }),
      message: text,
    }),
    status as ContentfulStatusCode,
    { "Content-Type": "application/problem+json" },
  );
}

/** Hono's `onError`. */
export function onError(log: Logger) {
  return (error: Error, c: Context): Response => {
    if (error instanceof LacewingError && error.code !== "unknown") {
      if (ERRORS[error.code].status >= 500) log.warn("request failed", { path: c.req.path, error });
      return problem(c, { code: error.code, detail: error.message });
    }
    if (error instanceof HTTPException) return problem(c, fromHono(error, c));
    log.error("request failed unexpectedly", { method: c.req.method, path: c.req.path, error });
    return problem(c, { code: "unknown", detail: "The manager failed unexpectedly; its log says more" });
  };
}

/** What Hono's own validators throw. */
function fromHono(error: HTTPException, c: Context): Problem {
  if (error.status === 415) {
    const type = c.req.header("content-type") ?? "(none)";
    return {
      code: "unsupported_media_type",
      detail: `Cannot read the body: its Content-Type is ${JSON.stringify(type.slice(0, 100))}, want application/json`,
    };
  }
  if (error.status === 400) return { code: "bad_request", detail: "Cannot read the body: it is not valid JSON" };
  return { code: "bad_request", detail: error.message };
}
