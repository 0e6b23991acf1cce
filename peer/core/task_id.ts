/**
 * Names a content: the task id. One pure function, called alike by manager,
 * proxy and client, so that a preheated content is hit by the first download.
 * Headers, digest, range, output and the URL's user info are not part of it:
 * they say who asks and for how much, not which content. Published vectors:
 * tests/unit/peer/core/task_id_vectors.json.
 */
import { createHash } from "node:crypto";
import { LacewingError } from "./errors.ts";
import { redactText } from "./log.ts";

/** Version prefix of the digested text; a change of the rules changes it. */
const VERSION = "lacewing/1";
/** Characters of a wrong URL that a message repeats. */
const URL_SHOWN_MAX = 500;

/**
 * Query-parameter names of a filter string such as `Expires&Signature`,
 * exact and case-sensitive; empty parts are ignored.
 */
export function parseFilter(filter: string): string[] {
  return filter.split("&").filter((name) => name !== "");
}

/**
 * The URL as the task id sees it: WHATWG-parsed, without user info (credentials,
 * like a header), without fragment and without the filtered parameters; the remaining
 * ones sorted by decoded name (stable for equal names), empty ones left out. No `?`
 * stays when no parameter does. Percent-encoding is kept as written: origins may tell `%7E` from `~`.
 *
 * @throws {LacewingError} `usage` if `url` is not an absolute URL.
 */
export function canonicalUrl(url: string, filter = ""): string {
  const parsed = URL.parse(url);
  if (parsed === null) {
    throw new LacewingError(
      "usage",
      `Cannot read URL ${JSON.stringify(shown(url))}: want an absolute one such as https://host/path`,
    );
  }
  parsed.username = "";
  parsed.password = "";
  parsed.hash = "";
  const dropped = new Set(parseFilter(filter));
  const kept = parsed.search.slice(1).split("&").filter((part) => part !== "" && !dropped.has(parameterName(part)));
  kept.sort((a, b) => compare(parameterName(a), parameterName(b)));
  // The setter swallows one leading "?": without it the query "?a" would become "a".
  parsed.search = kept.length === 0 ? "" : `?${kept.join("&")}`;
  return parsed.href;
}

/**
 * Task id: SHA-256 hex over `lacewing/1`, the canonical URL and the tag, joined by newlines.
 *
 * @returns 64 hex digits
 * @throws {LacewingError} `usage` if `url` is not an absolute URL.
 * @example
 * ```ts
 * import { taskId } from "./mod.ts";
 *
 * const id = taskId("https://example.com/model.bin?Expires=1", { filter: "Expires" });
 * console.log(id === taskId("https://example.com/model.bin")); // true
 * ```
 */
export function taskId(url: string, { tag = "", filter = "" }: { tag?: string; filter?: string } = {}): string {
  return createHash("sha256").update([VERSION, canonicalUrl(url, filter), tag].join("\n")).digest("hex");
}

/** A wrong URL for a message: cut, and without what stands where user info would. */
function shown(url: string): string {
  return redactText(url.slice(0, URL_SHOWN_MAX).replace(/:\/\/.*@/s, "://***@"));
}

function parameterName(part: string): string {
  const name = part.split("=", 1)[0] ?? "";
  try {
    return decodeURIComponent(name.replaceAll("+", " "));
  } catch {
    return name;
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
