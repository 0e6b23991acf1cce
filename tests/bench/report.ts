/** Turns results into lines for people. Pure. */
import { formatBytes } from "../../peer/core/units.ts";
import { median, stretch, sum } from "./bound.ts";
import { type ClientResult, type ClientRun, medians } from "./client_bench.ts";
import type { ScenarioResult, Trial } from "./swarm_bench.ts";
import type { TinyResult } from "./tiny_bench.ts";

/** Above this share of one core a figure is about the CPU and not about the swarm. */
const BUSY_CORE = 0.85;
const GB = 1e9;

export interface Summary {
  readonly contestant: string;
  /** Seconds; in waves the sum of the waves. */
  readonly slowest: number;
  readonly median: number;
  readonly stretch: number;
  readonly sourceCopies: number;
  /** Bytes sent that nobody needed; null where that cannot be known. */
  readonly duplicateBytes: number | null;
  readonly utilisation: number;
  readonly cpuSecondsPerGb: number;
  readonly busiestCore: number;
  readonly rssMaxBytes: number | null;
  readonly trunkCopies: number | null;
  /** Contestants that did not deliver. */
  readonly wrong: number;
}

export function summarize(trial: Trial, { bound, size }: Pick<ScenarioResult, "bound" | "size">): Summary {
  const waves = Map.groupBy(trial.finishes.filter(({ killed }) => !killed), ({ wave }) => wave);
  const slowest = sum([...waves.values()].map((hosts) => Math.max(...hosts.map(({ seconds }) => seconds))));
  const middle = sum([...waves.values()].map((hosts) => median(hosts.map(({ seconds }) => seconds))));
  const delivered = size * trial.finishes.length;
  // A host that was killed had something too, which counts for nobody.
  const duplicates = trial.peerBytes === null ? null : Math.max(0, trial.sourceBytes + trial.peerBytes - delivered);
  return {
    contestant: trial.contestant,
    slowest,
    median: middle,
    stretch: stretch(slowest, bound),
    sourceCopies: size === 0 ? 0 : trial.sourceBytes / size,
    duplicateBytes: duplicates,
    utilisation: trial.utilisation,
    cpuSecondsPerGb: delivered === 0 ? 0 : trial.cpuSeconds / (delivered / GB),
    busiestCore: trial.busiestCore,
    rssMaxBytes: trial.rssMaxBytes,
    trunkCopies: trial.trunkBytes === null ? null : trial.trunkBytes / size,
    wrong: trial.wrong.length,
  };
}

/** One figure for each column: the median over the rounds of one contestant. */
export function medianSummary(summaries: readonly Summary[]): Summary {
  const [first] = summaries;
  if (first === undefined) throw new RangeError("Cannot take the median of no summaries");
  const of = (value: (summary: Summary) => number | null) => {
    const values = summaries.map(value);
    return values.includes(null) ? null : median(values as number[]);
  };
  return {
    contestant: first.contestant,
    slowest: of((it) => it.slowest)!,
    median: of((it) => it.median)!,
    stretch: of((it) => it.stretch)!,
    sourceCopies: of((it) => it.sourceCopies)!,
    duplicateBytes: of((it) => it.duplicateBytes),
    utilisation: of((it) => it.utilisation)!,
    cpuSecondsPerGb: of((it) => it.cpuSecondsPerGb)!,
    busiestCore: of((it) => it.busiestCore)!,
    rssMaxBytes: of((it) => it.rssMaxBytes),
    trunkCopies: of((it) => it.trunkCopies),
    wrong: sum(summaries.map((it) => it.wrong)),
  };
}

const COLUMNS = [
  "slowest",
  "median",
  "x bound",
  "origin copies",
  "duplicates",
  "uplinks",
  "CPU s/GB",
  "busiest core",
  "peak RSS",
];

/** A table of the scenario: the bound, then a line for each contestant. */
export function scenarioTable(result: ScenarioResult): string {
  const { scenario: { id, title }, peers, size, bound, rates: { sourceUp } } = result;
  const byName = Map.groupBy(result.trials, ({ contestant }) => contestant);
  const summaries = [...byName.values()].map((trials) =>
    medianSummary(trials.map((trial) => summarize(trial, result)))
  );
  const hasTrunk = summaries.some(({ trunkCopies }) => trunkCopies !== null);
  const rows = [
    ["", ...COLUMNS, ...(hasTrunk ? ["across racks"] : [])],
    ...summaries.map((summary) => row(summary, hasTrunk)),
  ];
  return [
    `${id.toUpperCase()}: ${title}; ${peers} hosts, ${formatBytes(size)}`,
    `   bound ${seconds(bound)}; the source sends ${formatBytes(sourceUp)}/s (calibrated)`,
    ...table(rows),
    ...ratios(summaries).map((line) => `   ${line}`),
    ...summaries.filter(({ busiestCore }) => busiestCore > BUSY_CORE).map(({ contestant, busiestCore }) =>
      `   ${contestant}: the busiest core was busy ${percent(busiestCore)} of the time: this figure is about the CPU`
    ),
    ...summaries.filter(({ wrong }) => wrong > 0).map(({ contestant, wrong }) =>
      `   ${contestant}: ${wrong} FILES WRONG`
    ),
    "",
  ].join("\n");
}

function row(summary: Summary, hasTrunk: boolean): string[] {
  const bytes = (value: number | null) => value === null ? "-" : formatBytes(Math.round(value));
  return [
    summary.contestant,
    seconds(summary.slowest),
    seconds(summary.median),
    summary.stretch.toFixed(3),
    summary.sourceCopies.toFixed(2),
    bytes(summary.duplicateBytes),
    percent(summary.utilisation),
    summary.cpuSecondsPerGb.toFixed(2),
    percent(summary.busiestCore),
    bytes(summary.rssMaxBytes),
    ...(hasTrunk ? [`${summary.trunkCopies?.toFixed(2) ?? "-"} copies`] : []),
  ];
}

/** How the first contestant stands to each other one. */
function ratios([own, ...others]: readonly Summary[]): string[] {
  if (own === undefined) return [];
  return others.map((other) => {
    const ratio = other.slowest / own.slowest;
    const word = ratio >= 1 ? `${ratio.toFixed(2)} times faster than` : `${(1 / ratio).toFixed(2)} times slower than`;
    return `${own.contestant} is ${word} ${other.contestant} (slowest host)`;
  });
}

function align(cell: string, width: number, column: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}

export function seconds(value: number): string {
  return value < 1 ? `${(value * 1000).toFixed(1)} ms` : `${value.toFixed(2)} s`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

/** Cells in columns: the first to the left, the others to the right. */
export function table(rows: readonly string[][]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)));
  return rows.map((cells) =>
    `   ${cells.map((cell, column) => align(cell, widths[column]!, column)).join("  ")}`.trimEnd()
  );
}

export function tinyTable(results: readonly TinyResult[], peers: number): string {
  const ms = (value: number) => `${value.toFixed(1)} ms`;
  return [
    `H: tiny contents through warm daemons; ${peers} hosts, medians`,
    ...table([
      ["", "one host", "curl", "difference", `all ${peers}, slowest`, `${peers} x curl, with processes`, "on the host"],
      ...results.map(({ size, oneMs, curlMs, allMs, curlAllMs, heldMs }) => [
        formatBytes(size),
        ms(oneMs),
        ms(curlMs),
        ms(oneMs - curlMs),
        ms(allMs),
        ms(curlAllMs),
        ms(heldMs),
      ]),
    ]),
    "",
  ].join("\n");
}

/** Medians beside those of curl: `1.20x` is a fifth more. The spread is from the fastest run to the slowest. */
export function clientTable(results: readonly ClientResult[]): string {
  const rows = results.map((result) => {
    const own = medians(result);
    const curl = results.find(({ client, size }) => client === "curl" && size === result.size);
    const base = curl === undefined ? null : medians(curl);
    const ratio = (key: keyof ClientRun) => base === null ? "" : `${(own[key] / Math.max(1, base[key])).toFixed(2)}x`;
    const times = result.runs.map(({ ms }) => ms);
    return [
      formatBytes(result.size),
      result.client,
      milliseconds(own.ms),
      ratio("ms"),
      `${milliseconds(Math.min(...times))}..${milliseconds(Math.max(...times))}`,
      milliseconds(own.cpuMs),
      ratio("cpuMs"),
      formatBytes(own.rssMaxBytes),
      ratio("rssMaxBytes"),
    ];
  });
  const count = new Set(results.map(({ runs }) => runs.length));
  return [
    `Client: whole processes from nginx on loopback; medians of ${[...count].join(" and ")} runs in turn, x is curl's`,
    ...table([["size", "client", "time", "", "spread", "CPU", "", "memory", ""], ...rows]),
    "",
  ].join("\n");
}

export function milliseconds(ms: number): string {
  return ms < 100 ? `${ms.toFixed(1)} ms` : `${ms.toFixed(0)} ms`;
}
