/**
 * Reads a manifest URL into its parts and makes manifest and blob URLs from
 * them. Pure. Names, tags and digests hold to the grammars of the OCI
 * distribution specification ("Pulling manifests"), so that every URL made
 * here is the one that a container client asks for.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import { redactText } from "../../peer/core/log.ts";

/** A manifest URL in parts. */
export interface ManifestReference {
  /** Scheme, host, port and prefix, without a slash at the end: `https://registry.example.com`. */
  readonly base: string;
  /** `https://registry.example.com`: where credentials may go. */
  readonly origin: string;
  /** Repository, such as `library/app`. */
  readonly name: string;
  /** Tag or digest. */
  readonly reference: string;
  readonly isDigest: boolean;
}

/** The specification's grammar; a path component never begins or ends with a separator. */
const NAME = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;
/** Algorithms that the image specification registers, and that we can check. */
const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/;
/** Most clients keep a name, host included, to 255 characters (distribution specification). */
const NAME_LENGTH_MAX = 255;
const URL_LENGTH_MAX = 4096;

/** Whether `text` is a digest that a registry may name: `sha256:…` or `sha512:…`, lower-case. */
export function isOciDigest(text: unknown): text is string {
  return typeof text === "string" && DIGEST.test(text);
}

/**
 * Reads `http(s)://HOST[:PORT][/PREFIX]/v2/NAME/manifests/TAG-or-DIGEST`.
 *
 * @throws {LacewingError} `invalid` naming what is wrong.
 */
export function parseManifestUrl(text: string): ManifestReference {
  if (text.length > URL_LENGTH_MAX) throw unreadable(text, `longer than ${URL_LENGTH_MAX} characters`);
  const url = URL.parse(text);
  if (url === null) throw unreadable(text, "not an absolute URL");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw unreadable(text, `scheme ${JSON.stringify(url.protocol.slice(0, -1))} is neither http nor https`);
  }
  if (url.username !== "" || url.password !== "") {
    throw unreadable(text, "it carries credentials; give them as username and password");
  }
  if (url.search !== "" || url.hash !== "") throw unreadable(text, "a manifest URL has no query and no fragment");
  const path = decodePath(text, url.pathname);
  const match = /^(.*?)\/v2\/(.+)\/manifests\/([^/]+)$/.exec(path);
  const [, prefix = "", name = "", reference = ""] = match ?? [];
  if (match === null) throw unreadable(text, "not a manifest URL");
  checkName(text, name);
  const isDigest = reference.includes(":");
  if (isDigest && !isOciDigest(reference)) {
    throw unreadable(
      text,
      `digest ${quote(reference)} is neither sha256: with 64 nor sha512: with 128 lower-case digits`,
    );
  }
  if (!isDigest && !TAG.test(reference)) {
    throw unreadable(text, `tag ${quote(reference)} is not 1 to 128 letters, digits, dots, dashes or underscores`);
  }
  const base = url.origin + encodePrefix(prefix);
  return { base, origin: url.origin, name, reference, isDigest };
}

/** URL of a manifest of the same repository, by tag or digest. */
export function manifestUrl({ base, name }: ManifestReference, reference: string): string {
  return `${base}/v2/${name}/manifests/${reference}`;
}

/** URL of a blob of the same repository. */
export function blobUrl({ base, name }: ManifestReference, digest: string): string {
  return `${base}/v2/${name}/blobs/${digest}`;
}

function checkName(text: string, name: string): void {
  if (name.length > NAME_LENGTH_MAX) {
    throw unreadable(text, `repository name has ${name.length} characters, at most ${NAME_LENGTH_MAX} are allowed`);
  }
  if (!NAME.test(name)) {
    throw unreadable(
      text,
      `repository name ${
        quote(name)
      } is not lower-case letters, digits and single separators (. _ __ -) between slashes`,
    );
  }
}

function decodePath(text: string, path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw unreadable(text, "its path is no valid percent-encoding");
  }
}

function encodePrefix(prefix: string): string {
  return prefix.split("/").map((part) => encodeURIComponent(part).replaceAll("%3A", ":")).join("/");
}

function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? text.slice(0, 100) + "…" : text);
}

function unreadable(text: string, reason: string): LacewingError {
  const shown = quote(redactText(text.slice(0, 500)));
  return new LacewingError(
    "invalid",
    `Cannot read image URL ${shown}: ${reason}; want https://HOST/v2/NAME/manifests/TAG-or-DIGEST`,
  );
}
