/**
 * A resolver on a small registry that serves one small image, and a clock on
 * which retries take no time.
 */
import { type Clock, systemClock } from "../../peer/core/clock.ts";
import { silentLogger } from "../../peer/core/log.ts";
import { createGuardedFetch } from "../../manager/registry/guarded_fetch.ts";
import { createResolver, type ResolveRequest } from "../../manager/registry/resolver.ts";
import { type ImageOptions, makeImage, type TestBlob } from "./image.ts";
import { type SmallRegistry, type SmallRegistryOptions, startSmallRegistry } from "./small_registry.ts";

/** Where the image is served. */
export const NAME = "lab/app";
export const IMAGE = makeImage({ scale: 0.01 });

/** A clock that does not wait, but remembers for how long it should have. */
export function noWait(): Clock & { waits: number[]; aheadMs: number } {
  const clock = {
    waits: [] as number[],
    aheadMs: 0,
    nowMs: (): number => systemClock.nowMs() + clock.aheadMs,
    sleep: (ms: number) => {
      clock.waits.push(ms);
      return Promise.resolve();
    },
  };
  return clock;
}

export function setUpResolver(options: SmallRegistryOptions & { image?: ImageOptions } = {}) {
  const registry = startSmallRegistry(options);
  const image = options.image === undefined ? IMAGE : makeImage({ scale: 0.01, ...options.image });
  registry.add(image, { name: NAME, tag: "v1" });
  const clock = noWait();
  const fetch = createGuardedFetch({ allowPrivateNetworks: true, caCerts: [] });
  const resolver = createResolver({ fetch, log: silentLogger, clock });
  return { registry, image, clock, resolver, [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose]() };
}

export function ask(registry: SmallRegistry, rest: Partial<ResolveRequest> = {}): ResolveRequest {
  return { url: registry.manifestUrl(NAME, "v1"), headers: {}, platforms: "all", ...rest };
}

/** Digests of blobs, each once, in order. */
export function digestsOf(...blobs: (Pick<TestBlob, "digest"> | readonly TestBlob[] | undefined)[]): string[] {
  return [...new Set(blobs.flat().flatMap((blob) => blob === undefined ? [] : [blob.digest]))].sort();
}

/** Every digest of the image. */
export const EVERYTHING = digestsOf(
  IMAGE.index,
  ...IMAGE.images.flatMap((one) => [one.manifest, one.config, one.layers]),
);
