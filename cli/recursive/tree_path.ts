/**
 * Decides where a URL of a tree goes in the output folder. Pure. A name that
 * could be another place than an entry of its folder, on any system that the
 * tree may be copied to, is refused and never bent into another one.
 */
import { nameFromUrl } from "../output_path.ts";

/** Names below the output folder, the last one that of the entry; or why there are none. */
export type TreePath = { readonly path: readonly string[] } | { readonly reason: string };

/**
 * @param url of a file, or with `/` at its end of a folder, below `start`
 * @param start the folder that the output folder stands for, with `/` at its end
 */
export function treePath(url: string, start: string): TreePath {
  const [{ pathname, search }, folder] = [new URL(url), new URL(start)];
  const depth = folder.pathname.split("/").length - 1;
  const segments = pathname.replace(/\/$/, "").split("/").slice(depth);
  const path: string[] = [];
  for (const [index, segment] of segments.entries()) {
    const isLast = index === segments.length - 1;
    // As wget has it: pages that differ in their query are different files.
    const query = isLast && !pathname.endsWith("/") ? search.replaceAll("/", "%2F") : "";
    const name = decode(segment) + query;
    const reason = whyUnsafe(name);
    if (reason !== null) return { reason };
    path.push(name);
  }
  return path.length === 0 ? { reason: "it is the folder itself" } : { path };
}

/** The output folder's name where none is given: that of the URL's last folder, else its host. */
export function folderName(url: string): string {
  const { pathname, hostname, origin } = new URL(url);
  const segment = pathname.split("/").findLast((part) => part !== "");
  return segment === undefined ? hostname.replaceAll(/[[\]]/g, "") : nameFromUrl(`${origin}/${segment}`);
}

function whyUnsafe(name: string): string | null {
  if (name === "") return "a part of its path is empty";
  if (name === "." || name === "..") return `"${name}" would leave the folder`;
  if (name.includes("/")) return "a name holds /";
  if (/^\\|(^|\\)\.\.(\\|$)/.test(name)) return "it would leave the folder where \\ parts names";
  if (/^[A-Za-z]:/.test(name)) return "a name begins with a drive letter";
  // deno-lint-ignore no-control-regex
  if (/[\x00-\x1f\x7f-\x9f]/.test(name)) return "a name holds control characters";
  return null;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
