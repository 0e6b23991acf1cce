/**
 * What a configuration that was read again changes: the limits hold at once,
 * everything else with the next start. Pure.
 */
import type { DaemonConfig } from "./config.ts";

/** Limits that a running daemon takes on, bytes per second; 0 is none. */
export interface Limits {
  readonly total: number;
  readonly perTask: number;
  readonly upload: number;
}

export function limitsOf({ download, upload }: DaemonConfig): Limits {
  return { total: download.totalRateLimit, perTask: download.perPeerRateLimit, upload: upload.rateLimit };
}

const LIVE_PATHS: readonly string[] = ["download.totalRateLimit", "download.perPeerRateLimit", "upload.rateLimit"];

export interface Changes {
  /** Paths of limits, with their old and new value. */
  readonly live: readonly { readonly path: string; readonly from: unknown; readonly to: unknown }[];
  /** Paths of all else; values may be secrets. */
  readonly needRestart: readonly string[];
}

/** Where two configurations differ. */
export function configChanges(before: DaemonConfig, after: DaemonConfig): Changes {
  const [old, now] = [leavesOf(before), leavesOf(after)];
  const paths = [...new Set([...old.keys(), ...now.keys()])];
  const changed = paths.filter((path) => JSON.stringify(old.get(path)) !== JSON.stringify(now.get(path)));
  return {
    live: changed.filter((path) => LIVE_PATHS.includes(path))
      .map((path) => ({ path, from: old.get(path), to: now.get(path) })),
    needRestart: changed.filter((path) => !LIVE_PATHS.includes(path)),
  };
}

/** Values by path; a list is one value. */
function leavesOf(value: unknown, path = "", leaves = new Map<string, unknown>()): Map<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return leaves.set(path, value);
  for (const [key, item] of Object.entries(value)) leavesOf(item, path === "" ? key : `${path}.${key}`, leaves);
  return leaves;
}
