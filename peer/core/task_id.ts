/**
 * Names a content: the task id. One pure function, called alike by manager,
 * proxy and client, so that a preheated content is hit by the first download.
 * Headers, digest, range and output are not part of it.
 */
import { createHash } from "node:crypto";
import { LacewingError } from "./errors.ts";

/** Version prefix of the digested text; a change of the rules changes it. */
const VERSION = "lacewing/1";

/**
 * Query-parameter names of a filter string such as `Expires&Signature`,
 * exact and case-sensitive; empty parts are ignored.
 */
export function parseFilter(filter: string): string[] {
  return filter.split("&").filter((name) => name !== "");
}

/**
 * The URL as the task id sees it: WHATWG-parsed, without fragment and without
 * the filtered parameters, the remaining ones sorted by name (stable for equal names).
 *
 * @throws {LacewingError} `usage` if `url` is not an absolute URL.
 */
export function canonicalUrl(url: string, filter = ""): string {
  const parsed = URL.parse(url);
  if (parsed === null) {
    throw new LacewingError(
      "usage",
      `Cannot read URL ${JSON.stringify(url)}: want an absolute one such as https://host/path`,
    );
  }
  parsed.hash = "";
  const dropped = new Set(parseFilter(filter));
  const query = parsed.search.replace(/^\?/, "");
  const kept = query.split("&").filter((part) => part !== "" && !dropped.has(parameterName(part)));
  kept.sort((a, b) => compare(parameterName(a), parameterName(b)));
  parsed.search = kept.length === 0 ? "" : "?" + kept.join("&");
  return parsed.href.endsWith("?") ? parsed.href.slice(0, -1) : parsed.href;
}

/**
 * Task id: SHA-256 hex over `lacewing/1`, the canonical URL and the tag, joined by newlines.
 *
 * @returns 64 hex digits
 * @throws {LacewingError} `usage` if `url` is not an absolute URL.
 * @example
 * ```ts
 * import { taskId } from "./mod.ts";
 * const id = taskId("https://example.com/model.bin?Expires=1", { filter: "Expires" });
 * ```
 */
export function taskId(url: string, { tag = "", filter = "" }: { tag?: string; filter?: string } = {}): string {
  return createHash("sha256").update([VERSION, canonicalUrl(url, filter), tag].join("\n")).digest("hex");
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
