/** What the demo prints: a table of hosts and a chart of who sent to whom. Pure. */
import { formatBytes, formatDuration } from "../../peer/core/units.ts";

/** One host's download. */
export interface HostResult {
  readonly name: string;
  readonly ms: number;
  readonly bytes: number;
  readonly fromPeers: number;
  readonly fromSource: number;
  readonly fromLocal: number;
  /** Bytes by the name of the host that sent them. */
  readonly parents: ReadonlyMap<string, number>;
  readonly digestRight: boolean;
}

/** Per host: time, rate, where the bytes came from, and the digest check. */
export function hostTable(results: readonly HostResult[]): string {
  const rows = results.map((result) => [
    result.name,
    formatDuration(result.ms),
    `${formatBytes(result.bytes / (result.ms / 1000))}/s`,
    percent(result.fromPeers, result.bytes),
    percent(result.fromSource, result.bytes),
    percent(result.fromLocal, result.bytes),
    result.digestRight ? "right" : "WRONG",
  ]);
  return table([["host", "time", "rate", "from peers", "from origin", "cached", "sha256"], ...rows]);
}

/** A row for each sender, a column for each receiver, in MiB. */
export function exchangeChart(results: readonly HostResult[]): string {
  const senders = [...new Set(results.flatMap(({ parents }) => [...parents.keys()]))].sort();
  if (senders.length === 0) return "no bytes between hosts\n";
  const rows = senders.map((sender) => [
    sender,
    ...results.map(({ parents }) => {
      const bytes = parents.get(sender) ?? 0;
      return bytes === 0 ? "." : (bytes / 2 ** 20).toFixed(1);
    }),
  ]);
  return table([["MiB sent by \\ to", ...results.map(({ name }) => name)], ...rows]);
}

function percent(part: number, whole: number): string {
  return whole === 0 ? "-" : `${((part / whole) * 100).toFixed(0)}%`;
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]) =>
    row.map((cell, column) => column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))
      .join("  ");
  return rows.map((row) => "  " + line(row) + "\n").join("");
}
