/**
 * What came of a tree: counts, bytes by where they came from, failures by
 * name, and how far the files under way are. Decides the summary line and the
 * worst failure; says nothing itself.
 */
import { type ErrorCode, ERRORS, LacewingError } from "../../peer/core/errors.ts";
import { formatBytes, formatDuration } from "../../peer/core/units.ts";
import type { Progress } from "../progress.ts";
import { percent, type Summary } from "../summary.ts";

/** Failures that are kept by name; more are counted. */
const NAMED_MAX = 1000;

/** A file of the tree, the same object from beginning to end. */
export interface TreeFile {
  /** Bytes as the listing says, or null where it does not. */
  readonly size: number | null;
}

export class TreeReport {
  readonly #named: { what: string; message: string }[] = [];
  /** Found, and not under way yet. */
  readonly #waiting = new Set<TreeFile>();
  readonly #active = new Map<TreeFile, Progress>();
  #waitingBytes = 0;
  /** Of those that wait, how many tell no size. */
  #waitingSizeless = 0;
  #failedCount = 0;
  #worst: ErrorCode | null = null;
  #found = 0;
  #done = 0;
  #unchanged = 0;
  #bytes = 0;
  #fromPeers = 0;
  #fromLocal = 0;
  #fromSource = 0;

  /** The walk has found a file. */
  found(file: TreeFile): void {
    this.#found += 1;
    this.#waiting.add(file);
    if (file.size === null) this.#waitingSizeless += 1;
    else this.#waitingBytes += file.size;
  }

  unchanged(file: TreeFile): void {
    this.#leave(file);
    this.#unchanged += 1;
  }

  progress(file: TreeFile, progress: Progress): void {
    this.#leave(file);
    this.#active.set(file, progress);
  }

  done(file: TreeFile, stats: Summary["stats"]): void {
    this.#leave(file);
    this.#done += 1;
    this.#bytes += stats.length;
    this.#fromPeers += stats.from_peers;
    this.#fromLocal += stats.from_local;
    this.#fromSource += stats.from_source;
  }

  failed(what: string, error: unknown, file?: TreeFile): void {
    if (file !== undefined) this.#leave(file);
    this.#failedCount += 1;
    const code = error instanceof LacewingError ? error.code : "unknown";
    if (this.#worst === null || rank(code) > rank(this.#worst)) this.#worst = code;
    if (this.#named.length >= NAMED_MAX) return;
    const message = error instanceof Error ? error.message : String(error);
    this.#named.push({ what, message: code === "unknown" ? `unexpected: ${message}` : message });
  }

  /**
   * How far all is. Bytes of files that are left as they are, or failed, count nowhere.
   *
   * @param isComplete whether the walk has found everything
   */
  total(isComplete: boolean): Progress {
    let [done, fromPeers, whole] = [this.#bytes, this.#fromPeers, this.#bytes + this.#waitingBytes];
    let isKnown = isComplete && this.#waitingSizeless === 0;
    for (const [file, progress] of this.#active) {
      const size = progress.total ?? file.size;
      done += progress.done;
      fromPeers += progress.fromPeers;
      whole += Math.max(size ?? 0, progress.done);
      isKnown &&= size !== null;
    }
    const files = { done: this.#done + this.#unchanged + this.#failedCount, total: this.#found, isComplete };
    return { total: isKnown ? whole : null, atLeast: whole, done, fromPeers, files };
  }

  #leave(file: TreeFile): void {
    this.#active.delete(file);
    if (!this.#waiting.delete(file)) return;
    if (file.size === null) this.#waitingSizeless -= 1;
    else this.#waitingBytes -= file.size;
  }

  /** A line for each failure. */
  failures(): string[] {
    const lines = this.#named.map(({ what, message }) => `${what}: ${message}`);
    const more = this.#failedCount - this.#named.length;
    return more > 0 ? [...lines, `and ${more} more`] : lines;
  }

  /** `12 files, 64.0 MiB in 1.9 s (33.7 MiB/s), 91% from peers, 5.8 MiB from the origin, 3 unchanged, 2 failed`. */
  summary(elapsedMs: number): string {
    const rate = formatBytes(Math.round(this.#bytes / Math.max(0.001, elapsedMs / 1000)));
    const parts = [
      `${count(this.#done, "file")}, ${formatBytes(this.#bytes)} in ${formatDuration(elapsedMs)} (${rate}/s)`,
    ];
    if (this.#fromPeers > 0) parts.push(`${percent(this.#fromPeers, this.#bytes)} from peers`);
    if (this.#fromLocal > 0) parts.push(`${formatBytes(this.#fromLocal)} from this host`);
    if (this.#fromSource > 0) parts.push(`${formatBytes(this.#fromSource)} from the origin`);
    if (this.#unchanged > 0) parts.push(`${this.#unchanged} unchanged`);
    if (this.#failedCount > 0) parts.push(`${this.#failedCount} failed`);
    return parts.join(", ");
  }

  /** The failure of the whole: the worst of all; null when there was none. */
  worst(): LacewingError | null {
    if (this.#worst === null) return null;
    return new LacewingError(this.#worst, `Cannot take all: ${count(this.#failedCount, "failure")}, named above`);
  }
}

/** The highest exit code is the worst; that of a defect is 1 and above all. */
function rank(code: ErrorCode): number {
  const { exitCode } = ERRORS[code];
  return exitCode === 1 ? 1000 : exitCode;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
