/** The failures that an engine itself finds, in one wording each. */
import { LacewingError } from "../core/errors.ts";

/** Nobody has the content, and the origin must not be read. */
export function noHolder(url: string, reason: string): LacewingError {
  return new LacewingError("no_holder", `Cannot download ${url}: ${reason}, and reading the origin is disabled`);
}

/** The content changed again and again while it was read. */
export function changedTooOften(url: string, times: number): LacewingError {
  return new LacewingError(
    "content_changed",
    `Cannot download ${url}: it changed at the origin ${times} times meanwhile`,
  );
}

/** A piece on this disk has another digest than the scheduler's list says. */
export function contradicted(piece: number | undefined): LacewingError {
  return new LacewingError(
    "content_changed",
    `Cannot go on: piece ${piece} on this host is not the one the other hosts have`,
  );
}

export function isChanged(error: unknown): boolean {
  return error instanceof LacewingError && error.code === "content_changed";
}
