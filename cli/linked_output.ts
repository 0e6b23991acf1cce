/**
 * The output of `--original-offset`: another name for the daemon's own sparse
 * file, made with this user's rights. Every range that any client asks for then
 * shows in it, in whatever order they come.
 *
 * Keeps: what stands at the path and is not that very file is never touched, a
 * symbolic link least of all.
 */
import { type Digest, formatDigest } from "../peer/core/digest_text.ts";
import { LacewingError } from "../peer/core/errors.ts";
import type { ByteRange } from "../peer/core/piece.ts";
import { attempt, lstat, OutputError } from "./output_file.ts";
import { splitPath, temporaryName } from "./output_path.ts";

/** Measured on a page-cached file: 1 MiB reads as fast as larger buffers do. */
const READ_LENGTH = 1024 * 1024;

export interface LinkedOutputOptions {
  /** Of the ranged bytes; null: none was given. */
  readonly digest: Digest | null;
  readonly signal: AbortSignal;
}

export class LinkedOutput {
  readonly toStdout = false;

  private constructor(readonly path: string, private readonly options: LinkedOutputOptions) {}

  /**
   * Makes missing parents, and sees that a link may be made at `path`.
   *
   * @param path absolute
   * @throws {LacewingError} `file`, `disk_full`
   */
  static async prepare(path: string, options: LinkedOutputOptions): Promise<LinkedOutput> {
    const { folder, base } = splitPath(path);
    const existing = await lstat(path);
    if (existing !== null && !existing.isFile) {
      const kind = existing.isDirectory ? "a folder" : existing.isSymlink ? "a symbolic link" : "no file";
      throw new OutputError("file", `Cannot put ranges into ${path}: it is ${kind}; give another --output`);
    }
    if (existing === null) {
      await attempt(`make folder ${folder}`, () => Deno.mkdir(folder, { recursive: true }));
      // What hinders writing is found out now, not after hours of downloading.
      const probe = `${folder === "/" ? "" : folder}/${temporaryName(base, crypto.randomUUID().slice(0, 12))}`;
      await attempt(`write ${path}`, async () => {
        (await Deno.open(probe, { write: true, createNew: true })).close();
        await Deno.remove(probe);
      });
    }
    return new LinkedOutput(path, options);
  }

  /**
   * Refuses a daemon whose files cannot be linked here, before it downloads.
   *
   * @param dataDir the daemon's data folder; null where it does not say
   * @throws {LacewingError} `file`
   */
  async checkDaemon(dataDir: string | null): Promise<void> {
    if (dataDir === null) return;
    const { folder } = splitPath(this.path);
    const [own, daemons] = await Promise.all([Deno.stat(folder), Deno.stat(dataDir).catch(() => null)]);
    // A folder that this user may not look at is judged when the link is made.
    if (daemons !== null && own.dev !== daemons.dev) throw this.#otherFileSystem(dataDir);
  }

  /** Checks the ranged bytes where they have a digest, and gives the daemon's file its second name. */
  async takeFile(source: string, part: ByteRange | null): Promise<boolean> {
    await this.#checkDigest(source, part);
    try {
      await Deno.link(source, this.path);
    } catch (cause) {
      if (!(cause instanceof Deno.errors.AlreadyExists)) throw await this.#cannotLink(source, cause);
      if (!await this.#isOne(source)) {
        throw new OutputError(
          "file",
          `Cannot put the range into ${this.path}: another file stands there, not the daemon's ${source} ` +
            "(perhaps of an earlier version of the content); remove it, or give another --output",
          { cause },
        );
      }
    }
    return true;
  }

  /** Never called: there is no other way than the link. */
  writeAll(): Promise<number> {
    return Promise.reject(new TypeError("Cannot stream into a linked output"));
  }

  finish(): Promise<void> {
    return Promise.resolve();
  }

  async #isOne(source: string): Promise<boolean> {
    const [own, daemons] = await Promise.all([lstat(this.path), lstat(source)]);
    return own !== null && daemons !== null && own.ino === daemons.ino && own.dev === daemons.dev;
  }

  async #cannotLink(source: string, cause: unknown): Promise<unknown> {
    if (codeOf(cause) === "EXDEV") return this.#otherFileSystem(source, cause);
    return await attempt(`link ${this.path} to the daemon's ${source}`, () => Promise.reject(cause)).catch((e) => e);
  }

  #otherFileSystem(source: string, cause?: unknown): OutputError {
    return new OutputError(
      "file",
      `Cannot put the range into ${this.path}: it is on another file system than the daemon's ${source}; ` +
        "give an --output there, or leave out --original-offset",
      { cause },
    );
  }

  async #checkDigest(source: string, part: ByteRange | null): Promise<void> {
    const { digest, signal } = this.options;
    if (digest === null || part === null) return;
    const { startDigest } = await import("../peer/core/digest.ts");
    const hash = startDigest(digest.algorithm);
    await attempt(`read the daemon's ${source}`, async () => {
      using file = await Deno.open(source);
      await file.seek(part.offset, Deno.SeekMode.Start);
      const buffer = new Uint8Array(Math.min(READ_LENGTH, part.length));
      for (let left = part.length; left > 0;) {
        signal.throwIfAborted();
        const read = await file.read(buffer.subarray(0, Math.min(left, buffer.length)));
        if (read === null) break;
        hash.update(buffer.subarray(0, read));
        left -= read;
      }
    });
    const hex = hash.digest("hex");
    if (hex === digest.hex) return;
    throw new LacewingError(
      "digest_mismatch",
      `Cannot accept the range: its digest is ${digest.algorithm}:${hex}, expected ${formatDigest(digest)}`,
    );
  }
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null)?.code;
}
