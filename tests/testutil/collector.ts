/** A small OTLP/HTTP collector on loopback: keeps the spans that processes send it in JSON. */

/** A span as it came, with the name of the service that sent it. */
export interface CollectedSpan {
  readonly service: string;
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code?: number; readonly message?: string };
}

export interface Collector extends AsyncDisposable {
  /** As `--jaeger` takes it. */
  readonly url: string;
  readonly spans: CollectedSpan[];
  readonly requests: { path: string; authorization: string | null; spans: number }[];
  /** Resolves when so many spans are here. */
  received(count: number): Promise<void>;
}

/** @param status what it answers; with another one than 200 it keeps nothing */
export function startCollector({ status = 200 }: { status?: number } = {}): Collector {
  const spans: CollectedSpan[] = [];
  const requests: Collector["requests"] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const found = spansOf(await request.json());
    const { pathname } = new URL(request.url);
    requests.push({ path: pathname, authorization: request.headers.get("authorization"), spans: found.length });
    if (status !== 200) return new Response("no", { status });
    spans.push(...found);
    for (const { count, resolve } of waiting) if (spans.length >= count) resolve();
    return Response.json({});
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    spans,
    requests,
    received: (count) =>
      spans.length >= count ? Promise.resolve() : new Promise((resolve) => waiting.push({ count, resolve })),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

// deno-lint-ignore no-explicit-any
function spansOf(message: any): CollectedSpan[] {
  // deno-lint-ignore no-explicit-any
  return message.resourceSpans.flatMap(({ resource, scopeSpans }: any) =>
    // deno-lint-ignore no-explicit-any
    scopeSpans.flatMap((scope: any) => scope.spans).map((span: any) => ({
      ...span,
      service: attributesOf(resource.attributes)["service.name"],
      attributes: attributesOf(span.attributes),
    }))
  );
}

function attributesOf(list: { key: string; value: Record<string, unknown> }[]): Record<string, unknown> {
  return Object.fromEntries(
    list.map(({ key, value: { intValue, ...other } }) => [
      key,
      intValue === undefined ? Object.values(other)[0] : Number(intValue),
    ]),
  );
}
