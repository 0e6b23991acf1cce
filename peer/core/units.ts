/**
 * Sizes, rates and durations as flags and YAML write them, and back into text
 * for people. Binary multiples everywhere: 1K = 1024 (INTERFACE section 2).
 */
import { LacewingError } from "./errors.ts";

const MULTIPLIERS: Record<string, number> = {
  "": 1,
  B: 1,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
};
const DURATION_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Reads a size or rate: a number with an optional suffix `G GB g M MB m K KB k B`
 * (also `Gi GiB Mi MiB Ki KiB T…`); decimals allowed, a bare number is bytes.
 *
 * @returns whole bytes, at least 0
 * @throws {LacewingError} `usage` if it is not one.
 */
export function parseByteSize(text: string): number {
  const match = /^(\d+(?:\.\d+)?|\.\d+)\s*([kKmMgGtT]?)(i?)(B?)$/.exec(text.trim());
  const multiplier = match === null ? undefined : MULTIPLIERS[(match[2] ?? "").toUpperCase()];
  const bytes = match === null || multiplier === undefined ? NaN : Number(match[1]) * multiplier;
  if (!Number.isFinite(bytes) || bytes > Number.MAX_SAFE_INTEGER || (match?.[3] === "i" && match[2] === "")) {
    throw new LacewingError(
      "usage",
      `Cannot read size ${JSON.stringify(text)}: want a number with an optional unit, such as 512K, 100MB or 1.5G`,
    );
  }
  return Math.floor(bytes);
}

/**
 * Reads a duration such as `30s`, `5m`, `1h30m`, `250ms` or `0`.
 *
 * @returns whole milliseconds, at least 0
 * @throws {LacewingError} `usage` if it is not one.
 */
export function parseDuration(text: string): number {
  const trimmed = text.trim();
  if (/^0+$/.test(trimmed)) return 0;
  const parts = [...trimmed.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)];
  const sumMs = Math.round(parts.reduce((sum, [, value, unit]) => sum + Number(value) * DURATION_MS[unit!]!, 0));
  if (parts.length === 0 || parts.map((part) => part[0]).join("") !== trimmed || !Number.isSafeInteger(sumMs)) {
    throw new LacewingError(
      "usage",
      `Cannot read duration ${JSON.stringify(text)}: want for example 30s, 5m, 1h30m or 0`,
    );
  }
  return sumMs;
}

/** `67108864` → `64.0 MiB`. */
export function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  // 1023.95 KiB would be shown as 1024.0 KiB.
  while (value >= (unit === 0 ? 1024 : 1023.95) && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${value} B` : `${value.toFixed(1)} ${units[unit]}`;
}

/** `1900` → `1.9 s`; minutes and hours from 100 s on. */
export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 99_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
