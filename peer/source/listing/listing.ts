/**
 * What a folder of an origin holds, whatever its source: the vocabulary that
 * sources, their parsers and the recursive download share. Types only.
 */

/** How a folder was told; the next one of the same origin is asked for in the same way first. */
export type ListingStyle = "page" | "webdav";

/** Which folder is wanted. */
export interface ListRequest {
  readonly url: string;
  /** Sent to the origin of `url` only. */
  readonly headers: readonly (readonly [string, string])[];
  /** The folder that everything must lie in, as an earlier listing gave it; null: `url` is the first one. */
  readonly start: string | null;
  readonly style?: ListingStyle;
}

export interface ListingEntry {
  /** Absolute, without user info and fragment; a folder's ends with `/`. */
  readonly url: string;
  readonly isFolder: boolean;
  /** Bytes, or null where the listing does not say exactly. */
  readonly size: number | null;
  /** To the second, in UTC, or null where the listing does not say exactly. */
  readonly modifiedMs: number | null;
}

/** An entry that was not taken. */
export interface RefusedEntry {
  /** As the origin gave it: not safe to show without escaping. */
  readonly name: string;
  readonly reason: string;
}

export interface Listing {
  /** The folder's own URL after redirects, with `/` at its end. */
  readonly url: string;
  /** The folder that everything lies in. */
  readonly start: string;
  readonly style: ListingStyle;
  readonly entries: readonly ListingEntry[];
  readonly refused: readonly RefusedEntry[];
}

/** What a parser reads: a page of an origin, and where it was. */
export interface ListingPage {
  /** Where the page came from, after redirects; links are resolved against it. */
  readonly url: URL;
  /** Nothing outside of this folder is an entry. */
  readonly start: URL;
  readonly text: string;
}

/** What a parser found. */
export type Entries = Pick<Listing, "entries" | "refused">;
