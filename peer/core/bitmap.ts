/**
 * A set of piece numbers as bits, with its text form for the wire (base64,
 * lowest piece in the lowest bit of the first byte).
 */
import { Buffer } from "node:buffer";

export class Bitmap {
  /** Whole words, so that sets are compared 32 pieces at a time. All that Deno runs on has the lowest byte first. */
  readonly #words: Uint32Array<ArrayBuffer>;
  #count = 0;

  constructor(readonly size: number) {
    this.#words = new Uint32Array(Math.ceil(size / 32));
  }

  /** How many pieces are in the set. */
  get count(): number {
    return this.#count;
  }

  get isFull(): boolean {
    return this.#count === this.size;
  }

  has(number: number): boolean {
    if (!Number.isInteger(number) || number < 0 || number >= this.size) return false;
    return (this.#words[number >> 5]! & (1 << (number & 31))) !== 0;
  }

  /** @returns whether the piece was new; a number outside the set is ignored. */
  add(number: number): boolean {
    if (!Number.isInteger(number) || number < 0 || number >= this.size || this.has(number)) return false;
    this.#words[number >> 5]! |= 1 << (number & 31);
    this.#count += 1;
    return true;
  }

  /** @returns whether the piece was there. */
  delete(number: number): boolean {
    if (!this.has(number)) return false;
    this.#words[number >> 5]! &= ~(1 << (number & 31));
    this.#count -= 1;
    return true;
  }

  /** Adds every piece of the set. */
  fill(): void {
    for (let number = 0; number < this.size; number++) this.add(number);
  }

  *[Symbol.iterator](): Generator<number> {
    for (let number = this.next(0); number < this.size; number = this.next(number + 1)) yield number;
  }

  /** First number at or after `from` (from 0) that is in the set, or `size`. */
  next(from: number): number {
    return this.nextShared(this, from);
  }

  /** First number at or after `from` (from 0) that is in this set and in `other`, or `size`. */
  nextShared(other: Bitmap, from: number): number {
    const [words, others] = [this.#words, other.#words];
    const count = Math.min(words.length, others.length);
    let at = from >> 5;
    if (at >= count) return this.size;
    let shared = words[at]! & others[at]! & (-1 << (from & 31));
    while (shared === 0) {
      at += 1;
      if (at >= count) return this.size;
      shared = words[at]! & others[at]!;
    }
    return (at << 5) + 31 - Math.clz32(shared & -shared);
  }

  /** First number at or after `from` that is not in the set, or `size`. */
  firstMissing(from = 0): number {
    let number = from;
    while (number < this.size && this.has(number)) number += 1;
    return number;
  }

  toBase64(): string {
    return Buffer.from(this.#words.buffer, 0, Math.ceil(this.size / 8)).toString("base64");
  }

  /** Reads the text form; bits beyond `size` are ignored. */
  static fromBase64(text: string, size: number): Bitmap {
    const bitmap = new Bitmap(size);
    const bits = Buffer.from(text, "base64");
    for (let number = 0; number < size; number++) {
      if (((bits[number >> 3] ?? 0) & (1 << (number & 7))) !== 0) bitmap.add(number);
    }
    return bitmap;
  }
}
