/**
 * Remembers which pieces this host has sent, of the last ones that were asked
 * for: what is forgotten counts as never sent, which costs a copy at most.
 */
import type { SentMark } from "./upload_slots.ts";

/** Pieces that are remembered; 1 GiB of the smallest, about 1 MB of memory. */
const PIECES_MAX = 4096;

export class SentMarks {
  /** Longest not asked for first. */
  readonly #marks = new Map<string, SentMark>();

  /** @param max pieces that are remembered */
  constructor(private readonly max = PIECES_MAX) {}

  /** @returns the one mark of the piece, for the slots to set */
  of(taskId: string, generation: string, number: number): SentMark {
    const key = `${taskId}/${generation}/${number}`;
    const mark = this.#marks.get(key) ?? { isSent: false };
    this.#marks.delete(key);
    this.#marks.set(key, mark);
    if (this.#marks.size > this.max) this.#marks.delete(this.#marks.keys().next().value!);
    return mark;
  }
}
