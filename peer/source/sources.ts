/**
 * Every origin that can be read, by the scheme of its URL: those built in, then
 * those of plug-ins.
 */
import { LacewingError } from "../core/errors.ts";
import { createHttpSource, type HttpSourceOptions } from "./http_source.ts";
import type { Listing, ListRequest } from "./listing/listing.ts";
import type { SourcePlugins } from "./plugins.ts";
import type { Source, SourceBody, SourceRequest } from "./source.ts";

/** Sources by scheme, as one source. */
export interface Sources extends Source, AsyncDisposable {
  /** Schemes that can be read, in the order they were registered. */
  readonly schemes: readonly string[];
  /** @throws {LacewingError} `usage` that lists the schemes that can, where the URL's cannot */
  list(request: ListRequest, options: { signal: AbortSignal }): Promise<Listing>;
}

/** Schemes that are built in. */
export const BUILT_IN_SCHEMES: readonly string[] = ["http", "https"];

/** The sources that are built in, and plug-ins, which are the caller's to close. Close bodies before the sources. */
export function createSources(options: HttpSourceOptions, plugins?: SourcePlugins): Sources {
  const http = createHttpSource(options);
  return new SourceRegistry(new Map(BUILT_IN_SCHEMES.map((scheme) => [scheme, http])), plugins);
}

export class SourceRegistry implements Sources {
  readonly #sources: ReadonlyMap<string, Source & Partial<AsyncDisposable>>;

  constructor(
    sources: ReadonlyMap<string, Source & Partial<AsyncDisposable>>,
    private readonly plugins?: Pick<SourcePlugins, "find" | "files">,
  ) {
    this.#sources = sources;
  }

  get schemes(): readonly string[] {
    return [...this.#sources.keys()];
  }

  /** @throws {LacewingError} `usage` that lists the known schemes, and what the scheme's source throws. */
  async open(request: SourceRequest, options: { signal: AbortSignal }): Promise<SourceBody> {
    return await (await this.#find(request.url)).open(request, options);
  }

  async list(request: ListRequest, options: { signal: AbortSignal }): Promise<Listing> {
    const source = await this.#find(request.url);
    if (source.list !== undefined) return await source.list(request, options);
    const can = [...this.#sources].filter(([, { list }]) => list !== undefined).map(([scheme]) => scheme);
    const scheme = URL.parse(request.url)?.protocol.slice(0, -1);
    throw new LacewingError("usage", `Cannot list folders of ${scheme}: only those of ${can.join(", ")}`);
  }

  async #find(url: string): Promise<Source> {
    const scheme = URL.parse(url)?.protocol.slice(0, -1) ?? null;
    const source = scheme === null ? undefined : this.#sources.get(scheme);
    if (source !== undefined) return source;
    const plugin = scheme === null ? null : await this.plugins?.find(scheme) ?? null;
    if (plugin !== null) return plugin;
    const what = scheme === null ? "a URL without a scheme" : `scheme ${JSON.stringify(scheme.slice(0, 50))}`;
    const more = (await this.plugins?.files() ?? []).map(({ scheme }) => scheme);
    throw new LacewingError("usage", `Cannot read ${what}: want one of ${[...this.schemes, ...more].join(", ")}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const source of new Set(this.#sources.values())) await source[Symbol.asyncDispose]?.();
  }
}
