/**
 * Reads a folder's page in HTML: every link strictly below the start folder is
 * an entry, whatever server made the page (nginx, Apache in all its styles,
 * lighttpd, Caddy, Python). Links are taken, not texts: texts are cut short by
 * some servers. Sizes and times are rounded there, so that none are taken.
 *
 * A page that is no listing (an `index.html`) is read the same way, as wget
 * with --no-parent would: what it links to in its folder is downloaded.
 */
import { type DefaultTreeAdapterTypes, parse } from "parse5";
import { entryOfLink } from "./links.ts";
import type { Entries, ListingEntry, ListingPage } from "./listing.ts";

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

export function readHtmlListing({ url, start, text }: ListingPage): Entries {
  let base = url;
  const entries = new Map<string, ListingEntry>();
  for (const element of elementsOf(parse(text))) {
    const href = element.attrs.find(({ name }) => name === "href")?.value;
    if (href === undefined) continue;
    if (element.tagName === "base") base = URL.parse(href, url) ?? url;
    if (element.tagName !== "a") continue;
    const entry = entryOfLink(href, { url: base, start });
    if (entry !== null) entries.set(entry.url, entry);
  }
  return { entries: [...entries.values()], refused: [] };
}

/** All elements in the order of the text. Without recursion: a page may nest as deep as it likes. */
function* elementsOf(root: Node): Generator<Element> {
  const stack: Node[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if ("tagName" in node) yield node;
    if (!("childNodes" in node)) continue;
    for (let at = node.childNodes.length - 1; at >= 0; at--) stack.push(node.childNodes[at]!);
  }
}
