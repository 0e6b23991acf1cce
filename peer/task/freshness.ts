/**
 * Asks the origin whether a content on disk is still what it serves: one
 * request of one byte, at most once a minute and task. An origin that cannot
 * be asked (down, refused, slow) leaves the content as it is: preheated
 * content must be there when its origin is not.
 */
import { LacewingError } from "../core/errors.ts";
import type { Source } from "../source/source.ts";
import type { StoredTask } from "../storage/piece_store.ts";
import { expectedVersion } from "./generation.ts";

/** How long an answer holds. */
const FRESH_MS = 60_000;
const TIMEOUT_MS = 1_500;

export interface Origin {
  readonly source: Source;
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly signal: AbortSignal;
}

/** Whether this host has asked within the last minute, or the URL itself fixes the content. */
export function needsNoCheck({ info: { meta, checkedAtMs } }: StoredTask, url: string): boolean {
  return expectedVersion(url, meta) === undefined || Date.now() - checkedAtMs < FRESH_MS;
}

/** Asks now. @returns false only if the origin says that it has another content */
export async function isStillAtOrigin(
  stored: StoredTask,
  { source, url, headers, signal: stop }: Origin,
): Promise<boolean> {
  const { meta } = stored.info;
  const expect = expectedVersion(url, meta);
  if (expect === undefined) return true;
  const signal = AbortSignal.any([stop, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    await using body = await source.open({
      url,
      headers,
      range: meta.content_length === 0 ? null : { offset: 0, length: 1 },
      expect,
    }, { signal });
    if (body.contentLength !== null && body.contentLength !== meta.content_length) return false;
  } catch (error) {
    if (
      error instanceof LacewingError && (error.code === "content_changed" || error.code === "range_not_satisfiable")
    ) return false;
    return true;
  }
  stored.checked();
  return true;
}
