/**
 * A set of piece numbers as bits, with its text form for the wire (base64,
 * lowest piece in the lowest bit of the first byte).
 */
import { Buffer } from "node:buffer";

export class Bitmap {
  readonly #bits: Uint8Array;
  #count = 0;

  constructor(readonly size: number) {
    this.#bits = new Uint8Array(Math.ceil(size / 8));
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
    return (this.#bits[number >> 3]! & (1 << (number & 7))) !== 0;
  }

  /** @returns whether the piece was new; a number outside the set is ignored. */
  add(number: number): boolean {
    if (!Number.isInteger(number) || number < 0 || number >= this.size || this.has(number)) return false;
    this.#bits[number >> 3]! |= 1 << (number & 7);
    this.#count += 1;
    return true;
  }

  /** @returns whether the piece was there. */
  delete(number: number): boolean {
    if (!this.has(number)) return false;
    this.#bits[number >> 3]! &= ~(1 << (number & 7));
    this.#count -= 1;
    return true;
  }

  /** Adds every piece of the set. */
  fill(): void {
    for (let number = 0; number < this.size; number++) this.add(number);
  }

  *[Symbol.iterator](): Generator<number> {
    for (let number = 0; number < this.size; number++) if (this.has(number)) yield number;
  }

  /** First number at or after `from` that is not in the set, or `size`. */
  firstMissing(from = 0): number {
    let number = from;
    while (number < this.size && this.has(number)) number += 1;
    return number;
  }

  toBase64(): string {
    return Buffer.from(this.#bits).toString("base64");
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
