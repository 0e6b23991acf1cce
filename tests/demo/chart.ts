/** What the demo prints of downloads: a table of hosts and a chart of who sent to whom. Pure. */
import { formatBytes, formatDuration } from "../../peer/core/units.ts";

/** What one host downloaded: a file, or all parts of an image. */
export interface HostResult {
  readonly name: string;
  /** From the first question to the last answer. */
  readonly ms: number;
  readonly bytes: number;
  readonly fromPeers: number;
  readonly fromSource: number;
  readonly fromLocal: number;
  /** Bytes by the name of the host that sent them. */
  readonly senders: ReadonlyMap<string, number>;
  /** Contents whose SHA-256 was computed anew from the daemon's file and compared. */
  readonly right: number;
  readonly wrong: number;
}

/** The matrix of a wider swarm fits no terminal. */
const MATRIX_RECEIVERS_MAX = 8;
const BAR_LENGTH = 30;
const ORIGIN = "origin";

/** Per host: time, rate, where the bytes came from, and the digests. */
export function hostTable(results: readonly HostResult[]): string {
  const rows = results.map(({ name, ms, bytes, fromPeers, fromSource, fromLocal, right, wrong }) => [
    name,
    formatDuration(ms),
    `${formatBytes(bytes / (Math.max(ms, 1) / 1000))}/s`,
    percent(fromPeers, bytes),
    percent(fromSource, bytes),
    percent(fromLocal, bytes),
    wrong === 0 ? `${right} right` : `${wrong} WRONG`,
  ]);
  return table([["host", "time", "rate", "from peers", "from origin", "had before", "sha256"], ...rows]);
}

/**
 * Who sent how much to whom: a row for each sender and a column for each
 * receiver; only the senders' sums, as bars, when there are many receivers.
 */
export function exchangeChart(results: readonly HostResult[]): string {
  const sums = sentBy(results);
  if (sums.length === 0) return "  nobody sent anything\n";
  return results.length <= MATRIX_RECEIVERS_MAX ? matrix(results, sums) : bars(sums);
}

/** Bytes by sender, the origin among them: first it, then by name. */
export function sentBy(results: readonly HostResult[]): [sender: string, bytes: number][] {
  const sums = new Map<string, number>();
  for (const result of results) {
    for (const [sender, bytes] of sendersOf(result)) sums.set(sender, (sums.get(sender) ?? 0) + bytes);
  }
  const rank = (name: string) => name === ORIGIN ? 0 : 1;
  return [...sums].sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b, "en", { numeric: true }));
}

function matrix(results: readonly HostResult[], sums: readonly [string, number][]): string {
  const rows = sums.map(([sender, sum]) => [
    sender,
    ...results.map((result) => mebibytes(sendersOf(result).get(sender) ?? 0)),
    mebibytes(sum),
  ]);
  return table([["MiB from \\ to", ...results.map(({ name }) => name), "sum"], ...rows]);
}

function bars(sums: readonly [string, number][]): string {
  const most = Math.max(...sums.map(([, bytes]) => bytes));
  const rows = sums.map(([sender, bytes]) => [
    sender,
    mebibytes(bytes),
    "#".repeat(Math.max(1, Math.round((bytes / most) * BAR_LENGTH))).padEnd(BAR_LENGTH),
  ]);
  return table([["MiB sent by", "sum", "".padEnd(BAR_LENGTH)], ...rows]);
}

function sendersOf({ senders, fromSource }: HostResult): ReadonlyMap<string, number> {
  return fromSource === 0 ? senders : new Map([...senders, [ORIGIN, fromSource]]);
}

function mebibytes(bytes: number): string {
  return bytes === 0 ? "." : (bytes / 2 ** 20).toFixed(1);
}

function percent(part: number, whole: number): string {
  return whole === 0 ? "-" : `${((part / whole) * 100).toFixed(0)}%`;
}

/** Columns of equal width: the first to the left, the others to the right. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]) =>
    row.map((cell, column) => column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))
      .join("  ").trimEnd();
  return rows.map((row) => `  ${line(row)}\n`).join("");
}
