/**
 * Draws scenarios as one SVG: beside each other when each host was done
 * (hosts in the order of finishing), and how much each host held over time. Pure.
 */
import { finisherBound } from "./bound.ts";
import type { ScenarioResult, Trial } from "./swarm_bench.ts";

const PANEL = { width: 460, height: 260, left: 56, right: 12, top: 34, bottom: 40 } as const;
const COLOURS: Record<string, string> = { lacewing: "#1b6ca8", bittorrent: "#c8553d", curl: "#8a8a8a" };
const TICKS = 5;
/** Points of one line: more than the eye can tell apart make the file big. */
const POINTS_MAX = 120;

type Point = readonly [number, number];

interface Line {
  readonly points: readonly Point[];
  readonly colour: string;
  readonly width: number;
  readonly dashed?: boolean;
}

export function plot(results: readonly ScenarioResult[]): string {
  const width = 2 * PANEL.width;
  const height = results.length * PANEL.height + 24;
  const rows = results.map((result, index) =>
    `<g transform="translate(0 ${index * PANEL.height})">${finishPanel(result)}` +
    `<g transform="translate(${PANEL.width} 0)">${progressPanel(result)}</g></g>`
  );
  const names = [...new Set(results.flatMap(({ trials }) => trials.map(({ contestant }) => contestant)))];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">
<rect width="${width}" height="${height}" fill="#fff"/>
${rows.join("\n")}
<g transform="translate(${PANEL.left} ${height - 8})">${legend([...names, "bound"])}</g>
</svg>
`;
}

function finishPanel(result: ScenarioResult): string {
  const { scenario: { id, title }, size, rates, peers } = result;
  const demand = { size, sourceUp: rates.sourceUp, hosts: Object.values(rates.hosts) };
  const bound: Point[] = demand.hosts.map((_, index) => [index + 1, finisherBound(index + 1, demand)]);
  const lines = firstTrials(result).map((trial): Line => ({
    points: trial.finishes.map(({ seconds }) => seconds).sort((a, b) => a - b).map((it, index) => [index + 1, it]),
    colour: COLOURS[trial.contestant] ?? "#000",
    width: 2,
  }));
  return panel(`${id.toUpperCase()}: ${title}`, { x: `host, in order of finishing (of ${peers})`, y: "seconds" }, [
    ...lines,
    { points: bound, colour: "#222", width: 1, dashed: true },
  ]);
}

function progressPanel(result: ScenarioResult): string {
  const lines = firstTrials(result).flatMap((trial) =>
    trial.finishes.map(({ progress }): Line => ({
      points: thin(progress).map(([seconds, bytes]) => [seconds, bytes / result.size * 100]),
      colour: COLOURS[trial.contestant] ?? "#000",
      width: 0.6,
    }))
  );
  return panel("what each host holds", { x: "seconds", y: "% of the bytes" }, lines);
}

/** One of each contestant: the lines of several rounds would hide each other. */
function firstTrials({ trials }: ScenarioResult): Trial[] {
  return [...Map.groupBy(trials, ({ contestant }) => contestant).values()].map(([first]) => first!);
}

export function thin<T>(points: readonly T[], max = POINTS_MAX): T[] {
  if (points.length <= max) return [...points];
  return Array.from({ length: max }, (_, index) => points[Math.round(index * (points.length - 1) / (max - 1))]!);
}

function panel(title: string, axes: { x: string; y: string }, lines: readonly Line[]): string {
  const points = lines.flatMap((line) => line.points);
  const xMax = Math.max(1e-9, ...points.map(([x]) => x));
  const yMax = Math.max(1e-9, ...points.map(([, y]) => y));
  const right = PANEL.width - PANEL.right;
  const bottom = PANEL.height - PANEL.bottom;
  const toX = (x: number) => round(PANEL.left + x / xMax * (right - PANEL.left));
  const toY = (y: number) => round(bottom - y / yMax * (bottom - PANEL.top));
  const ticks = Array.from({ length: TICKS + 1 }, (_, index) => index / TICKS).map((share) =>
    `<text x="${toX(share * xMax)}" y="${bottom + 14}" text-anchor="middle">${label(share * xMax)}</text>` +
    `<text x="${PANEL.left - 6}" y="${toY(share * yMax) + 4}" text-anchor="end">${label(share * yMax)}</text>` +
    `<path d="M${PANEL.left} ${toY(share * yMax)}H${right}" stroke="#eee"/>`
  );
  const drawn = lines.filter((line) => line.points.length > 0).map(({ points: at, colour, width, dashed }) =>
    `<polyline fill="none" stroke="${colour}" stroke-width="${width}"${dashed ? ' stroke-dasharray="4 3"' : ""} ` +
    `points="${at.map(([x, y]) => `${toX(x)},${toY(y)}`).join(" ")}"/>`
  );
  return `<text x="${PANEL.left}" y="18" font-weight="bold">${escape(title)}</text>${ticks.join("")}${drawn.join("")}` +
    `<path d="M${PANEL.left} ${PANEL.top}V${bottom}H${right}" fill="none" stroke="#444"/>` +
    `<text x="${(PANEL.left + right) / 2}" y="${bottom + 30}" text-anchor="middle">${escape(axes.x)}</text>` +
    `<text transform="translate(14 ${(PANEL.top + bottom) / 2}) rotate(-90)" text-anchor="middle">${
      escape(axes.y)
    }</text>`;
}

function legend(names: readonly string[]): string {
  return names.map((name, index) =>
    `<path d="M${index * 110} -4h18" stroke="${COLOURS[name] ?? "#222"}" stroke-width="2"/>` +
    `<text x="${index * 110 + 24}" y="0">${escape(name)}</text>`
  ).join("");
}

function label(value: number): string {
  return value >= 20 ? String(Math.round(value)) : String(Number(value.toFixed(1)));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
