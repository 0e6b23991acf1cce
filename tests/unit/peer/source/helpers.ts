/**
 * What the source tests share: a source with a clock that hurries, one content
 * and how an origin serves parts of it, and shorthands for asking and failing.
 */
import { assertEquals, assertRejects } from "@std/assert";
import { type Clock, systemClock } from "../../../../peer/core/clock.ts";
import { type ErrorCode, LacewingError } from "../../../../peer/core/errors.ts";
import {
  createHttpSource,
  type HttpSourceConfig,
  type HttpSourceOptions,
} from "../../../../peer/source/http_source.ts";
import type { Source, SourceBody, SourceRequest } from "../../../../peer/source/source.ts";
import { contentBytes } from "../../../testutil/content.ts";

export const NEVER = new AbortController().signal;
export const CONTENT = contentBytes(1, 0, 100_000);

/** A clock on which sleeping takes no time, and which remembers for how long it was asked to. */
export class HastyClock implements Clock {
  readonly sleeps: number[] = [];
  nowMs(): number {
    return 0;
  }
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    // Timeouts never end here; pauses between tries are over at once.
    if (ms >= 29_999 || ms === 10_000 || ms === 20_000) return systemClock.sleep(60_000, signal);
    this.sleeps.push(ms);
    return Promise.resolve();
  }
}

export function makeSource(
  config: Partial<HttpSourceConfig> = {},
  options: Partial<Omit<HttpSourceOptions, "config">> = {},
): Source & AsyncDisposable {
  return createHttpSource({
    config: { caCerts: [], insecure: false, allowPrivateNetworks: true, ...config },
    clock: systemClock,
    random: () => 0.5,
    env: () => undefined,
    ...options,
  });
}

export function ask(
  source: Source,
  url: string,
  request: Partial<SourceRequest> = {},
  signal = NEVER,
): Promise<SourceBody> {
  return source.open({ url, headers: [], range: null, ...request }, { signal });
}

export async function readAll(body: SourceBody): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) parts.push(bytes.slice());
  return new Uint8Array(await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer());
}

export async function failure(
  code: ErrorCode,
  run: () => Promise<unknown>,
): Promise<string> {
  const error = await assertRejects(run, LacewingError);
  assertEquals(error.code, code, error.message);
  return error.message;
}

export function partOf(request: Request, content = CONTENT): Response {
  const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
  const headers = { etag: '"v1"', "accept-ranges": "bytes" };
  if (match === null) return new Response(content.slice(), { headers });
  const [first, last] = [Number(match[1]), Math.min(Number(match[2]), content.length - 1)];
  if (first >= content.length) {
    return new Response("no", { status: 416, headers: { ...headers, "content-range": `bytes */${content.length}` } });
  }
  return new Response(content.slice(first, last + 1), {
    status: 206,
    headers: { ...headers, "content-range": `bytes ${first}-${last}/${content.length}` },
  });
}

/** The import map that this process runs with, for a child of its own. */
export function mapArguments(): string[] {
  return import.meta.resolve("@std/yaml").startsWith("file:") ? ["--import-map", "import_map.npm.json"] : [];
}
