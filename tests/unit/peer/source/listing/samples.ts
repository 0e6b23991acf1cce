/** Folder pages that real servers made of one tree with nasty names, and what stands in it. */
import type { ListingPage } from "../../../../../peer/source/listing/listing.ts";

const FOLDER = new URL("../../../../testutil/listings/", import.meta.url);

/** Files that every server lists. */
export const FILES = [
  "<b>bold.txt",
  "a.txt",
  "amp&lt;.txt",
  "back\\slash.txt",
  "big.img",
  "file with space.txt",
  "hash#tag.txt",
  "k1536.bin",
  "link-to-a",
  `${"l".repeat(120)}.txt`,
  "percent%41.txt",
  "plus+plus.txt",
  "question?mark.txt",
  "quote\"and'apos.txt",
  "semi;colon:colon.txt",
  "zero.bin",
  "ünïcödé-文件.txt",
];
export const FOLDERS = ["dir with space/", "empty/", "link-to-dir/", "loop/", "sub/"];

export function samplePage(name: string, url: string): ListingPage {
  return { url: new URL(url), start: new URL(url), text: Deno.readTextFileSync(new URL(name, FOLDER)) };
}

/** Names of entries below a folder as a user would see them. */
export function namesOf(entries: readonly { url: string }[], folder: string): string[] {
  return entries.map(({ url }) => {
    if (!url.startsWith(folder)) throw new Error(`${url} is not below ${folder}`);
    return decodeURIComponent(url.slice(folder.length));
  }).sort();
}

export function sorted(...lists: readonly (readonly string[])[]): string[] {
  return lists.flat().sort();
}
