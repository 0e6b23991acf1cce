/**
 * Positional reads and writes of one file. Reads happen on this thread while
 * the page cache answers at once, and on other threads for a while after one
 * that had to wait for the disk: a turn of another thread costs more than
 * 256 KiB from the page cache (a sender's GB 0.98 CPU seconds with it, 0.87
 * without). Writes end in the page cache; `write` of node:fs makes them on this
 * thread too, and only then resolves in a later turn (Deno 2.9.6, by strace).
 */
import { read, readSync, writeSync } from "node:fs";

/** A read that takes longer has waited for a disk: 256 KiB from memory take 0.05 ms. */
const SLOW_MS = 2;
/** How long other threads read then; doubled with each slow read in a row, up to the maximum. */
const PAUSE_MS = 250;
const PAUSE_MS_MAX = 8_000;

export class PositionalIo {
  #othersUntilMs: number | null = null;
  #pauseMs = PAUSE_MS;

  constructor(private readonly descriptor: number, private readonly nowMs: () => number = () => performance.now()) {}

  /** @returns bytes read, 0 at the end of the file; a promise of them while the disk is slow */
  read(buffer: Uint8Array, position: number): number | Promise<number> {
    const beganMs = this.nowMs();
    if (this.#othersUntilMs !== null && beganMs < this.#othersUntilMs) return this.#readElsewhere(buffer, position);
    const count = readSync(this.descriptor, buffer, 0, buffer.length, position);
    const endedMs = this.nowMs();
    if (endedMs - beganMs < SLOW_MS) {
      this.#othersUntilMs = null;
      this.#pauseMs = PAUSE_MS;
    } else {
      this.#othersUntilMs = endedMs + this.#pauseMs;
      this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MS_MAX);
    }
    return count;
  }

  /** @returns bytes written */
  write(bytes: Uint8Array, position: number): number {
    return writeSync(this.descriptor, bytes, 0, bytes.length, position);
  }

  #readElsewhere(buffer: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      read(
        this.descriptor,
        buffer,
        0,
        buffer.length,
        position,
        (error, count) => error ? reject(error) : resolve(count),
      );
    });
  }
}
