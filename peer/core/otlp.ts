/**
 * Sends ended spans to an OTLP/HTTP collector (Jaeger takes them on port 4318)
 * in the JSON form of OTLP 1.x: in batches, aside from all other work. Loaded
 * only where `--jaeger` is given.
 *
 * Keeps: a bounded number of spans waits, the rest is counted and dropped; a
 * collector that fails is told of in one debug record and left alone for a
 * while; the end waits for it for a bounded time. Nothing here ever throws.
 *
 * Of our own, because the packages of OpenTelemetry bring 20 others (one with
 * an install script), 192 KiB of each bundle and 25 ms to the start of a client
 * that takes 50; what we need of them is one message of a stable format.
 */
import { LacewingError } from "./errors.ts";
import { type Logger, redactText } from "./log.ts";
import {
  type Attributes,
  createTracer,
  type EndedSpan,
  parseCollector,
  type SpanKind,
  type Tracer,
} from "./telemetry.ts";
import { VERSION } from "./version.ts";

export interface TelemetryOptions {
  /** URL of the collector. */
  readonly collector: string;
  /** What the process is called in traces. */
  readonly serviceName: string;
  readonly log: Logger;
}

export interface TelemetryLimits {
  /** Spans that wait at most. */
  readonly queueMax?: number;
  readonly batchMax?: number;
  /** How long a span waits for others. */
  readonly delayMs?: number;
  readonly sendTimeoutMs?: number;
  /** How long a collector that failed is left alone. */
  readonly pauseMs?: number;
  /** What the end waits for at most. */
  readonly flushTimeoutMs?: number;
}

/** Spans of this process on their way to a collector; disposing sends the rest. */
export interface Telemetry extends AsyncDisposable {
  readonly tracer: Tracer;
  /** Spans that were never delivered. */
  readonly droppedCount: number;
}

/** 4096 spans are about 4 MB; a download of 1 GiB has a thousand. */
const LIMITS: Required<TelemetryLimits> = {
  queueMax: 4096,
  batchMax: 512,
  delayMs: 1_000,
  sendTimeoutMs: 5_000,
  pauseMs: 10_000,
  flushTimeoutMs: 2_000,
};
/** Characters of one attribute. */
const TEXT_LENGTH_MAX = 2_000;
/** `SpanKind` and `StatusCode` of opentelemetry/proto/trace/v1/trace.proto. */
const KINDS: Record<SpanKind, number> = { internal: 1, server: 2, client: 3 };
const STATUS_ERROR = 2;

/** @throws {LacewingError} `usage` for a URL that is none of a collector */
export function openTelemetry(options: TelemetryOptions, limits: TelemetryLimits = {}): Telemetry {
  return new OtlpTelemetry(options, { ...LIMITS, ...limits });
}

class OtlpTelemetry implements Telemetry {
  readonly tracer = createTracer((span) => this.#add(span));
  readonly #collector;
  readonly #stop = new AbortController();
  #queue: EndedSpan[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> | null = null;
  #hasFailed = false;
  #isClosed = false;
  #dropped = 0;

  constructor(private readonly options: TelemetryOptions, private readonly limits: Required<TelemetryLimits>) {
    this.#collector = parseCollector(options.collector);
  }

  get droppedCount(): number {
    return this.#dropped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const deadline = setTimeout(
      () => this.#stop.abort(new DOMException("The time to send the last spans is over", "TimeoutError")),
      this.limits.flushTimeoutMs,
    );
    await this.#sending;
    // One try: a collector that is away must not be waited for twice.
    while (this.#queue.length > 0 && !this.#hasFailed && !this.#stop.signal.aborted) await this.#sendBatch();
    clearTimeout(deadline);
    this.#dropped += this.#queue.length;
    this.#queue = [];
    if (this.#dropped > 0) this.options.log.debug("spans were dropped", { count: this.#dropped });
  }

  #add(span: EndedSpan): void {
    if (this.#isClosed || this.#queue.length >= this.limits.queueMax) {
      this.#dropped += 1;
      return;
    }
    this.#queue.push(span);
    if (this.#queue.length >= this.limits.batchMax && this.#sending === null && !this.#hasFailed) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), this.#hasFailed ? this.limits.pauseMs : this.limits.delayMs);
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
      if (this.#queue.length > 0 && !this.#isClosed) {
        this.#timer ??= setTimeout(() => this.#send(), this.limits.pauseMs);
      }
    });
  }

  async #sendAll(): Promise<void> {
    do await this.#sendBatch(); while (this.#queue.length > 0 && !this.#hasFailed && !this.#isClosed);
  }

  async #sendBatch(): Promise<void> {
    const spans = this.#queue.splice(0, this.limits.batchMax);
    const { url, authorization } = this.#collector;
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...(authorization === undefined ? {} : { authorization }) },
        body: JSON.stringify(toOtlp(spans, this.options.serviceName)),
        redirect: "manual",
        signal: AbortSignal.any([this.#stop.signal, AbortSignal.timeout(this.limits.sendTimeoutMs)]),
      });
      await response.body?.cancel();
      if (!response.ok) throw new LacewingError("unavailable", `The collector answered ${response.status}`);
      this.#hasFailed = false;
    } catch (error) {
      this.#dropped += spans.length;
      if (!this.#hasFailed) this.options.log.debug("cannot send traces", { collector: url, error });
      this.#hasFailed = true;
    }
  }
}

/** `ExportTraceServiceRequest` in JSON: ids in hex, 64-bit numbers as text. */
export function toOtlp(spans: readonly EndedSpan[], serviceName: string): Record<string, unknown> {
  return {
    resourceSpans: [{
      resource: { attributes: toAttributes({ "service.name": serviceName, "service.version": VERSION }) },
      scopeSpans: [{ scope: { name: "lacewing", version: VERSION }, spans: spans.map(toOtlpSpan) }],
    }],
  };
}

function toOtlpSpan(span: EndedSpan): Record<string, unknown> {
  const { error } = span;
  const isCanceled = error instanceof DOMException && error.name === "AbortError";
  const status = error === undefined || isCanceled
    ? {}
    : { code: STATUS_ERROR, message: cleanText(error instanceof Error ? error.message : String(error)) };
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentSpanId === undefined ? {} : { parentSpanId: span.parentSpanId }),
    name: span.name,
    kind: KINDS[span.kind],
    startTimeUnixNano: toNanos(span.startMs),
    endTimeUnixNano: toNanos(Math.max(span.startMs, span.endMs)),
    attributes: toAttributes({
      ...span.attributes,
      "error.type": error instanceof LacewingError ? error.code : error instanceof Error ? error.name : undefined,
    }),
    status,
  };
}

function toAttributes(attributes: Attributes): unknown[] {
  return Object.entries(attributes).filter(([, value]) => value !== undefined).map(([key, value]) => ({
    key,
    value: typeof value === "string"
      ? { stringValue: cleanText(value) }
      : typeof value === "boolean"
      ? { boolValue: value }
      : Number.isInteger(value)
      ? { intValue: String(value) }
      : { doubleValue: value },
  }));
}

/** Signed URLs and credentials stay in this process. */
function cleanText(text: string): string {
  return redactText(text.slice(0, 4 * TEXT_LENGTH_MAX)).slice(0, TEXT_LENGTH_MAX);
}

/** To the microsecond: a double has no more. */
function toNanos(ms: number): string {
  return `${Math.round(ms * 1000)}000`;
}
