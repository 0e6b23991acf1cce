/** The one line at the end of a download: how much, how fast, from where, and whether it was checked. */
import type { DownloadStats } from "../peer/core/wire/ipc.ts";
import { formatBytes, formatDuration } from "../peer/core/units.ts";

/** What the line tells. */
export interface Summary {
  readonly stats: Pick<DownloadStats, "length" | "from_local" | "from_peers" | "from_source" | "peers" | "verified">;
  readonly elapsedMs: number;
  /** Whether the client read the origin itself. */
  readonly direct: boolean;
}

/** Hex digits of a digest that are shown. */
const DIGITS_SHOWN = 12;

/** `64.0 MiB in 1.9 s (33.7 MiB/s), 91% from 7 peers, 5.8 MiB from the origin, verified sha256:ab12…`. */
export function renderSummary({ stats, elapsedMs, direct }: Summary): string {
  const { length, from_local, from_peers, from_source, peers, verified } = stats;
  const rate = formatBytes(Math.round(length / Math.max(0.001, elapsedMs / 1000)));
  const parts = [`${formatBytes(length)} in ${formatDuration(elapsedMs)} (${rate}/s)`];
  if (from_peers > 0) parts.push(`${percent(from_peers, length)} from ${peers} ${peers === 1 ? "peer" : "peers"}`);
  if (from_local > 0) parts.push(`${formatBytes(from_local)} from this host`);
  if (from_source > 0 || direct) {
    parts.push(direct ? "from the origin, without a daemon" : `${formatBytes(from_source)} from the origin`);
  }
  parts.push(verified === null ? "not verified: no digest given" : `verified ${shortDigest(verified)}`);
  return parts.join(", ");
}

/** Never 100% of what is not all, never 0% of something. */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return "0%";
  const rounded = Math.round((part / whole) * 100);
  if (part >= whole) return "100%";
  return `${Math.min(99, Math.max(part > 0 ? 1 : 0, rounded))}%`;
}

function shortDigest(digest: string): string {
  const [algorithm = "", hex = ""] = digest.split(":");
  return `${algorithm}:${hex.slice(0, DIGITS_SHOWN)}${hex.length > DIGITS_SHOWN ? "…" : ""}`;
}
