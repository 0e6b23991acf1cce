/**
 * Walks from an image's manifest down to its layers and collects the items.
 * Level by level, a few manifests at once. Keeps: each URL once, at most
 * `DEPTH_MAX` levels of index, `MANIFEST_COUNT_MAX` manifests, `ITEM_COUNT_MAX`
 * items; a platform that was wanted and is not there is an error or reported.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import {
  type Descriptor,
  formatPlatform,
  type IndexEntry,
  isAttestation,
  type Manifest,
  matchesPlatform,
  type Platform,
} from "./manifest.ts";
import { blobUrl, type ManifestReference, manifestUrl } from "./reference.ts";
import type { FetchedManifest } from "./registry_client.ts";

/** Where manifests come from: `RegistryClient`. */
export interface ManifestReader {
  manifest(reference: string, signal: AbortSignal): Promise<FetchedManifest>;
}

export interface WalkOptions {
  readonly reference: ManifestReference;
  readonly wanted: readonly Platform[] | "all";
  /** Whether each platform wanted must be there, or any one of them. */
  readonly require: "each" | "any";
}

export type ItemKind = "index" | "manifest" | "config" | "layer";

/** One URL of the image. */
export interface WalkedItem {
  readonly url: string;
  /** `algorithm:hex` of its bytes. */
  readonly digest: string | null;
  /** Bytes. */
  readonly contentLength: number | null;
  readonly kind: ItemKind;
  /** `linux/arm64/v8`; null where it belongs to several platforms, or to none by name. */
  readonly platform: string | null;
}

/** Levels of index within index. */
const DEPTH_MAX = 4;
/** Manifests read for one image. */
const MANIFEST_COUNT_MAX = 1000;
const ITEM_COUNT_MAX = 20_000;
const CONCURRENT_COUNT_MAX = 6;

/** A manifest still to be read. */
interface Pending {
  readonly descriptor: Descriptor;
  /** Of the entry that led here. */
  readonly platform: string | null;
}

export class ImageWalk {
  readonly #items = new Map<string, WalkedItem>();
  readonly #skipped = new Map<string, string>();
  readonly #seen = new Set<string>();
  /** Platforms that the image has, as its entries name them. */
  readonly #present = new Map<string, Platform>();
  #hasUnnamed = false;
  #next: Pending[] = [];

  constructor(private readonly reader: ManifestReader, private readonly options: WalkOptions) {}

  async run(signal: AbortSignal): Promise<{ items: WalkedItem[]; skipped: { url: string; reason: string }[] }> {
    const { reference } = this.options;
    const root = await this.reader.manifest(reference.reference, signal);
    for (const name of new Set([reference.reference, root.digest])) {
      this.#add(manifestUrl(reference, name), root.manifest.kind, {
        digest: root.digest,
        size: root.length,
        platform: null,
      });
    }
    this.#seen.add(root.digest);
    this.#visit(root.manifest, null);
    for (let depth = 1; this.#next.length > 0; depth++) {
      if (depth > DEPTH_MAX) throw this.#tooLarge(`index lies within index more than ${DEPTH_MAX} levels deep`);
      await this.#readLevel(signal);
    }
    if (root.manifest.kind === "index") this.#checkPlatforms();
    const skipped = [...this.#skipped].map(([url, reason]) => ({ url, reason }));
    return { items: [...this.#items.values()], skipped };
  }

  async #readLevel(signal: AbortSignal): Promise<void> {
    const level = this.#next;
    this.#next = [];
    for (let at = 0; at < level.length; at += CONCURRENT_COUNT_MAX) {
      const batch = level.slice(at, at + CONCURRENT_COUNT_MAX);
      const stop = new AbortController();
      const both = AbortSignal.any([signal, stop.signal]);
      const reads = batch.map(({ descriptor }) => this.reader.manifest(descriptor.digest, both));
      let read: FetchedManifest[];
      try {
        read = await Promise.all(reads);
      } catch (error) {
        stop.abort();
        await Promise.allSettled(reads);
        throw error;
      }
      for (const [index, { manifest, length }] of read.entries()) this.#visitChild(batch[index], { manifest, length });
    }
  }

  #visitChild(pending: Pending | undefined, { manifest, length }: { manifest: Manifest; length: number }): void {
    if (pending === undefined) throw new RangeError("Cannot visit a manifest that was not asked for");
    const { descriptor, platform } = pending;
    const url = manifestUrl(this.options.reference, descriptor.digest);
    if (length !== descriptor.size) {
      throw new LacewingError(
        "protocol",
        `Cannot read ${url}: it has ${length} B, its index says ${descriptor.size} B`,
      );
    }
    this.#add(url, manifest.kind, { digest: descriptor.digest, size: length, platform });
    this.#visit(manifest, platform);
  }

  #visit(manifest: Manifest, platform: string | null): void {
    const { reference } = this.options;
    if (manifest.kind === "index") {
      for (const entry of manifest.entries) this.#visitEntry(entry, platform);
      return;
    }
    this.#add(blobUrl(reference, manifest.config.digest), "config", { ...manifest.config, platform });
    for (const layer of manifest.layers) {
      const url = blobUrl(reference, layer.digest);
      if (layer.isForeign) this.#skipped.set(url, `foreign layer (${layer.mediaType}): hosts fetch it from elsewhere`);
      else this.#add(url, "layer", { ...layer, platform });
    }
  }

  #visitEntry(entry: IndexEntry, above: string | null): void {
    const url = manifestUrl(this.options.reference, entry.digest);
    if (entry.kind === "other") {
      this.#skipped.set(url, `entry of type ${entry.mediaType.slice(0, 100)}: neither manifest nor index`);
      return;
    }
    if (!this.#isWanted(entry)) return;
    const platform = entry.platform === null ? above : formatPlatform(entry.platform);
    if (this.#seen.has(entry.digest)) return this.#share(entry.digest, platform);
    this.#seen.add(entry.digest);
    // The root is one of them.
    if (this.#seen.size > MANIFEST_COUNT_MAX + 1) {
      throw this.#tooLarge(`it has more than ${MANIFEST_COUNT_MAX} manifests`);
    }
    this.#next.push({ descriptor: entry, platform });
  }

  #isWanted({ kind, platform }: IndexEntry): boolean {
    const { wanted } = this.options;
    if (platform === null) {
      this.#hasUnnamed ||= kind === "manifest";
      return true;
    }
    if (wanted === "all") return true;
    if (isAttestation(platform)) return false;
    this.#present.set(formatPlatform(platform), platform);
    return wanted.some((one) => matchesPlatform(one, platform));
  }

  #checkPlatforms(): void {
    const { wanted, reference, require } = this.options;
    // An entry that names no platform may be for any.
    if (wanted === "all" || this.#hasUnnamed) return;
    const present = [...this.#present.values()];
    const missing = wanted.filter((one) => !present.some((platform) => matchesPlatform(one, platform)));
    if (missing.length === 0) return;
    const url = manifestUrl(reference, reference.reference);
    const names = missing.map(formatPlatform).join(", ");
    const there = [...this.#present.keys()].slice(0, 50).join(", ") || "none";
    const reason = `no manifest for platform ${names}; the image has ${there}`;
    if (require === "each" || missing.length === wanted.length) {
      throw new LacewingError("source_not_found", `Cannot read image ${url}: ${reason}`);
    }
    this.#skipped.set(url, reason);
  }

  /** An entry that stands in the index twice, for two platforms. */
  #share(digest: string, platform: string | null): void {
    const at = this.#next.findIndex(({ descriptor }) => descriptor.digest === digest);
    const pending = this.#next[at];
    if (pending !== undefined && pending.platform !== platform) this.#next[at] = { ...pending, platform: null };
  }

  #add(
    url: string,
    kind: ItemKind,
    { digest, size, platform }: { digest: string; size: number; platform: string | null },
  ): void {
    const known = this.#items.get(url);
    if (known !== undefined) {
      if (known.contentLength !== size) {
        throw new LacewingError(
          "protocol",
          `Cannot read ${url}: two manifests give it ${known.contentLength} and ${size} B`,
        );
      }
      if (known.platform !== platform) this.#items.set(url, { ...known, platform: null });
      return;
    }
    if (this.#items.size >= ITEM_COUNT_MAX) throw this.#tooLarge(`it has more than ${ITEM_COUNT_MAX} parts`);
    this.#items.set(url, { url, digest, contentLength: size, kind, platform });
  }

  #tooLarge(reason: string): LacewingError {
    const { reference } = this.options;
    return new LacewingError(
      "too_large",
      `Cannot read image ${manifestUrl(reference, reference.reference)}: ${reason}`,
    );
  }
}
