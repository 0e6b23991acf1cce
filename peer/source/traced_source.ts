/** A source that tells a trace of each read: one span from the request to the end of its body. */
import type { Attributes, Span, Tracer } from "../core/telemetry.ts";
import type { Source, SourceBody } from "./source.ts";

/** The same source; @param options.parent the span that reads are for, asked anew for each */
export function traceSource(
  source: Source,
  tracer: Tracer,
  { parent, attributes }: { parent: () => string | undefined; attributes: Attributes },
): Source {
  return {
    async open(request, options) {
      const { range, url } = request;
      const span = tracer.start("source.read", {
        parent: parent(),
        kind: "client",
        attributes: {
          ...attributes,
          "url.full": url,
          "lacewing.offset": range?.offset,
          "lacewing.length": range?.length,
        },
      });
      try {
        return followBody(await source.open(request, options), span);
      } catch (error) {
        span.end(error);
        throw error;
      }
    },
    ...(source.list === undefined ? {} : { list: source.list.bind(source) }),
  };
}

function followBody(body: SourceBody, span: Span): SourceBody {
  let received = 0;
  let failure: unknown;
  return {
    contentLength: body.contentLength,
    ranges: body.ranges,
    version: body.version,
    offset: body.offset,
    length: body.length,
    async read() {
      try {
        const bytes = await body.read();
        received += bytes?.length ?? 0;
        return bytes;
      } catch (error) {
        failure = error;
        throw error;
      }
    },
    async [Symbol.asyncDispose]() {
      span.set({ "lacewing.received": received });
      span.end(failure);
      await body[Symbol.asyncDispose]();
    },
  };
}
