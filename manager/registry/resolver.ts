/**
 * Finds all that a host pulls of an image: the manifest by its tag and by its
 * digest (clients ask HEAD by tag, then GET by digest), the manifests of the
 * platforms wanted, their configs and layers. Nothing but manifests is read
 * here. Bounded in depth, manifests and items; each URL comes once.
 */
import { type Clock, systemClock } from "../../peer/core/clock.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import type { Logger } from "../../peer/core/log.ts";
import { RegistryAuth } from "./auth.ts";
import type { GuardedFetch } from "./guarded_fetch.ts";
import { ImageWalk, type ItemKind, type WalkedItem } from "./image_walk.ts";
import { MANIFEST_ACCEPT, parsePlatform } from "./manifest.ts";
import { parseManifestUrl } from "./reference.ts";
import { RegistryClient } from "./registry_client.ts";

export type { ItemKind };

/** One URL to put on hosts. */
export interface ResolvedItem extends WalkedItem {
  /** What a host must send to read it: the caller's headers, `authorization`, and `accept` for manifests. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface ResolveRequest {
  /** Manifest URL. */
  readonly url: string;
  /** For the registry only; an `authorization` among them is sent as it is. */
  readonly headers: Readonly<Record<string, string>>;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** `os/architecture[/variant]` each, or every platform with attestations. */
  readonly platforms: readonly string[] | "all";
  /**
   * `each` (default): a platform that the image lacks is an error, as the caller named it. `any`: one that it
   * has is enough, the others are reported as skipped; for platforms taken from the hosts of a cluster.
   */
  readonly require?: "each" | "any";
}

export interface Resolution {
  readonly items: readonly ResolvedItem[];
  /** What is part of the image and was left out, with the reason. */
  readonly skipped: readonly { readonly url: string; readonly reason: string }[];
}

export interface Resolver {
  /**
   * All items of an image.
   *
   * @throws {LacewingError} `invalid` (URL, platform, header), `source_not_found` (no such tag, or platform),
   * `source_refused`, `source_failed`, `network`, `tls`, `timeout`, `policy`, `digest_mismatch`, `protocol`, `too_large`
   */
  resolve(request: ResolveRequest, options: { signal: AbortSignal }): Promise<Resolution>;

  /** Headers for an item with a new token, after a host was told that the old one is no longer good. */
  refreshHeaders(
    item: Pick<ResolvedItem, "kind">,
    request: ResolveRequest,
    options: { signal: AbortSignal },
  ): Promise<Record<string, string>>;
}

export interface ResolverDeps {
  readonly fetch: GuardedFetch;
  readonly log: Logger;
  readonly clock?: Clock;
}

/** Headers that would break a request of ours, or change what it asks for. */
const RESERVED_HEADERS: readonly string[] = [
  "connection",
  "content-length",
  "expect",
  "host",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "range",
  "transfer-encoding",
  "upgrade",
];

/** A resolver that keeps tokens between calls. */
export function createResolver({ fetch, log, clock = systemClock }: ResolverDeps): Resolver {
  const auth = new RegistryAuth(fetch, clock);

  function open(request: ResolveRequest) {
    const reference = parseManifestUrl(request.url);
    const headers = checkHeaders(request.headers);
    const { username, password } = request;
    const client = new RegistryClient({ fetch, auth, clock }, { reference, headers, username, password });
    return { reference, headers, client };
  }

  return {
    async resolve(request, { signal }) {
      const wanted = request.platforms === "all" ? "all" : request.platforms.map(parsePlatform);
      if (wanted.length === 0) {
        throw new LacewingError("invalid", `Cannot read image ${request.url}: want at least one platform, or "all"`);
      }
      const { reference, headers, client } = open(request);
      const walk = new ImageWalk(client, { reference, wanted, require: request.require ?? "each" });
      const { items, skipped } = await walk.run(signal);
      log.debug("resolved image", { url: request.url, items: items.length, skipped: skipped.length });
      const { authorization } = client;
      return {
        items: items.map((item) => ({ ...item, headers: itemHeaders(item.kind, headers, authorization) })),
        skipped,
      };
    },

    async refreshHeaders(item, request, { signal }) {
      const { reference, headers, client } = open(request);
      await client.refresh(reference.reference, signal);
      return itemHeaders(item.kind, headers, client.authorization);
    },
  };
}

function itemHeaders(
  kind: ItemKind,
  headers: Readonly<Record<string, string>>,
  authorization: string | null,
): Record<string, string> {
  const isManifest = kind === "index" || kind === "manifest";
  return {
    ...headers,
    ...(isManifest ? { accept: MANIFEST_ACCEPT } : {}),
    ...(authorization === null ? {} : { authorization }),
  };
}

/** @returns the headers with lower-case names */
function checkHeaders(given: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    const key = name.toLowerCase();
    if (RESERVED_HEADERS.includes(key)) {
      throw new LacewingError(
        "invalid",
        `Cannot use header ${JSON.stringify(name)}: it is set for each request by itself`,
      );
    }
    try {
      new Headers([[name, value]]);
    } catch (cause) {
      const shown = JSON.stringify(name.slice(0, 100));
      throw new LacewingError("invalid", `Cannot use header ${shown}: its name or value is no HTTP header`, { cause });
    }
    headers[key] = value;
  }
  return headers;
}
