/**
 * Every origin that can be read, by the scheme of its URL.
 */
import { LacewingError } from "../core/errors.ts";
import { createHttpSource, type HttpSourceOptions } from "./http_source.ts";
import type { Source, SourceBody, SourceRequest } from "./source.ts";

/** Sources by scheme, as one source. */
export interface Sources extends Source, AsyncDisposable {
  /** Schemes that can be read, in the order they were registered. */
  readonly schemes: readonly string[];
}

/** The sources that are built in. Close bodies before the sources. */
export function createSources(options: HttpSourceOptions): Sources {
  const http = createHttpSource(options);
  return new SourceRegistry(new Map([["http", http], ["https", http]]));
}

export class SourceRegistry implements Sources {
  readonly #sources: ReadonlyMap<string, Source & Partial<AsyncDisposable>>;

  constructor(sources: ReadonlyMap<string, Source & Partial<AsyncDisposable>>) {
    this.#sources = sources;
  }

  get schemes(): readonly string[] {
    return [...this.#sources.keys()];
  }

  /** @throws {LacewingError} `usage` that lists the known schemes, and what the scheme's source throws. */
  async open(request: SourceRequest, options: { signal: AbortSignal }): Promise<SourceBody> {
    const scheme = URL.parse(request.url)?.protocol.slice(0, -1) ?? null;
    const source = scheme === null ? undefined : this.#sources.get(scheme);
    if (source !== undefined) return await source.open(request, options);
    const what = scheme === null ? "a URL without a scheme" : `scheme ${JSON.stringify(scheme.slice(0, 50))}`;
    throw new LacewingError("usage", `Cannot read ${what}: want one of ${this.schemes.join(", ")}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const source of new Set(this.#sources.values())) await source[Symbol.asyncDispose]?.();
  }
}
