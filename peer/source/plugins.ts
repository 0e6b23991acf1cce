/**
 * Origins of schemes that are not built in: ES modules `<folder>/<scheme>.ts`
 * or `.js` that export `createSource(): Source`. Each is loaded when its scheme
 * is first asked for, so that a bad one hurts nobody else, and one that comes
 * later needs no restart.
 *
 * Keeps: only files that nobody but their owner (this user, or root) can write
 * are run; what a plug-in gives is checked before anyone relies on it, and what
 * it throws becomes an error with a code.
 */
import { isErrorCode, LacewingError } from "../core/errors.ts";
import type { Source, SourceBody, SourceRequest } from "./source.ts";

/** One file of the folder. */
export interface PluginFile {
  readonly scheme: string;
  /** Absolute path. */
  readonly path: string;
}

const FILE_NAME = /^([a-z][a-z0-9+.-]{0,31})\.(ts|js)$/;
const WRITABLE_BY_OTHERS = 0o022;

/** The plug-ins of a folder; one that is not there has none. */
export class SourcePlugins implements AsyncDisposable {
  readonly #sources = new Map<string, Promise<PluginSource>>();

  /**
   * @param folder absolute path
   * @param taken schemes that no plug-in can take over
   */
  constructor(readonly folder: string, private readonly taken: readonly string[]) {}

  /** What is there, by scheme; `.ts` goes before `.js`. Nothing is run. */
  async files(): Promise<PluginFile[]> {
    const found = new Map<string, string>();
    try {
      for await (const { name, isDirectory } of Deno.readDir(this.folder)) {
        const [, scheme, extension] = FILE_NAME.exec(name) ?? [];
        if (isDirectory || scheme === undefined || this.taken.includes(scheme)) continue;
        if (extension === "ts" || !found.has(scheme)) found.set(scheme, `${this.folder}/${name}`);
      }
    } catch (cause) {
      if (!(cause instanceof Deno.errors.NotFound)) {
        throw new LacewingError("file", `Cannot look for plug-ins in ${this.folder}: ${reasonOf(cause)}`, { cause });
      }
    }
    return [...found].map(([scheme, path]) => ({ scheme, path })).sort((a, b) => a.scheme < b.scheme ? -1 : 1);
  }

  /**
   * The source of a scheme, or null when there is no plug-in for it.
   *
   * @throws {LacewingError} `config_invalid` when the plug-in cannot be used
   */
  async find(scheme: string): Promise<Source | null> {
    const known = this.#sources.get(scheme);
    if (known !== undefined) return await known;
    const file = (await this.files()).find((file) => file.scheme === scheme);
    if (file === undefined) return null;
    const loading = this.#sources.get(scheme) ?? load(file);
    this.#sources.set(scheme, loading);
    // A mended file is tried again.
    loading.catch(() => this.#sources.delete(scheme));
    return await loading;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const source of await Promise.allSettled(this.#sources.values())) {
      if (source.status === "fulfilled") await source.value.close();
    }
  }
}

async function load({ scheme, path }: PluginFile): Promise<PluginSource> {
  const unusable = (reason: string, cause?: unknown) =>
    new LacewingError("config_invalid", `Cannot use plug-in ${path}: ${reason}`, { cause });
  await assertOwn(path, unusable);
  let module: { createSource?: unknown };
  try {
    const { mtime } = await Deno.stat(path);
    const url = new URL(`file://${path.split("/").map(encodeURIComponent).join("/")}`);
    // A module that could not be loaded is not loaded again under the same URL.
    url.search = `changed=${mtime?.getTime() ?? 0}`;
    module = await import(url.href);
  } catch (cause) {
    const hint = Deno.build.standalone ? " (compiled executables may be unable to load plug-ins: use the bundle)" : "";
    throw unusable(`it cannot be loaded: ${reasonOf(cause)}${hint}`, cause);
  }
  if (typeof module.createSource !== "function") throw unusable("it does not export a function createSource");
  let source: unknown;
  try {
    source = await module.createSource();
  } catch (cause) {
    throw unusable(`its createSource failed: ${reasonOf(cause)}`, cause);
  }
  if (typeof (source as Partial<Source> | null)?.open !== "function") {
    throw unusable("its createSource gives no source: there is no function open");
  }
  return new PluginSource(source as Source, scheme);
}

/** What others may write is not run with this user's rights. */
async function assertOwn(path: string, unusable: (reason: string) => LacewingError): Promise<void> {
  for (const place of [path, path.slice(0, path.lastIndexOf("/"))]) {
    const { uid, mode } = await Deno.stat(place);
    const isForeign = uid !== null && uid !== Deno.uid() && uid !== 0;
    if (isForeign) throw unusable(`${place} belongs to another user`);
    if (mode !== null && (mode & WRITABLE_BY_OTHERS) !== 0) throw unusable(`others may write ${place} (chmod go-w)`);
  }
}

/** A plug-in's source, held to the port. */
class PluginSource implements Source {
  readonly list?: NonNullable<Source["list"]>;

  constructor(private readonly source: Source & Partial<AsyncDisposable>, private readonly scheme: string) {
    const { list } = source;
    if (typeof list !== "function") return;
    this.list = (request, options) => this.#guard(() => list.call(source, request, options), options.signal);
  }

  async open(request: SourceRequest, { signal }: { signal: AbortSignal }): Promise<SourceBody> {
    const body = await this.#guard(() => this.source.open(request, { signal }), signal);
    const wrong = faultOf(body);
    if (wrong !== null) throw this.#failed(`its answer has no proper ${wrong}`);
    const { contentLength, ranges, version, offset, length } = body;
    return {
      contentLength,
      ranges,
      version,
      offset,
      length,
      read: async () => {
        const bytes = await this.#guard(() => body.read(), signal);
        if (bytes === null || bytes instanceof Uint8Array) return bytes;
        throw this.#failed("it reads something that is no Uint8Array");
      },
      [Symbol.asyncDispose]: async () => await body[Symbol.asyncDispose]?.(),
    };
  }

  async close(): Promise<void> {
    await this.source[Symbol.asyncDispose]?.();
  }

  /** Codes of plug-ins count: they cannot import this program's error class. */
  async #guard<T>(act: () => Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await act();
    } catch (error) {
      signal.throwIfAborted();
      const code = (error as { code?: unknown } | null)?.code;
      if (isErrorCode(code)) throw new LacewingError(code, reasonOf(error), { cause: error });
      throw this.#failed(reasonOf(error), error);
    }
  }

  #failed(reason: string, cause?: unknown): LacewingError {
    return new LacewingError("source_failed", `Cannot read from plug-in "${this.scheme}": ${reason}`, { cause });
  }
}

/** The first field of a body that is not as the port has it. */
function faultOf(body: SourceBody | null | undefined): string | null {
  const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  const checks: [string, boolean][] = [
    ["body", typeof body === "object" && body !== null],
    ["contentLength", body?.contentLength === null || isCount(body?.contentLength)],
    ["ranges", typeof body?.ranges === "boolean"],
    ["version", typeof body?.version === "object" && body.version !== null],
    ["offset", isCount(body?.offset)],
    ["length", body?.length === null || isCount(body?.length)],
    ["read", typeof body?.read === "function"],
  ];
  return checks.find(([, isRight]) => !isRight)?.[0] ?? null;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
