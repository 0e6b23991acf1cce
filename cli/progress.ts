/**
 * Progress on stderr: a bar that redraws one line of a terminal, or whole
 * lines now and then where there is none. What is drawn is decided by pure
 * functions; the display owns the timer and the line.
 */
import type { Clock } from "../peer/core/clock.ts";
import { formatBytes, formatDuration } from "../peer/core/units.ts";
import { percent } from "./summary.ts";
import { safeLine, type Terminal } from "./terminal.ts";

/** How far a download is, in bytes of the part asked for. */
export interface Progress {
  /** Null while the length is not known. */
  readonly total: number | null;
  /** Bytes that it is at least, as far as they can be told; for while `total` is null. */
  readonly atLeast?: number;
  readonly done: number;
  readonly fromPeers: number;
  /** Of a whole folder; `isComplete` when no more files will be found. */
  readonly files?: { readonly done: number; readonly total: number; readonly isComplete: boolean };
}

/** A bar is redrawn at most ten times a second: more is flicker. */
const REDRAW_MS = 100;
/** Lines without a terminal, INTERFACE section 2. */
const LINE_EVERY_MS = 10_000;
/** The rate is that of the last seconds, so that a stall shows. */
const RATE_WINDOW_MS = 5_000;
const BAR_WIDTH_MAX = 30;
const NAME_WIDTH_MAX = 24;
const NOTHING: Progress = { total: null, done: 0, fromPeers: 0 };
const CLEAR_LINE = "\r\x1b[2K";

/** The line of a progress: what does not fit `columns` is left out, the name first cut, then the bar. */
export function renderProgress(
  progress: Progress & { name: string; bytesPerSecond: number },
  columns: number,
): string {
  const { total, done, fromPeers, bytesPerSecond, files } = progress;
  const share = done === 0 ? 0 : fromPeers / done;
  const known = total !== null;
  const etaMs = known && bytesPerSecond > 0 ? ((total - done) / bytesPerSecond) * 1000 : null;
  const facts = [
    known ? percent(done, total).padStart(4) : "",
    files === undefined ? "" : `${files.done}/${files.total}${files.isComplete ? "" : "+"} files`,
    bytesText(progress),
    `${formatBytes(Math.round(bytesPerSecond))}/s`,
    known && done < total ? `ETA ${etaMs === null ? "-" : formatDuration(etaMs)}` : "",
    share > 0 ? `${percent(fromPeers, done)} from peers` : "",
  ].filter((fact) => fact !== "");
  // One column stays free: a full line would wrap in some terminals.
  const room = columns - 1;
  while (facts.length > 1 && facts.join("  ").length > room) facts.pop();
  const text = facts.join("  ");
  const nameRoom = Math.min(NAME_WIDTH_MAX, room - text.length - 2);
  const name = nameRoom < 4 ? "" : fit(safeLine(progress.name), nameRoom);
  const head = name === "" ? "" : `${name}  `;
  const barRoom = Math.min(BAR_WIDTH_MAX, room - width(head) - text.length - 4);
  return `${head}${known && barRoom >= 6 ? `${bar(done / Math.max(1, total), barRoom)}  ` : ""}${text}`;
}

/** `1.0 MiB/2.0 MiB`, `1.0 MiB/2.0+ MiB` while the total may grow, `1.0 MiB` where nothing is known of it. */
function bytesText({ total, atLeast = 0, done }: Progress): string {
  if (total !== null) return `${formatBytes(done)}/${formatBytes(total)}`;
  return atLeast > done ? `${formatBytes(done)}/${formatBytes(atLeast).replace(" ", "+ ")}` : formatBytes(done);
}

/** Rate over the last seconds, from what was seen of a growing count. */
export class RateMeter {
  readonly #seen: { atMs: number; done: number }[] = [];

  /** @returns bytes per second */
  see(done: number, atMs: number): number {
    this.#seen.push({ atMs, done });
    while (this.#seen.length > 2 && atMs - this.#seen[1]!.atMs >= RATE_WINDOW_MS) this.#seen.shift();
    const first = this.#seen[0]!;
    return atMs === first.atMs ? 0 : ((done - first.done) / (atMs - first.atMs)) * 1000;
  }
}

/** Shows one download until it is disposed of; the bar's line is then gone. */
export class ProgressDisplay implements Disposable {
  #meter = new RateMeter();
  readonly #onTerminal: boolean;
  readonly #stop = new AbortController();
  #latest = NOTHING;
  /** Columns of the line that stands on the terminal. */
  #drawnWidth = 0;

  constructor(private readonly terminal: Terminal, private readonly options: { name: string; clock: Clock }) {
    this.#onTerminal = terminal.columns() !== null && !terminal.plain;
    this.#run();
  }

  update(progress: Progress): void {
    // What was there before is not what came in the first moment.
    if (this.#latest === NOTHING) {
      this.#meter = new RateMeter();
      this.#meter.see(progress.done, this.options.clock.nowMs());
    }
    this.#latest = progress;
  }

  /** Says a line without mixing it into the bar. */
  say(line: string): void {
    this.terminal.write(`${this.#wipe()}${line}\n`);
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
    this.terminal.write(this.#wipe());
  }

  /** What takes the drawn line away. A terminal that became narrower has broken it into several. */
  #wipe(): string {
    if (!this.#onTerminal) return "";
    const brokenCount = Math.floor(Math.max(0, this.#drawnWidth - 1) / Math.max(1, this.terminal.columns() ?? 80));
    this.#drawnWidth = 0;
    return brokenCount === 0 ? CLEAR_LINE : `\x1b[${brokenCount}A\r\x1b[J`;
  }

  async #run(): Promise<void> {
    const { clock } = this.options;
    try {
      while (true) {
        await clock.sleep(this.#onTerminal ? REDRAW_MS : LINE_EVERY_MS, this.#stop.signal);
        this.#draw(clock.nowMs());
      }
    } catch {
      // Disposed of: the only way out of the sleep.
    }
  }

  #draw(nowMs: number): void {
    const bytesPerSecond = this.#meter.see(this.#latest.done, nowMs);
    const columns = this.#onTerminal ? this.terminal.columns() ?? 80 : 120;
    const line = renderProgress({ ...this.#latest, name: this.options.name, bytesPerSecond }, columns);
    this.terminal.write(this.#onTerminal ? `${this.#wipe()}${line}` : `${line}\n`);
    this.#drawnWidth = this.#onTerminal ? width(line) : 0;
  }
}

function bar(share: number, room: number): string {
  const filled = Math.min(room, Math.floor(share * room));
  return `[${"=".repeat(filled)}${" ".repeat(room - filled)}]`;
}

/** Text cut or filled to a number of columns. */
function fit(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  let cut = "";
  for (const character of text) {
    if (width(cut + character) > columns - 1) break;
    cut += character;
  }
  return `${cut}…`;
}

/** Columns of a text: East Asian wide characters and emoji take two. */
function width(text: string): number {
  let columns = 0;
  for (const character of text) {
    if (/\p{Mark}/u.test(character)) continue;
    columns +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u
          .test(character)
        ? 2
        : 1;
  }
  return columns;
}
