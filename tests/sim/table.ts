/** Lays out what runs came to as a table for people. */
import type { Outcome } from "./simulation.ts";

const COLUMNS: readonly (readonly [string, (outcome: Outcome) => string])[] = [
  ["bound s", ({ boundMs }) => (boundMs / 1000).toFixed(2)],
  ["slowest s", ({ lastMs }) => (lastMs / 1000).toFixed(2)],
  ["× bound", ({ stretch }) => stretch.toFixed(3)],
  ["median ×", ({ medianStretch }) => medianStretch.toFixed(3)],
  ["origin", ({ originCopies }) => originCopies.toFixed(3)],
  ["crossed", ({ crossCopies }) => crossCopies.toFixed(2)],
  ["waste", ({ waste }) => `${(waste * 100).toFixed(1)}%`],
  ["uplinks", ({ uploadUse }) => `${(uploadUse * 100).toFixed(0)}%`],
  ["messages", ({ messages }) => messages.toFixed(0)],
  ["haves", ({ haves }) => haves.toFixed(0)],
  ["cries", ({ cries }) => String(cries)],
  ["idle s", ({ longestIdleMs }) => (longestIdleMs / 1000).toFixed(2)],
  ["undone", ({ incomplete }) => String(incomplete)],
  ["run s", ({ wallMs }) => (wallMs / 1000).toFixed(1)],
];

/** One row a run, its name before it; messages, haves are per host. */
export function formatTable(rows: readonly (readonly [string, Outcome])[]): string {
  const cells = [
    ["", ...COLUMNS.map(([title]) => title)],
    ...rows.map(([name, outcome]) => [name, ...COLUMNS.map(([, of]) => of(outcome))]),
  ];
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  return cells.map((row) =>
    row.map((cell, column) => column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)).join("  ")
  ).join("\n");
}
