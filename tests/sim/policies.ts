/**
 * Piece pickers to compare: the product's own, and two that order pieces in
 * other ways by using it. Only the order differs: what may be asked of whom,
 * and the end game, are the product's.
 */
import { PiecePicker } from "../../peer/task/piece_picker.ts";
import type { Random } from "../../peer/core/clock.ts";
import type { Policy } from "./config.ts";

export function createPicker(policy: Policy, pieceCount: number, random: Random): PiecePicker {
  if (policy === "random") return new RandomPicker(pieceCount, random);
  const picker = new PiecePicker({ pieceCount, random });
  // A window over everything is the order of a reader.
  if (policy === "in-order") picker.setWindow("all", 0, pieceCount);
  return picker;
}

class RandomPicker extends PiecePicker {
  readonly #dice: Random;

  constructor(pieceCount: number, random: Random) {
    super({ pieceCount, random });
    this.#dice = random;
  }

  override pick(hostId: string, acceptable: (piece: number) => boolean = () => true) {
    const candidates: number[] = [];
    const duplicate = super.pick(hostId, (piece) => {
      if (acceptable(piece)) candidates.push(piece);
      return false;
    });
    if (duplicate !== null || candidates.length === 0) return duplicate;
    const chosen = candidates[Math.floor(this.#dice() * candidates.length)];
    return super.pick(hostId, (piece) => piece === chosen);
  }
}
