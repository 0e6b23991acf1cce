/**
 * Reads a folder as nginx and Caddy tell it in JSON (nginx also as JSONP).
 * nginx gives raw names; Caddy gives links besides, which are taken. What
 * nginx calls `other` (a broken link, a device) has no content.
 */
import { entryOfLink, entryOfName, partition, sizeOf, timeOf } from "./links.ts";
import type { Entries, ListingEntry, ListingPage, RefusedEntry } from "./listing.ts";

/** @returns null when the text is JSON of something else, or none */
export function readJsonListing({ url, start, text }: ListingPage): Entries | null {
  let value: unknown;
  try {
    value = JSON.parse(withoutCallback(text));
  } catch {
    return null;
  }
  if (!Array.isArray(value) || !value.every(isItem)) return null;
  return partition(value.map((item) => readItem(item, { url, start })));
}

interface Item {
  readonly name: string;
  readonly [key: string]: unknown;
}

function isItem(value: unknown): value is Item {
  if (typeof value !== "object" || value === null) return false;
  const { name, type, is_dir: isFolder } = value as Record<string, unknown>;
  return typeof name === "string" && (typeof type === "string" || typeof isFolder === "boolean");
}

function readItem(item: Item, page: { url: URL; start: URL }): ListingEntry | RefusedEntry | null {
  const { type, is_dir: isFolder, is_symlink: isLink } = item;
  if (typeof isFolder === "boolean") {
    // Of a link Caddy tells its own time and length, not those of what it leads to.
    const facts = isLink === true ? {} : { size: sizeOf(item.size), modifiedMs: timeOf(item.mod_time) };
    const name = isFolder ? item.name.replace(/\/$/, "") : item.name;
    if (typeof item.url !== "string") return entryOfName(name, page.url, { ...facts, isFolder });
    return entryOfLink(item.url, page, { ...facts, isFolder }) ?? { name, reason: "it leads out of the folder" };
  }
  if (type !== "file" && type !== "directory") return null;
  const facts = { size: sizeOf(item.size), modifiedMs: timeOf(item.mtime) };
  return entryOfName(item.name, page.url, { ...facts, isFolder: type === "directory" });
}

/** `/* callback *\/ name([...]);` without what is around the array. */
function withoutCallback(text: string): string {
  const match = /^\s*(?:\/\*[^]{0,200}?\*\/)?\s*[\w$.]{1,100}\(([^]*)\);?\s*$/.exec(text);
  return match?.[1] ?? text;
}
