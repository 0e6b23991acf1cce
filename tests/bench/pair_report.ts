/** Scenario I's results as lines for people, each figure beside its target and its peer. Pure. */
import { formatBytes } from "../../peer/core/units.ts";
import { median, sum } from "./bound.ts";
import type { PairResult } from "./pair_bench.ts";
import { milliseconds, table } from "./report.ts";

const MB = 1e6;

export function pairTable(results: readonly PairResult[]): string {
  const groups = Map.groupBy(results, ({ contestant, size }) => `${size} ${contestant}`);
  const rows = [...groups.values()].map((group) => {
    const { contestant, size } = group[0]!;
    const { rate, cpuSecondsPerGb, senderCpuSecondsPerGb, rssMaxBytes, rssIdleBytes, stallSeconds } = figuresOf(group);
    const shown = (value: number | null, show: (value: number) => string) => value === null ? "-" : show(value);
    return [
      `${contestant}, ${formatBytes(size)}`,
      `${formatBytes(rate)}/s`,
      cpuSecondsPerGb.toFixed(2),
      shown(senderCpuSecondsPerGb, (it) => it.toFixed(2)),
      shown(rssMaxBytes, megabytes),
      shown(rssIdleBytes, megabytes),
      shown(stallSeconds, (it) => milliseconds(it * 1000)),
      sum(group.map((it) => it.wrong.length)) > 0 ? "WRONG" : "right",
    ];
  });
  return [
    "I: one host to one host, links without limits",
    ...table([
      ["", "rate", "CPU s/GB, both ends", "of it the sender", "peak RSS", "idle", "longest stall", "bytes"],
      ...rows,
    ]),
    "",
    ...table([["targets", "wanted", "is", "curl from nginx", ""], ...targetRows(results)]),
    "",
  ].join("\n");
}

/**
 * Medians of what repeats, and the worst of what must never be. Idle memory is a median: the first start of a checkout
 * translates it, and holds 10 MB more.
 */
function figuresOf(group: readonly PairResult[]) {
  type Key = "rssMaxBytes" | "rssIdleBytes" | "stallSeconds" | "senderCpuSecondsPerGb";
  const by = (choose: (values: number[]) => number, key: Key) => {
    const values = group.map((it) => it[key]).filter((value) => value !== null);
    return values.length === 0 ? null : choose(values);
  };
  const most = (values: number[]) => Math.max(...values);
  return {
    rate: median(group.map((it) => it.rate)),
    cpuSecondsPerGb: median(group.map((it) => it.cpuSecondsPerGb)),
    senderCpuSecondsPerGb: by(median, "senderCpuSecondsPerGb"),
    rssMaxBytes: by(most, "rssMaxBytes"),
    rssIdleBytes: by(median, "rssIdleBytes"),
    stallSeconds: by(most, "stallSeconds"),
  };
}

function targetRows(results: readonly PairResult[]): string[][] {
  return [...Map.groupBy(results, ({ size }) => size)].flatMap(([size, ofSize]) => {
    const of = (name: string) => {
      const group = ofSize.filter(({ contestant }) => contestant === name);
      return group.length === 0 ? null : figuresOf(group);
    };
    const [own, curl] = [of("lacewing"), of("curl")];
    if (own === null) return [];
    const cpu = (value: number | null | undefined) => value === null || value === undefined ? "-" : value.toFixed(2);
    const row = (what: string, cells: [wanted: string, is: string, peer: string], isReached: boolean) => [
      `${formatBytes(size)}, ${what}`,
      ...cells,
      isReached ? "reached" : "missed",
    ];
    const share = curl === null ? null : own.rate / curl.rate;
    return [
      ...(share === null || curl === null
        ? []
        : [row("rate", [">= 0.90x", `${share.toFixed(2)}x`, `${formatBytes(curl.rate)}/s`], share >= 0.9)]),
      row(
        "CPU s/GB, both ends",
        ["<= 1.50", cpu(own.cpuSecondsPerGb), cpu(curl?.cpuSecondsPerGb)],
        own.cpuSecondsPerGb <= 1.5,
      ),
      row(
        "of it the sender",
        ["<= 0.35", cpu(own.senderCpuSecondsPerGb), cpu(curl?.senderCpuSecondsPerGb)],
        (own.senderCpuSecondsPerGb ?? 0) <= 0.35,
      ),
      row("peak RSS", ["<= 160 MB", megabytes(own.rssMaxBytes ?? 0), "-"], (own.rssMaxBytes ?? 0) <= 160 * MB),
      row("idle RSS", ["<= 80 MB", megabytes(own.rssIdleBytes ?? 0), "-"], (own.rssIdleBytes ?? 0) <= 80 * MB),
      row(
        "longest stall",
        ["<= 50 ms", milliseconds((own.stallSeconds ?? 0) * 1000), "-"],
        (own.stallSeconds ?? 0) <= 0.05,
      ),
    ];
  });
}

function megabytes(bytes: number): string {
  return `${(bytes / MB).toFixed(1)} MB`;
}
