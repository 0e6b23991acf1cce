/**
 * What the job worker needs from the registry room: an image's manifest URL
 * turned into everything that a host pulls, and fresh headers when a
 * registry's token ran out.
 */

export interface ResolveRequest {
  /** A manifest URL, `…/v2/NAME/manifests/REFERENCE`. */
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly username?: string;
  readonly password?: string;
  /** `os/arch[/variant]`, or every platform that the index names. */
  readonly platforms: string[] | "all";
}

/** One content that a host pulls for the image. */
export interface ResolvedItem {
  readonly url: string;
  /** `algorithm:hex` where it is known. */
  readonly digest: string | null;
  readonly contentLength: number | null;
  /** What the registry wants to be asked with, credentials included. */
  readonly headers: Record<string, string>;
  readonly kind: "index" | "manifest" | "config" | "layer";
  readonly platform: string | null;
}

export interface Resolver {
  /** @throws {LacewingError} naming URL and reason when the image cannot be resolved. */
  resolve(
    request: ResolveRequest,
    options: { signal: AbortSignal },
  ): Promise<{ items: ResolvedItem[]; skipped: { url: string; reason: string }[] }>;
  /** Headers for an item whose own ones were refused. */
  refreshHeaders(
    item: ResolvedItem,
    request: ResolveRequest,
    options: { signal: AbortSignal },
  ): Promise<Record<string, string>>;
}
