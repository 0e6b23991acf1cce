/**
 * Decides how many pieces a host sends at once: the fewest that fill its
 * uplink. Four, as long as more do not send more bytes; where children or the
 * way to them are the limit, as many as still add something. Pure: told of each
 * upload that ended, it answers with a count.
 *
 * A piece that is sent alone arrives sooner, and its receiver sends it on: in a
 * cold wave of 1,000 hosts sixteen at once took 1.29 × the bound, four 1.17 × and
 * two 1.13 × (tests/sim). But on a real network two do not fill an uplink whose
 * children's downlinks are as narrow: 16 hosts took 1.29 × with two, 1.18 × with
 * four, 1.17 × with eight (tests/bench, scenario A).
 */

/** Uploads at once that keep a link busy while one ends and the next begins. */
export const SLOTS_MIN = 4;
/** Ends of uploads that one figure is made of, for each slot; those under way when the count changed do not count. */
const ENDS_PER_SLOT = 4;
/** Shorter than this, a figure is about buffers and not about the link. */
const WINDOW_MS_MIN = 100;
/** Part of the proportional gain that more slots must bring, or else fewer do as well. */
const GAIN_MIN = 0.5;
/** How long a count stands before another one is tried. */
const HOLD_MS = 5_000;

export class SlotCount {
  #count: number;
  /** The count that stands, and bytes per millisecond with it; null while not known. */
  #base: { count: number; rate: number | null };
  #triedAtMs = -Infinity;
  #isUpNext = true;
  #skip = 0;
  #window: { sinceMs: number; bytes: number; ends: number } | null = null;

  /** @param max never more than this */
  constructor(private readonly max: number) {
    this.#count = Math.min(SLOTS_MIN, max);
    this.#base = { count: this.#count, rate: null };
  }

  /** Slots that may be out now. */
  get count(): number {
    return this.#count;
  }

  /**
   * An upload has ended.
   *
   * @param isBusy whether all slots were out and somebody waited for one
   */
  ended(bytes: number, { isBusy }: { isBusy: boolean }, nowMs: number): void {
    if (!isBusy) {
      this.#restart();
      return;
    }
    if (this.#skip > 0) this.#skip -= 1;
    else if (this.#window === null) this.#window = { sinceMs: nowMs, bytes: 0, ends: 0 };
    else {
      this.#window.bytes += bytes;
      this.#window.ends += 1;
    }
    const window = this.#window;
    if (window === null || window.ends < ENDS_PER_SLOT * this.#count) return;
    const ms = nowMs - window.sinceMs;
    if (ms >= WINDOW_MS_MIN) this.#conclude(window.bytes / ms, nowMs);
  }

  #conclude(rate: number, nowMs: number): void {
    const { count, rate: before } = this.#base;
    const isTrial = this.#count !== count && before !== null;
    const share = this.#count / count;
    // More slots must bring something, fewer must cost nearly nothing.
    const isBetter = isTrial && rate >= before * (share > 1 ? 1 + GAIN_MIN * (share - 1) : 1 - GAIN_MIN * (1 - share));
    if (isTrial && !isBetter) {
      this.#set(count);
      this.#triedAtMs = nowMs;
      this.#isUpNext = !this.#isUpNext;
      return;
    }
    this.#base = { count: this.#count, rate };
    if (!isTrial && nowMs - this.#triedAtMs < HOLD_MS) return this.#restart();
    const next = this.#next();
    if (next === this.#count) {
      this.#triedAtMs = nowMs;
      this.#isUpNext = !this.#isUpNext;
    }
    this.#set(next);
  }

  #next(): number {
    const step = Math.max(1, this.#count >> 1);
    const up = Math.min(this.max, this.#count + step);
    const down = Math.max(Math.min(SLOTS_MIN, this.max), this.#count - Math.max(1, Math.floor(this.#count / 3)));
    return this.#isUpNext ? up : down;
  }

  #set(count: number): void {
    this.#count = count;
    this.#restart();
  }

  #restart(): void {
    this.#skip = this.#count;
    this.#window = null;
  }
}
