/**
 * Where the bytes of a download go: a file with its name at the end, or stdout
 * as they come. Checks the digest of exactly what is delivered.
 */
import { type Digest, formatDigest } from "../peer/core/digest_text.ts";
import { LacewingError } from "../peer/core/errors.ts";
import type { Hash } from "node:crypto";
import type { ByteRange } from "../peer/core/piece.ts";
import { writeAll } from "../peer/core/wire/json_lines.ts";
import type { OutputFile } from "./output_file.ts";
import type { PartialFile } from "./partial_file.ts";

export interface DeliveryOptions {
  /** Null: stdout. */
  readonly output: OutputFile | null;
  /** Of the whole output; null: none was given. */
  readonly digest: Digest | null;
  readonly signal: AbortSignal;
}

export interface WriteOptions {
  readonly onWritten?: (done: number) => void;
  readonly partial?: PartialFile | null;
  readonly have?: number;
}

export class Delivery {
  #hash: Hash | null = null;
  #written = 0;

  constructor(private readonly options: DeliveryOptions) {}

  /** Bytes that have left for stdout and cannot be taken back, or lie in the growing file. */
  get written(): number {
    return this.#written;
  }

  /** Absolute path of the output; null is stdout. */
  get path(): string | null {
    return this.options.output?.path ?? null;
  }

  get toStdout(): boolean {
    return this.options.output === null;
  }

  /** Begins anew. Only for a file: what stdout has is gone. */
  restart(): void {
    this.options.output?.discard();
    this.#hash = null;
    this.#written = 0;
  }

  /**
   * Writes all that `next` gives until null, and checks the digest.
   *
   * @param options.onWritten hears how many bytes are written so far
   * @param options.partial holds the first `options.have` bytes already, and gets the others
   * @returns bytes in all
   */
  async writeAll(
    next: () => Promise<Uint8Array | null>,
    { onWritten, partial = null, have = 0 }: WriteOptions = {},
  ): Promise<number> {
    const { output, signal } = this.options;
    await this.#startDigest();
    if (partial !== null) await this.#followAgain(partial, have);
    const follow = (bytes: Uint8Array) => {
      this.#follow(bytes);
      onWritten?.(this.#written);
    };
    const pull = () => {
      signal.throwIfAborted();
      return next();
    };
    if (output !== null && partial !== null) {
      await output.grow(partial, pull, follow);
    } else if (output !== null) {
      await output.write(pull, follow);
    } else {
      for (let bytes = await pull(); bytes !== null; bytes = await pull()) {
        await writeAll(Deno.stdout, bytes);
        follow(bytes);
      }
    }
    this.#checkDigest();
    return this.#written;
  }

  /**
   * Takes the daemon's file of the whole content, or the part that was asked for.
   *
   * @returns false when this user cannot read it
   */
  async takeFile(path: string, part: ByteRange | null): Promise<boolean> {
    const { output, signal } = this.options;
    if (output === null) throw new TypeError("stdout takes no file");
    // The daemon has checked the digest of a whole content.
    if (part === null) return await output.takeFile(path);
    await this.#startDigest();
    const follow = (bytes: Uint8Array) => this.#follow(bytes);
    if (!await output.takeRange(path, { range: part, follow, signal })) return false;
    this.#checkDigest();
    return true;
  }

  /** Gives the output its name. @param length bytes that it must have */
  async finish(length: number): Promise<void> {
    this.options.signal.throwIfAborted();
    await this.options.output?.commit(length);
  }

  /** What an earlier run has written counts as if it came now. */
  async #followAgain(partial: PartialFile, have: number): Promise<void> {
    if (this.#hash !== null) { for await (const bytes of partial.read(have)) this.#hash.update(bytes); }
    this.#written = have;
  }

  /** Hashing is loaded only where there is something to check. */
  async #startDigest(): Promise<void> {
    const { digest } = this.options;
    if (digest === null) return;
    const { startDigest } = await import("../peer/core/digest.ts");
    this.#hash = startDigest(digest.algorithm);
  }

  #follow(bytes: Uint8Array): void {
    this.#hash?.update(bytes);
    this.#written += bytes.length;
  }

  #checkDigest(): void {
    const { digest } = this.options;
    if (digest === null || this.#hash === null) return;
    const hex = this.#hash.digest("hex");
    if (hex === digest.hex) return;
    throw new LacewingError(
      "digest_mismatch",
      `Cannot accept the content: its digest is ${digest.algorithm}:${hex}, expected ${formatDigest(digest)}`,
    );
  }
}
