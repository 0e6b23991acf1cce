/**
 * Decides how long to wait before an origin is asked again. Pure: the caller
 * brings attempt number, dice and time of day.
 */
import type { Random } from "../core/clock.ts";

/** First wait; each further one doubles up to the longest. Half of it is chance, so that a swarm does not ask in step. */
const BACKOFF_FIRST_MS = 200;
const BACKOFF_LONGEST_MS = 5000;
/** An origin that asks for a longer pause is taken as failed. */
export const RETRY_AFTER_MAX_MS = 30_000;

/** @param attempt from 0. @returns milliseconds */
export function backoffMs(attempt: number, random: Random): number {
  const longest = Math.min(BACKOFF_LONGEST_MS, BACKOFF_FIRST_MS * 2 ** attempt);
  return longest / 2 + (random() * longest) / 2;
}

/**
 * Reads Retry-After: seconds or an HTTP date.
 *
 * @param nowMs wall-clock milliseconds
 * @returns milliseconds to wait, at least 0, or null when there is none that can be read
 */
export function retryAfterMs(value: string | null, nowMs: number): number | null {
  const text = value?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Date.parse reads far more than HTTP dates; all of those begin with a day's name (RFC 9110 section 5.6.7).
  if (!/^(mon|tue|wed|thu|fri|sat|sun)/i.test(text)) return null;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}
