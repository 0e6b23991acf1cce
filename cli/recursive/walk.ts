/**
 * Walks the folders of an origin and tells what it finds, nearest first.
 * Bounded in every way: folders are listed a few ahead of who takes the
 * finds, none twice (by its canonical URL), none deeper than the level, and
 * the walk ends at a million entries, whatever a server makes up.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import { canonicalPath } from "../../peer/source/listing/links.ts";
import type { Listing, ListingEntry, ListingStyle, ListRequest } from "../../peer/source/listing/listing.ts";
import { treePath } from "./tree_path.ts";

/** Folders that are asked for at the same time. */
const FOLDERS_AHEAD = 4;
const ENTRIES_MAX = 1_000_000;

export interface FoundFile {
  readonly kind: "file";
  readonly url: string;
  /** Names below the output folder. */
  readonly path: readonly string[];
  readonly size: number | null;
  readonly modifiedMs: number | null;
}

export type Found =
  | FoundFile
  | { readonly kind: "folder"; readonly path: readonly string[] }
  /** Something that cannot be had; `what` is its URL or its name. */
  | { readonly kind: "failure"; readonly what: string; readonly error: unknown };

export interface WalkOptions {
  readonly list: (request: ListRequest) => Promise<Listing>;
  readonly headers: ListRequest["headers"];
  /** Folders deep; at least 1. */
  readonly level: number;
  /** Whether what lies deeper counts as a failure. */
  readonly unlimited: boolean;
  readonly signal: AbortSignal;
  /** Default: 1,000,000. */
  readonly entriesMax?: number;
}

/** What is below a folder whose listing is at hand. @throws {unknown} `signal.reason` only */
export async function* walk(root: Listing, options: WalkOptions): AsyncGenerator<Found, void> {
  const tree = new Tree(root, options);
  yield* tree.take(root, []);
  const ahead: Promise<Listed>[] = [];
  while (true) {
    while (ahead.length < FOLDERS_AHEAD && tree.hasFolder) ahead.push(tree.listNext());
    const listed = await ahead.shift();
    if (listed === undefined) return;
    options.signal.throwIfAborted();
    if ("error" in listed) yield { kind: "failure", what: listed.url, error: listed.error };
    else yield* tree.take(listed.listing, listed.path);
    if (tree.isFull) return;
  }
}

interface Folder {
  readonly url: string;
  readonly path: readonly string[];
  readonly style: ListingStyle;
}

type Listed =
  | { readonly listing: Listing; readonly path: readonly string[] }
  | { readonly url: string; readonly error: unknown };

class Tree {
  readonly #start: string;
  readonly #seen = new Set<string>();
  #folders: Folder[] = [];
  /** Where the next folder stands: taking the first of a long list would move all others. */
  #next = 0;
  #saidDeep = false;
  isFull = false;

  constructor({ start, url }: Listing, private readonly options: WalkOptions) {
    this.#start = start;
    this.#isNew(new URL(url));
  }

  get hasFolder(): boolean {
    return this.#next < this.#folders.length;
  }

  /** Never rejects. */
  async listNext(): Promise<Listed> {
    const { url, path, style } = this.#folders[this.#next++]!;
    if (this.#next > 1000) this.#folders = this.#folders.slice(this.#next), this.#next = 0;
    try {
      const { list, headers } = this.options;
      return { listing: await list({ url, headers, start: this.#start, style }), path };
    } catch (error) {
      return { url, error };
    }
  }

  *take(listing: Listing, path: readonly string[]): Generator<Found> {
    // It was redirected to a folder that has its turn already.
    const url = new URL(listing.url);
    if (path.length > 0 && pathOf(url, this.#start) !== path.join("/") && !this.#isNew(url)) return;
    if (path.length > 0) yield { kind: "folder", path };
    for (const { name, reason } of listing.refused) yield refusal(`${listing.url} ${JSON.stringify(name)}`, reason);
    for (const entry of listing.entries) {
      if (!this.#isNew(new URL(entry.url))) continue;
      const found = this.#judge(entry, listing.style);
      if (found !== null) yield found;
      if (this.#seen.size <= (this.options.entriesMax ?? ENTRIES_MAX)) continue;
      this.isFull = true;
      const text = `Cannot list more: there are more than ${this.options.entriesMax ?? ENTRIES_MAX} entries`;
      yield { kind: "failure", what: listing.url, error: new LacewingError("source_failed", text) };
      return;
    }
  }

  #judge(entry: ListingEntry, style: ListingStyle): Found | null {
    const { level, unlimited } = this.options;
    const place = treePath(entry.url, this.#start);
    if ("reason" in place) return refusal(entry.url, place.reason);
    const { path } = place;
    if (!entry.isFolder) {
      if (path.length > level) return null;
      return { kind: "file", url: entry.url, path, size: entry.size, modifiedMs: entry.modifiedMs };
    }
    if (path.length < level) this.#folders.push({ url: entry.url, path, style });
    else if (unlimited && !this.#saidDeep) {
      this.#saidDeep = true;
      const text = `Cannot go deeper than ${level} folders: a link may lead back into its own folder`;
      return { kind: "failure", what: entry.url, error: new LacewingError("source_failed", text) };
    }
    return null;
  }

  /** Marks a URL as seen. @returns whether it was not before */
  #isNew(url: URL): boolean {
    const key = canonicalPath(url) + url.search;
    const isNew = !this.#seen.has(key);
    this.#seen.add(key);
    return isNew;
  }
}

function pathOf(url: URL, start: string): string {
  const place = treePath(url.href, start);
  return "path" in place ? place.path.join("/") : "";
}

function refusal(what: string, reason: string): Found {
  return { kind: "failure", what, error: new LacewingError("file", `Cannot save it: ${reason}`) };
}
