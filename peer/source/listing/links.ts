/**
 * Decides what a link or a name of a folder's page means: an entry strictly
 * below the start folder, or nothing. Pure. Links are judged as URLs, after
 * `..` and `%2e%2e` are resolved; names are judged before they become URLs,
 * because a name that holds `/` or is `..` would be another place.
 */
import type { ListingEntry, RefusedEntry } from "./listing.ts";

/** URLs that the daemon would not take (its wire has the same bound). */
const URL_LENGTH_MAX = 8192;

/** What a listing knows of an entry besides its name. */
export interface EntryFacts {
  readonly isFolder?: boolean;
  readonly size?: number | null;
  readonly modifiedMs?: number | null;
}

/**
 * The entry that a link leads to; null for everything that is none: links to the page itself (sorting, fragments), to
 * a folder above, to other hosts and schemes.
 *
 * @param href unescaped
 */
export function entryOfLink(
  href: string,
  { url: base, start }: { url: URL; start: URL },
  facts: EntryFacts = {},
): ListingEntry | null {
  const url = URL.parse(href, base);
  if (url === null || url.protocol !== start.protocol || url.host !== start.host) return null;
  url.hash = "";
  url.username = "";
  url.password = "";
  const isFolder = facts.isFolder ?? url.pathname.endsWith("/");
  // A folder's page under another order of its entries, not another folder.
  if (isFolder && url.search !== "" && facts.isFolder === undefined) return null;
  if (isFolder && !url.pathname.endsWith("/")) url.pathname += "/";
  if (url.pathname === base.pathname) return null;
  if (!isStrictlyBelow(url, start) || url.href.length > URL_LENGTH_MAX) return null;
  const { size = null, modifiedMs = null } = facts;
  return { url: url.href, isFolder, size: isFolder ? null : size, modifiedMs: isFolder ? null : modifiedMs };
}

/** The entry of a raw name in a folder, or why there can be none. */
export function entryOfName(
  name: string,
  folder: URL,
  { isFolder = false, size = null, modifiedMs = null }: EntryFacts,
): ListingEntry | RefusedEntry {
  if (/^\.{0,2}$/.test(name)) return { name, reason: "it names no entry of a folder" };
  if (name.includes("/")) return { name, reason: "a name may not hold /" };
  if (name.includes("\0") || !name.isWellFormed()) return { name, reason: "it is no text" };
  const url = new URL(`${encodeURIComponent(name)}${isFolder ? "/" : ""}`, folder);
  if (url.href.length > URL_LENGTH_MAX) return { name: name.slice(0, 100), reason: "the name is too long" };
  return { url: url.href, isFolder, size: isFolder ? null : size, modifiedMs: isFolder ? null : modifiedMs };
}

/** Sorts what `entryOfName` gave. */
export function partition(
  found: readonly (ListingEntry | RefusedEntry | null)[],
): { entries: ListingEntry[]; refused: RefusedEntry[] } {
  const entries: ListingEntry[] = [];
  const refused: RefusedEntry[] = [];
  for (const item of found) {
    if (item === null) continue;
    if ("url" in item) entries.push(item);
    else refused.push(item);
  }
  return { entries, refused };
}

/** The folder that a page's relative links lie in: itself, or where it is a file, the folder around it. */
export function folderOf(url: URL): URL {
  const folder = new URL(".", url);
  folder.username = "";
  folder.password = "";
  return folder;
}

/** The same text for all ways to write a URL's path with more or fewer `%xx`. */
export function canonicalPath(url: URL): string {
  return url.pathname.split("/").map((segment) => encodeURIComponent(decoded(segment))).join("/");
}

/** Text with every `%xx` read; as it is where that is no UTF-8. */
export function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function isStrictlyBelow(url: URL, start: URL): boolean {
  const [path, folder] = [canonicalPath(url), canonicalPath(start)];
  return path.startsWith(folder) && path.length > folder.length;
}

/** Whether a folder is the start or lies in it. */
export function isWithin(url: URL, start: URL): boolean {
  return url.protocol === start.protocol && url.host === start.host &&
    canonicalPath(url).startsWith(canonicalPath(start));
}

/** Milliseconds of a time as servers write it, to the second; null if it is none. */
export function timeOf(text: unknown): number | null {
  const ms = typeof text === "string" && text.length <= 64 ? Date.parse(text) : NaN;
  return Number.isFinite(ms) ? Math.floor(ms / 1000) * 1000 : null;
}

/** A length in bytes; null if it is none. */
export function sizeOf(value: unknown): number | null {
  const size = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof size === "number" && Number.isSafeInteger(size) && size >= 0 ? size : null;
}
