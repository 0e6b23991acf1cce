/**
 * The output of one download on the file system. The bytes grow in a hidden
 * file beside it and get the final name by one rename: a reader sees the old
 * file or the whole new one, never a part. What fails leaves nothing behind,
 * but for a partial file that was given to grow in (`partial_file.ts`).
 *
 * The final name is replaced itself: a symbolic link there is not followed.
 */
import { type ErrorCode, LacewingError } from "../peer/core/errors.ts";
import type { ByteRange } from "../peer/core/piece.ts";
import type { PartialFile } from "./partial_file.ts";
import { splitPath, temporaryName } from "./output_path.ts";

/** Measured on a page-cached file: 1 MiB copies a range as fast as larger buffers do. */
const COPY_BUFFER_LENGTH = 1024 * 1024;

/** Sees every byte that is written, in order. */
export type ByteFollower = (bytes: Uint8Array) => void;

/** A failure of this user's own files: nobody else could do better. */
export class OutputError extends LacewingError {}

export class OutputFile implements Disposable {
  /** The growing file. */
  readonly #temporary: string;
  #mayExist = false;
  /** What the bytes grow in instead, where a later run may go on with them. */
  #partial: PartialFile | null = null;

  private constructor(readonly path: string, temporary: string) {
    this.#temporary = temporary;
  }

  /**
   * Makes missing parents, and sees that a file may stand at `path`.
   *
   * @param path absolute
   * @throws {LacewingError} `file`, `disk_full`
   */
  static async prepare(path: string): Promise<OutputFile> {
    const { folder, base } = splitPath(path);
    const existing = await lstat(path);
    if (existing?.isDirectory) throw new OutputError("file", `Cannot write ${path}: it is a folder; give a file name`);
    const isStream = existing?.isSymlink ? await leadsToStream(path) : existing !== null && !existing.isFile;
    if (isStream) throw new OutputError("file", `Cannot write ${path}: ${NO_STREAM}`);
    await attempt(`make folder ${folder}`, () => Deno.mkdir(folder, { recursive: true }));
    const random = crypto.getRandomValues(new Uint8Array(6)).toHex();
    const output = new OutputFile(path, `${folder === "/" ? "" : folder}/${temporaryName(base, random)}`);
    // What hinders writing is found out now, not after hours of downloading.
    await output.#create().then((file) => file.close());
    return output;
  }

  /**
   * Takes a finished file of the daemon as the content: by hard link, else by a copy in the kernel.
   *
   * @returns false when this user cannot read it: then the bytes must come another way
   */
  async takeFile(source: string): Promise<boolean> {
    this.discard();
    this.#mayExist = true;
    try {
      await Deno.link(source, this.#temporary);
      return true;
    } catch {
      // Another file system, another owner, no links here: a copy.
    }
    if (!await isReadable(source)) return false;
    await this.#attempt(() => Deno.copyFile(source, this.#temporary));
    // The copy has the mode of the daemon's file; the user expects that of a new one.
    await this.#attempt(() => Deno.chmod(this.#temporary, 0o666 & ~Deno.umask()));
    return true;
  }

  /** As `takeFile`, for a part of the file: always a copy. */
  async takeRange(
    source: string,
    { range, follow, signal }: { range: ByteRange; follow?: ByteFollower; signal: AbortSignal },
  ): Promise<boolean> {
    if (!await isReadable(source)) return false;
    using from = await Deno.open(source);
    await from.seek(range.offset, Deno.SeekMode.Start);
    const buffer = new Uint8Array(Math.min(COPY_BUFFER_LENGTH, Math.max(1, range.length)));
    let left = range.length;
    await this.write(async () => {
      signal.throwIfAborted();
      const read = left === 0 ? null : await from.read(buffer.subarray(0, Math.min(left, buffer.length)));
      left -= read ?? 0;
      return read === null ? null : buffer.subarray(0, read);
    }, follow);
    if (left > 0) {
      throw new LacewingError("file", `Cannot copy ${range.length} B out of ${source}: it ended ${left} B early`);
    }
    return true;
  }

  /** Writes the bytes that `next` gives, after those that `partial` has already, until it gives null. */
  async grow(partial: PartialFile, next: () => Promise<Uint8Array | null>, follow?: ByteFollower): Promise<void> {
    this.discard();
    this.#partial = partial;
    for (let bytes = await next(); bytes !== null; bytes = await next()) {
      follow?.(bytes);
      const chunk = bytes;
      await this.#attempt(() => writeWhole(partial, chunk));
    }
  }

  /** Writes the bytes that `next` gives until it gives null. @returns how many */
  async write(next: () => Promise<Uint8Array | null>, follow?: ByteFollower): Promise<number> {
    this.discard();
    using file = await this.#create();
    let written = 0;
    for (let bytes = await next(); bytes !== null; bytes = await next()) {
      follow?.(bytes);
      const chunk = bytes;
      await this.#attempt(() => writeWhole(file, chunk));
      written += bytes.length;
    }
    return written;
  }

  /** Throws away what was written, to begin anew. */
  discard(): void {
    this.#partial = null;
    if (!this.#mayExist) return;
    this.#mayExist = false;
    try {
      Deno.removeSync(this.#temporary);
    } catch {
      // It was never made, or has its final name.
    }
  }

  /**
   * Gives the content its name.
   *
   * @param length bytes that it must have: the last check before a file that is shorter could count as the whole
   */
  async commit(length: number): Promise<void> {
    const partial = this.#partial;
    const grown = partial?.path ?? this.#temporary;
    const { size } = await this.#attempt(() => Deno.lstat(grown));
    if (size !== length) {
      throw new LacewingError("file", `Cannot finish ${this.path}: ${size} B were written, ${length} B are wanted`);
    }
    await this.#attempt(() => Deno.rename(grown, this.path));
    partial?.renamed();
    // POSIX rename does nothing when both names are links of one file: then the hidden name still stands.
    this.discard();
    this.#mayExist = false;
  }

  [Symbol.dispose](): void {
    this.discard();
  }

  async #create(): Promise<Deno.FsFile> {
    const file = await this.#attempt(() => Deno.open(this.#temporary, { write: true, createNew: true, mode: 0o666 }));
    this.#mayExist = true;
    return file;
  }

  #attempt<T>(action: () => Promise<T>): Promise<T> {
    return attempt(`write ${this.path}`, action);
  }
}

/**
 * All of the bytes, on this very thread: the page cache takes 256 KiB in 0.1 ms, and a write on another thread costs two
 * changes of threads on top.
 */
function writeWhole(file: { writeSync(bytes: Uint8Array): number }, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
  return Promise.resolve();
}

/** Runs a file operation; its failure becomes one that says what was tried, with the code for a full disk apart. */
export async function attempt<T>(what: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    throw fileError(what, cause);
  }
}

function fileError(what: string, cause: unknown): unknown {
  if (cause instanceof LacewingError || cause instanceof DOMException || !(cause instanceof Error)) return cause;
  // Deno keeps /dev and /proc apart from what a bundle may write.
  if (cause instanceof Deno.errors.NotCapable) {
    const reason = "devices and files of the kernel are not written; use -O - and the shell's > instead";
    return new OutputError("file", `Cannot ${what}: ${reason}`, { cause });
  }
  const systemCode = (cause as { code?: unknown }).code;
  const [code, reason] = REASONS[String(systemCode)] ?? ["file", cause.message.replace(/ \(os error \d+\).*$/s, "")];
  return new OutputError(code, `Cannot ${what}: ${reason}`, { cause });
}

const NO_STREAM = "it is a device, pipe or socket; use -O - and the shell's > instead";

const REASONS: Record<string, readonly [ErrorCode, string]> = {
  ENOSPC: ["disk_full", "the disk is full"],
  EDQUOT: ["disk_full", "the quota is used up"],
  EACCES: ["file", "permission denied"],
  EPERM: ["file", "not permitted"],
  EROFS: ["file", "the file system is read-only"],
  EISDIR: ["file", "it is a folder"],
  ENOTDIR: ["file", "a part of the path is no folder"],
  EEXIST: ["file", "a file stands in the place of a folder"],
  ENAMETOOLONG: ["file", "the name is too long"],
  ELOOP: ["file", "symbolic links in a circle"],
  ENOENT: ["file", "no such file or folder"],
  EFBIG: ["file", "the file would be larger than the system allows"],
};

/** Whether a symbolic link is another name of a device or a stream: /dev/stdout, say, which must not be replaced by a file. */
async function leadsToStream(link: string): Promise<boolean> {
  try {
    if ((await Deno.readLink(link)).startsWith("/proc/")) return true;
    const { isFile, isDirectory } = await Deno.stat(link);
    return !isFile && !isDirectory;
  } catch {
    // It leads nowhere, or where nobody may look: the link is what gets replaced.
    return false;
  }
}

/** What stands at a path, or null. @throws {LacewingError} `file` */
export async function lstat(path: string): Promise<Deno.FileInfo | null> {
  try {
    return await Deno.lstat(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return null;
    throw fileError(`write ${path}`, cause);
  }
}

async function isReadable(path: string): Promise<boolean> {
  try {
    (await Deno.open(path)).close();
    return true;
  } catch {
    return false;
  }
}
