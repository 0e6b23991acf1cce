/**
 * Decides the output's absolute path and the name of the file that grows
 * beside it. Pure. A name that comes from a URL is one harmless file name,
 * whatever the URL holds: it cannot leave the folder.
 */

/** Bytes of a file name on the file systems in use. */
const NAME_LENGTH_MAX = 255;
/** Room for what `temporaryName` adds. */
const BASE_LENGTH_MAX = 200;

/**
 * @param output what `-O` says; null when it was not given
 * @param place the working folder, and whether a path is an existing folder
 * @returns an absolute path
 */
export function outputPath(
  output: string | null,
  { url, cwd, isFolder }: { url: string; cwd: string; isFolder: (path: string) => boolean },
): string {
  const path = absolutePath(output ?? cwd, cwd);
  const meansFolder = output === null || /(^|\/)\.{0,2}$/.test(output) || isFolder(path);
  return meansFolder ? `${path === "/" ? "" : path}/${nameFromUrl(url)}` : path;
}

/** The last segment of a URL's path as a file name; `index.html` where there is none. */
export function nameFromUrl(url: string): string {
  const segment = (URL.parse(url)?.pathname ?? "").split("/").at(-1) ?? "";
  // Control characters, separators of any system, and those that turn the direction of writing.
  // deno-lint-ignore no-control-regex
  const name = decode(segment).replace(/[\x00-\x1f\x7f-\x9f/\\\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "_");
  const short = cutBytes(name, NAME_LENGTH_MAX);
  return /^\.{0,2}$/.test(short) ? "index.html" : short;
}

/** Name of the growing file: hidden, beside the output, and never the name of another run. */
export function temporaryName(base: string, random: string): string {
  return `.${cutBytes(base, BASE_LENGTH_MAX)}.lacewing-${random}`;
}

/** Path of what a download without a daemon has so far: the next run must find it. */
export function partialPath(output: string): string {
  const { folder, base } = splitPath(output);
  return `${folder === "/" ? "" : folder}/.${cutBytes(base, BASE_LENGTH_MAX)}.lacewing-part`;
}

/** The path from the root, without slashes at its end; `..` stays, because after a symbolic link it means another place. */
export function absolutePath(path: string, cwd: string): string {
  const whole = path.startsWith("/") ? path : `${cwd.replace(/\/+$/, "")}/${path.replace(/^(\.\/+)+/, "")}`;
  return whole.replace(/(\/+\.?)+$/, "") || "/";
}

/** Folder and last name of an absolute path. */
export function splitPath(path: string): { folder: string; base: string } {
  const slash = path.lastIndexOf("/");
  return { folder: path.slice(0, slash) || "/", base: path.slice(slash + 1) };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The text's first bytes in UTF-8, cut between characters. */
function cutBytes(text: string, length: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= length) return text;
  return new TextDecoder().decode(bytes.subarray(0, length), { stream: true });
}
