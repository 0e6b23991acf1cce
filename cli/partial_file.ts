/**
 * What a download without a daemon has so far: `.NAME.lacewing-part` beside the
 * output, and a small JSON that says of which content and version it is. The
 * next run of the same command goes on from there if the origin still has that
 * very version.
 *
 * Keeps: one run at a time has it (a file lock, until the file has its final
 * name); only plain files of this user are opened, never through a symbolic
 * link, because the name is known to everybody.
 */
import { redactText } from "../peer/core/log.ts";
import type { ByteRange } from "../peer/core/piece.ts";
import type { SourceVersion } from "../peer/source/source.ts";
import { attempt, lstat } from "./output_file.ts";
import { partialPath } from "./output_path.ts";

/** What the bytes are a part of. */
export interface PartFacts {
  readonly version: SourceVersion;
  /** Bytes of the whole content. */
  readonly contentLength: number;
  /** What of it was asked for. */
  readonly part: ByteRange;
}

/** What an earlier run has left. */
export interface FoundPart extends PartFacts {
  /** Bytes from the beginning of the part. */
  readonly have: number;
}

/** The content that a part must be of, whatever the rest of the command says. */
export interface Wanted {
  /** The task id: equal for URLs that name one content. */
  readonly taskId: string;
  readonly url: string;
}

const FACTS_VERSION = 1;
const FACTS_LENGTH_MAX = 16 * 1024;
const READ_LENGTH = 1024 * 1024;

export class PartialFile implements Disposable {
  #begun = false;
  #closed = false;

  private constructor(
    readonly path: string,
    /** Null: nothing that could be gone on with. */
    readonly found: FoundPart | null,
    private readonly file: Deno.FsFile,
    private readonly wanted: Wanted,
  ) {}

  /**
   * Opens the file beside an output, made if it is not there.
   *
   * @param output absolute path of the output; its folder is there
   * @returns null where another run has it, or something else stands there: then nothing is kept
   */
  static async open(output: string, wanted: Wanted): Promise<PartialFile | null> {
    const path = partialPath(output);
    const file = await openOwn(path);
    if (file === null) return null;
    const { size } = await file.stat();
    const facts = size === 0 ? null : await readFacts(factsPath(path), wanted);
    return new PartialFile(path, facts === null ? null : { ...facts, have: size }, file, wanted);
  }

  /** Whether it holds the bytes of this run. */
  get isBegun(): boolean {
    return this.#begun;
  }

  /** Writes down what the bytes are, and goes on after the first `have`. */
  async begin({ version, contentLength, part }: PartFacts, have: number): Promise<void> {
    this.#begun = true;
    const facts = {
      v: FACTS_VERSION,
      task_id: this.wanted.taskId,
      url: redactText(this.wanted.url),
      etag: version.etag,
      last_modified: version.lastModified,
      content_length: contentLength,
      offset: part.offset,
      length: part.length,
    };
    await attempt(`write ${this.path}`, async () => {
      await this.file.truncate(have);
      await this.file.seek(have, Deno.SeekMode.Start);
      const path = factsPath(this.path);
      await Deno.remove(path).catch(() => {});
      await Deno.writeTextFile(path, `${JSON.stringify(facts)}\n`, { createNew: true, mode: 0o600 });
    });
  }

  /** The first `length` bytes; each view is valid until the next. */
  async *read(length: number): AsyncIterable<Uint8Array> {
    const buffer = new Uint8Array(Math.max(1, Math.min(READ_LENGTH, length)));
    await this.file.seek(0, Deno.SeekMode.Start);
    for (let left = length; left > 0;) {
      const read = await attempt(
        `read ${this.path}`,
        () => this.file.read(buffer.subarray(0, Math.min(left, buffer.length))),
      );
      if (read === null) break;
      left -= read;
      yield buffer.subarray(0, read);
    }
    await this.file.seek(length, Deno.SeekMode.Start);
  }

  writeSync(bytes: Uint8Array): number {
    return this.file.writeSync(bytes);
  }

  /** Leaves nothing: the bytes are of no use, or have their final name. */
  remove(): void {
    if (this.#closed) return;
    for (const path of [factsPath(this.path), this.path]) removeQuietly(path);
    this.#close();
  }

  /** Lets go of the file; what an earlier or this run has written stays. */
  [Symbol.dispose](): void {
    if (this.#closed) return;
    if (this.#begun || this.found !== null) this.#close();
    else this.remove();
  }

  /** After the bytes were renamed to the output: only the facts are left. */
  renamed(): void {
    removeQuietly(factsPath(this.path));
    this.#close();
  }

  #close(): void {
    this.#closed = true;
    this.file.close();
  }
}

/** The file at `path`, locked, if it is a plain one of this user with no other name. */
async function openOwn(path: string): Promise<Deno.FsFile | null> {
  const before = await lstat(path);
  if (before !== null && (!before.isFile || before.nlink !== 1 || before.uid !== Deno.uid())) return null;
  let file: Deno.FsFile;
  try {
    file = await Deno.open(path, { read: true, write: true, createNew: before === null, mode: 0o666 });
  } catch {
    return null;
  }
  try {
    // What was opened must be what was looked at, and still stand there when it is locked.
    const isFree = await file.tryLock(true);
    const [own, now] = [await file.stat(), await lstat(path)];
    const isSame = now !== null && own.ino === now.ino && own.dev === now.dev;
    if (isFree && isSame && now.isFile && (before === null || before.ino === now.ino)) return file;
  } catch {
    // No locks here.
  }
  file.close();
  return null;
}

async function readFacts(path: string, wanted: Wanted): Promise<PartFacts | null> {
  try {
    const state = await Deno.lstat(path);
    if (!state.isFile || state.uid !== Deno.uid() || state.size > FACTS_LENGTH_MAX) return null;
    const facts = JSON.parse(await Deno.readTextFile(path)) as Record<string, unknown>;
    const { etag, last_modified: lastModified, content_length: contentLength, offset, length } = facts;
    const isRight = facts.v === FACTS_VERSION && facts.task_id === wanted.taskId &&
      [contentLength, offset, length].every((count) => Number.isSafeInteger(count) && count as number >= 0);
    const version = {
      ...(typeof etag === "string" ? { etag } : {}),
      ...(typeof lastModified === "string" ? { lastModified } : {}),
    };
    if (!isRight || Object.keys(version).length === 0) return null;
    return {
      version,
      contentLength: contentLength as number,
      part: { offset: offset as number, length: length as number },
    };
  } catch {
    return null;
  }
}

function factsPath(path: string): string {
  return `${path}.json`;
}

function removeQuietly(path: string): void {
  try {
    Deno.removeSync(path);
  } catch {
    // It is not there.
  }
}
