/**
 * Memory that a measured download may take at once. A virtual machine gets
 * pages that it has not used lately from its host, one by one, and gives
 * free ones back within seconds: there 2 GiB written by dd cost 0.5 CPU seconds
 * or 7, whichever the pages were, and what ran first paid for what ran next. So
 * a file of the same size is written before, and made shorter as the download goes on.
 */

const CHUNK = new Uint8Array(4 * 1024 * 1024);
/** Free pages ahead of the download: fewer than 2 s of it, after which a kernel gives them back. */
const AHEAD = 256 * 1024 * 1024;

export class LentMemory implements Disposable {
  #length: number;

  private constructor(
    private readonly file: Deno.FsFile,
    private readonly it: { path: string; size: number; ahead: number },
  ) {
    this.#length = it.size;
  }

  /** Resolves when the file is written, and the disk has it. @param ahead bytes that are free before they are needed */
  static async of(path: string, { size, ahead = AHEAD }: { size: number; ahead?: number }): Promise<LentMemory> {
    const file = await Deno.create(path);
    for (let left = size; left > 0;) left -= await file.write(CHUNK.subarray(0, Math.min(CHUNK.length, left)));
    await file.sync();
    return new LentMemory(file, { path, size, ahead });
  }

  /** The download has so many bytes now. */
  release(done: number): void {
    const length = Math.max(0, this.it.size - done - this.it.ahead);
    if (length >= this.#length) return;
    this.#length = length;
    this.file.truncateSync(length);
  }

  [Symbol.dispose](): void {
    this.file.close();
    Deno.removeSync(this.it.path);
  }
}
