/**
 * Finds out what kind of page a folder's is, by its content type and its
 * content, and reads it. The parsers of HTML and XML are loaded when the first
 * such page comes: 1.5 and 5 ms that no other download shall wait for.
 */
import type { Entries, ListingPage, ListingStyle } from "./listing.ts";

/** Types under which servers give folder pages; a page without one may be anything. */
const PAGE_TYPES = /^(|text\/html|application\/xhtml\+xml|application\/json|(text|application)\/(xml|javascript))$/;

/** Whether a page of this content type may be a listing, so that its body is worth reading. */
export function mayBeListing(contentType: string): boolean {
  return PAGE_TYPES.test(typeOf(contentType));
}

/** @returns null when the page is no listing of any kind */
export async function readListing(
  page: ListingPage,
  contentType: string,
): Promise<(Entries & { style: ListingStyle }) | null> {
  const head = page.text.slice(0, 1000).trimStart();
  const isXml = /^<\?xml|^<list\b|^<(\w+:)?multistatus\b/i.test(head);
  if (isXml && !/<html\b/i.test(head)) return (await import("./xml.ts")).readXmlListing(page);
  if (/^[[{]|^(\/\*|[\w$.]+\()/.test(head)) {
    const { readJsonListing } = await import("./json.ts");
    const found = readJsonListing(page);
    if (found !== null || /json|javascript/.test(typeOf(contentType))) {
      return found === null ? null : { ...found, style: "page" };
    }
  }
  const isHtml = /html/.test(typeOf(contentType)) || /<(!doctype html|html|a\s)/i.test(head);
  return isHtml ? { ...(await import("./html.ts")).readHtmlListing(page), style: "page" } : null;
}

/** The bytes of a page as text, by the character set of its content type; UTF-8 where that says nothing known. */
export function pageText(bytes: Uint8Array, contentType: string): string {
  const label = /;\s*charset="?([\w.:-]{1,40})/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(label).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}

function typeOf(contentType: string): string {
  return contentType.split(";", 1)[0]!.trim().toLowerCase();
}
