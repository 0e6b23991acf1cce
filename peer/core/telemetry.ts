/**
 * Spans of a trace as a port, and the W3C trace context that ties those of
 * several processes together. Nothing is recorded unless a process was given a
 * collector: `noTracer` then only passes a caller's context on, so that a trace
 * does not break at a process that takes no part in it.
 *
 * Sampling: everything, unless the parent says that it is not sampled.
 */
import { LacewingError } from "./errors.ts";

/** Undefined values are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanOptions {
  /** The caller's `traceparent`; without one (or with one that cannot be read) a new trace begins. */
  readonly parent?: string | undefined;
  /** `server`: answers another process; `client`: waits for one. Default: `internal`. */
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
}

export type SpanKind = "internal" | "server" | "client";

export interface Span {
  /** For whom this span asks; undefined when there is no trace. */
  readonly traceparent: string | undefined;
  set(attributes: Attributes): void;
  /** Ends it, with what went wrong if something did; only the first call counts. */
  end(error?: unknown): void;
}

export interface Tracer {
  /** Whether spans are recorded: what costs something to find out is left out if not. */
  readonly isOn: boolean;
  start(name: string, options?: SpanOptions): Span;
}

/** W3C Trace Context, level 1. Ids in lower-case hex. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

export interface EndedSpan extends TraceContext {
  readonly name: string;
  readonly parentSpanId: string | undefined;
  readonly kind: SpanKind;
  /** Unix time with parts of a millisecond. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly error: unknown;
}

const NO_SPAN: Span = { traceparent: undefined, set() {}, end() {} };

/** Records nothing. */
export const noTracer: Tracer = {
  isOn: false,
  start: (_name, { parent } = {}) => parent === undefined ? NO_SPAN : { ...NO_SPAN, traceparent: parent },
};

/** A tracer that hands over every span when it ends. */
export function createTracer(onEnd: (span: EndedSpan) => void): Tracer {
  return {
    isOn: true,
    start(name, { parent, kind = "internal", attributes = {} } = {}) {
      const above = parseTraceparent(parent);
      if (above !== null && !above.isSampled) return { ...NO_SPAN, traceparent: parent };
      const context = { traceId: above?.traceId ?? randomHex(16), spanId: randomHex(8), isSampled: true };
      const all: Record<string, string | number | boolean | undefined> = { ...attributes };
      const startMs = unixMs();
      let hasEnded = false;
      return {
        traceparent: formatTraceparent(context),
        set: (more) => void Object.assign(all, more),
        end(error) {
          if (hasEnded) return;
          hasEnded = true;
          onEnd({
            ...context,
            name,
            kind,
            parentSpanId: above?.spanId,
            startMs,
            endMs: unixMs(),
            attributes: all,
            error,
          });
        },
      };
    },
  };
}

/** Runs `work` inside a span, which ends with it; what it throws is told of in the span. */
export async function traced<T>(span: Span, work: () => Promise<T>): Promise<T> {
  try {
    const result = await work();
    span.end();
    return result;
  } catch (error) {
    span.end(error);
    throw error;
  }
}

export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** Reads a header as the recommendation says: later versions may have more fields, zero ids are none. */
export function parseTraceparent(text: string | undefined): TraceContext | null {
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(text ?? "");
  if (match === null) return null;
  const [, version, traceId = "", spanId = "", flags = "", more] = match;
  if (version === "ff" || (version === "00" && more !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, isSampled: (parseInt(flags, 16) & 1) === 1 };
}

/** Where spans are sent, with the credentials that were in its URL. */
export interface Collector {
  readonly url: string;
  readonly authorization: string | undefined;
}

/**
 * Reads the URL of an OTLP/HTTP collector; without a path it is that of the OTLP specification.
 *
 * @throws {LacewingError} `usage`
 */
export function parseCollector(text: string): Collector {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    throw new LacewingError(
      "usage",
      `Cannot send traces to ${JSON.stringify(text)}: want the http or https URL of an OTLP collector, ` +
        "such as http://127.0.0.1:4318",
    );
  }
  // `fetch` takes no credentials in a URL.
  const userInfo = unescaped(`${url.username}:${url.password}`);
  [url.username, url.password, url.hash] = ["", "", ""];
  if (url.pathname === "/") url.pathname = "/v1/traces";
  if (userInfo === ":") return { url: url.href, authorization: undefined };
  const bytes = new TextEncoder().encode(userInfo);
  return { url: url.href, authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function unixMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Never all zeros, which would be no id. */
function randomHex(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  bytes[0] ||= 1;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
