/**
 * Names the version of a content that an origin serves, and tells whether
 * two answers of an origin are of one version. Pure. Hosts that read the same
 * version make the same name, so that their pieces belong together.
 */
import { digestInUrl, formatDigest, sha256Hex } from "../core/digest.ts";
import { pieceLengthFor } from "../core/piece.ts";
import type { TaskMeta } from "../core/wire/scheduler.ts";
import type { SourceVersion } from "../source/source.ts";

/** What an answer of the origin tells of its content. */
export interface SourceFacts {
  readonly url: string;
  readonly contentLength: number;
  readonly ranges: boolean;
  readonly version: SourceVersion;
}

/**
 * The task's meta. A content without any validator (no strong ETag, no
 * Last-Modified, no digest in its URL) cannot be read in parts safely: its
 * parts could be of two versions. It is read as one stream under a name of its own.
 *
 * @param nonce a random text that names such a content
 */
export function metaOf({ url, contentLength, ranges, version }: SourceFacts, nonce: string): TaskMeta {
  const digest = digestInUrl(url);
  const validator = digest !== null ? formatDigest(digest) : version.etag ?? version.lastModified;
  const name = validator === undefined ? nonce : sha256Hex(JSON.stringify([validator, contentLength])).slice(0, 32);
  return {
    generation: name,
    content_length: contentLength,
    piece_length: pieceLengthFor(contentLength),
    ranges: ranges && validator !== undefined,
    ...(version.etag === undefined ? {} : { etag: version.etag }),
    ...(version.lastModified === undefined ? {} : { last_modified: version.lastModified }),
  };
}

/** The version that reads of this generation must find; none where the URL itself fixes the content. */
export function expectedVersion(url: string, meta: TaskMeta): SourceVersion | undefined {
  if (digestInUrl(url) !== null) return undefined;
  if (meta.etag === undefined && meta.last_modified === undefined) return undefined;
  return {
    ...(meta.etag === undefined ? {} : { etag: meta.etag }),
    ...(meta.last_modified === undefined ? {} : { lastModified: meta.last_modified }),
  };
}
