/**
 * Parts the rate of one command among the files that it downloads at once.
 * Pure. Keeps: the parts never add up to more than the whole. A file gets its
 * part when it starts, and it grows when others end and none wait: a large
 * file that is the last one has the whole rate.
 */

/** The part of one file. */
export interface RatePart {
  /** Bytes per second; 0 is no limit. */
  readonly bytesPerSecond: number;
  /** Hears of a larger part. */
  onGrow: ((bytesPerSecond: number) => void) | null;
}

interface Part {
  bytesPerSecond: number;
  onGrow: RatePart["onGrow"];
}

export class RateShare {
  readonly #parts = new Set<Part>();

  /**
   * @param total bytes per second; 0 is no limit
   * @param slots files at once
   */
  constructor(private readonly total: number, private readonly slots: number) {}

  /** @param waiting files that wait for a slot besides this one */
  take(waiting: number): RatePart {
    const among = Math.min(this.slots - this.#parts.size, waiting + 1);
    const part: Part = {
      bytesPerSecond: this.total === 0 ? 0 : Math.max(1, Math.floor(this.#free() / Math.max(1, among))),
      onGrow: null,
    };
    this.#parts.add(part);
    return part;
  }

  /** A file has ended. Those that still run get what it leaves, unless others wait for it. */
  release(part: RatePart, waiting: number): void {
    this.#parts.delete(part as Part);
    if (this.total === 0 || waiting > 0 || this.#parts.size === 0) return;
    const more = Math.floor(this.#free() / this.#parts.size);
    for (const other of this.#parts) {
      // Small steps are not worth telling.
      if (other.onGrow === null || more < other.bytesPerSecond / 4) continue;
      other.bytesPerSecond += more;
      other.onGrow(other.bytesPerSecond);
    }
  }

  #free(): number {
    let free = this.total;
    for (const { bytesPerSecond } of this.#parts) free -= bytesPerSecond;
    return Math.max(0, free);
  }
}
