/**
 * Positional reads and writes of one file. They happen on this thread while
 * the page cache takes and answers at once, and on other threads for a while
 * after some that had to wait for the disk: a turn of another thread costs
 * more than 256 KiB from the page cache or into it (CPU seconds a GB with it and
 * without: sender 0.98 and 0.87, receiver 1.65 and 1.43), but a kernel with too many
 * dirty pages lets a write sleep for up to 200 ms, the event loop with it.
 *
 * On other threads each write has a handle of its own: seeking on a shared one
 * corrupts. (`write` of node:fs takes a position, but writes on this thread and only
 * then resolves in a later turn; Deno 2.9.6, by strace.)
 */
import { fstatSync, read, readSync, writeSync } from "node:fs";
import type { ContentFile } from "./content.ts";
import { SlowCalls } from "./slow_calls.ts";

/**
 * A read that takes longer has waited for a disk, or for a core: 256 KiB from memory take 0.05 ms. Where all cores are busy
 * one slow read was enough to have a third of a sender's reads elsewhere, though none waited for a disk.
 */
const SLOW_READS = { slowMs: 2, onceMs: 20 };
/** The kernel's shortest pauses of a writer are 10 ms. */
const SLOW_WRITES = { slowMs: 10, onceMs: 10 };

export class PositionalIo {
  readonly #reads = new SlowCalls(SLOW_READS);
  readonly #writes = new SlowCalls(SLOW_WRITES);
  /** Handles for writes on other threads that no write has now. */
  readonly #idle: Deno.FsFile[] = [];

  constructor(private readonly file: ContentFile, private readonly nowMs: () => number = () => performance.now()) {}

  /** @returns bytes read, 0 at the end of the file; a promise of them while the disk is slow */
  read(buffer: Uint8Array, position: number): number | Promise<number> {
    const beganMs = this.nowMs();
    if (this.#reads.isPaused(beganMs)) return this.#readElsewhere(buffer, position);
    const count = readSync(this.file.descriptor, buffer, 0, buffer.length, position);
    const endedMs = this.nowMs();
    this.#reads.took(endedMs - beganMs, endedMs);
    return count;
  }

  /** @returns bytes written; a promise of them while the disk is slow */
  write(bytes: Uint8Array, position: number): number | Promise<number> {
    const beganMs = this.nowMs();
    if (this.#writes.isPaused(beganMs)) return this.#writeElsewhere(bytes, position);
    const count = this.#writeHere(bytes, position);
    const endedMs = this.nowMs();
    this.#writes.took(endedMs - beganMs, endedMs);
    return count;
  }

  /** To be called when no write is under way. */
  close(): void {
    for (const handle of this.#idle.splice(0)) handle.close();
  }

  #writeHere(bytes: Uint8Array, position: number): number {
    return writeSync(this.file.descriptor, bytes, 0, bytes.length, position);
  }

  #readElsewhere(buffer: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      read(
        this.file.descriptor,
        buffer,
        0,
        buffer.length,
        position,
        (error, count) => error ? reject(error) : resolve(count),
      );
    });
  }

  async #writeElsewhere(bytes: Uint8Array, position: number): Promise<number> {
    const handle = this.#idle.pop() ?? this.#open();
    if (handle === null) return this.#writeHere(bytes, position);
    try {
      handle.seekSync(position, Deno.SeekMode.Start);
      return await handle.write(bytes);
    } finally {
      this.#idle.push(handle);
    }
  }

  /** Another handle on the same file, or null when the file has no name any more, or the name another file. */
  #open(): Deno.FsFile | null {
    let handle: Deno.FsFile;
    try {
      handle = Deno.openSync(this.file.path, { write: true });
    } catch {
      return null;
    }
    const [own, found] = [fstatSync(this.file.descriptor), handle.statSync()];
    if (own.ino === found.ino && own.dev === found.dev) return handle;
    handle.close();
    return null;
  }
}
