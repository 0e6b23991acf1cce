/**
 * Decides which piece to ask of which neighbour next. Pure: the session tells
 * it what happened (offer, finished, failed, neighbour gone) and acts on its answer.
 *
 * Keeps: a piece is in flight from at most one neighbour (two in the end
 * game, and then only when every missing piece that is offered is asked for);
 * a neighbour that sent a wrong piece is not asked again for this task.
 * Rarest first with random ties, the first pieces at random: in-order picking
 * costs 3-5 times the time in a cold swarm (Legout et al., IMC 2006). Hosts that send first what they have not sent make up
 * for most of that: 16 hosts take 1.22 and not 1.08 x the bound, 1,000 hosts 1.18 and not 1.16 (tests/sim).
 */
import { Bitmap } from "../core/bitmap.ts";
import type { Random } from "../core/clock.ts";

/** Until this many pieces are held the choice is random, so that a newcomer has something to trade (libtorrent's initial_picker_threshold). */
const RANDOM_FIRST_COUNT = 4;
/** Requests of one piece in the end game. */
const END_GAME_REQUESTS = 2;

export interface PickerOptions {
  readonly pieceCount: number;
  readonly random: Random;
  /** Second requests in all, those of `hedge` too; 1% of the pieces, at least 2. */
  readonly duplicatesMax?: number;
  /** Of these, such as the end game may make unasked; 1% of the pieces: of a small content two were half. */
  readonly endGameMax?: number;
}

/** What is known of one missing piece. */
const MISSING = 0, READING = 1, PENDING = 2, HELD = 3;

export class PiecePicker {
  readonly pieceCount: number;
  readonly #random: Random;
  readonly #state: Uint8Array;
  readonly #wanted: Bitmap;
  /** Wanted, missing and asked of nobody: what a neighbour may be asked for, found 32 pieces at a time. */
  readonly #free: Bitmap;
  /** Of these, pieces that a neighbour offers. */
  #openCount = 0;
  readonly #availability: Uint32Array;
  /** Of these, neighbours that are near. */
  readonly #near: Uint32Array;
  readonly #nearIds = new Set<string>();
  readonly #offers = new Map<string, Bitmap>();
  readonly #banned = new Set<string>();
  /** Piece → hosts it is asked of. */
  readonly #inFlight = new Map<number, Set<string>>();
  #duplicatesLeft: number;
  #endGameLeft: number;
  #heldCount = 0;
  /** Wanted pieces that are not held. */
  #leftCount = 0;
  /** Reader → where it is, and how many pieces from there go before others. */
  readonly #windows = new Map<unknown, { readonly first: number; readonly count: number }>();

  constructor({ pieceCount, random, duplicatesMax, endGameMax }: PickerOptions) {
    this.pieceCount = pieceCount;
    this.#random = random;
    this.#state = new Uint8Array(pieceCount);
    this.#wanted = new Bitmap(pieceCount);
    this.#free = new Bitmap(pieceCount);
    this.#availability = new Uint32Array(pieceCount);
    this.#near = new Uint32Array(pieceCount);
    this.#duplicatesLeft = duplicatesMax ?? Math.max(2, Math.ceil(pieceCount / 100));
    this.#endGameLeft = endGameMax ?? Math.floor(pieceCount / 100);
  }

  /** Pieces from `first` on are wanted from now on. */
  want(first: number, count: number): void {
    for (let number = first; number < first + count; number++) {
      if (!this.#wanted.add(number)) continue;
      if (this.#state[number] !== HELD) this.#leftCount += 1;
      this.#settle(number);
    }
  }

  /** A reader waits for these pieces: they go before rarer ones. */
  setWindow(reader: unknown, first: number, count: number): void {
    this.#windows.set(reader, { first, count });
  }

  /** The reader reads no more. */
  endWindow(reader: unknown): void {
    this.#windows.delete(reader);
  }

  /** Pieces held in a row from where the reader is that has fewest of them, at most `max`; null without a reader. */
  leadOfReaders(max: number): number | null {
    if (this.#windows.size === 0) return null;
    let least = max;
    for (const { first } of this.#windows.values()) {
      let lead = 0;
      while (lead < least && this.isHeld(first + lead)) lead += 1;
      least = lead;
    }
    return least;
  }

  /** Pieces that a reader waits for while nobody works on the first of them; of several readers those that are furthest on. */
  get waitedFor(): { readonly first: number; readonly count: number } | null {
    let furthest = null;
    for (const window of this.#windows.values()) {
      if (this.#free.has(window.first) && window.first >= (furthest?.first ?? 0)) furthest = window;
    }
    return furthest;
  }

  /** Everything that a neighbour has now; null takes its offer back. */
  offer(hostId: string, pieces: Bitmap | null, { isNear = false } = {}): void {
    this.lost(hostId);
    if (pieces === null || this.#banned.has(hostId)) return;
    if (isNear) this.#nearIds.add(hostId);
    const own = new Bitmap(this.pieceCount);
    for (const number of pieces) this.#addOffer(hostId, own, number);
    this.#offers.set(hostId, own);
  }

  /** A neighbour has more pieces; before its first offer it is ignored. */
  have(hostId: string, pieces: readonly number[]): void {
    const own = this.#offers.get(hostId);
    if (own === undefined) return;
    for (const number of pieces) this.#addOffer(hostId, own, number);
  }

  /** Whether any neighbour has told what it has, be it nothing. */
  get hasOffers(): boolean {
    return this.#offers.size > 0;
  }

  /** Whether the neighbour has told that it has the piece. */
  isOffered(hostId: string, number: number): boolean {
    return this.#offers.get(hostId)?.has(number) === true;
  }

  /** The neighbour's link is gone, and its offers with it. */
  lost(hostId: string): void {
    const isNear = this.#nearIds.delete(hostId);
    for (const number of this.#offers.get(hostId) ?? []) {
      this.#availability[number]! -= 1;
      if (this.#availability[number] === 0 && this.#free.has(number)) this.#openCount -= 1;
      if (isNear) this.#near[number]! -= 1;
    }
    this.#offers.delete(hostId);
  }

  /** The neighbour sent a wrong piece: never ask it again. */
  ban(hostId: string): void {
    this.#banned.add(hostId);
    this.lost(hostId);
  }

  isBanned(hostId: string): boolean {
    return this.#banned.has(hostId);
  }

  /** The piece is valid on disk. */
  held(number: number): void {
    if (this.#state[number] !== HELD) {
      this.#heldCount += 1;
      if (this.#wanted.has(number)) this.#leftCount -= 1;
    }
    this.#state[number] = HELD;
    this.#inFlight.delete(number);
    this.#take(number);
  }

  /** The piece is being read from the origin: not to be asked of neighbours. */
  reading(number: number): void {
    if (this.#state[number] === MISSING || this.#state[number] === PENDING) this.#state[number] = READING;
    this.#take(number);
  }

  /** The piece is here, but its digest is not known yet. */
  pending(number: number, hostId: string): void {
    this.failed(number, hostId);
    if (this.#state[number] === MISSING) this.#state[number] = PENDING;
    this.#take(number);
  }

  /** The piece is neither read nor pending any more, and not held. */
  missing(number: number): void {
    if (this.#state[number] !== HELD) this.#state[number] = MISSING;
    this.#settle(number);
  }

  /** A request ended without the piece. */
  failed(number: number, hostId: string): void {
    const hosts = this.#inFlight.get(number);
    hosts?.delete(hostId);
    if (hosts?.size !== 0) return;
    this.#inFlight.delete(number);
    this.#settle(number);
  }

  get heldCount(): number {
    return this.#heldCount;
  }

  isHeld(number: number): boolean {
    return this.#state[number] === HELD;
  }

  isReading(number: number): boolean {
    return this.#state[number] === READING;
  }

  availability(number: number): number {
    return this.#availability[number] ?? 0;
  }

  /** Whether a neighbour that is near has the piece. */
  isOfferedNear(number: number): boolean {
    return (this.#near[number] ?? 0) > 0;
  }

  /** Whether any neighbour might be asked for anything now. */
  get hasWork(): boolean {
    return this.#openCount > 0 || (this.#mayDouble && this.#inFlight.size > 0);
  }

  /** Wanted pieces that are not held: whether any is left. */
  get isComplete(): boolean {
    return this.#leftCount === 0;
  }

  /** Wanted pieces that nobody works on, ascending from `from`, at most `max`. */
  idlePieces(max: number, from = 0): number[] {
    const result: number[] = [];
    for (let number = this.#free.next(from); number < this.pieceCount; number = this.#free.next(number + 1)) {
      result.push(number);
      if (result.length === max) break;
    }
    return result;
  }

  /**
   * The piece to ask of this neighbour now, marked as in flight; null when it
   * has none that may be asked. `duplicate` says that another neighbour is asked for it too.
   *
   * @param acceptable pieces that are of use now
   */
  pick(
    hostId: string,
    acceptable: (piece: number) => boolean = () => true,
  ): { number: number; duplicate: boolean } | null {
    const own = this.#offers.get(hostId);
    if (own === undefined) return null;
    const number = this.#openCount > 0 ? this.#best(own, this.#free, acceptable) : null;
    if (number !== null) return this.#start(number, hostId, false);
    // The end game is when every missing piece that someone offers is asked for.
    if (!this.#mayDouble || this.#openCount > 0) return null;
    const again = this.#best(own, this.#wanted, (piece) => {
      const hosts = this.#inFlight.get(piece);
      return hosts !== undefined && hosts.size < END_GAME_REQUESTS && !hosts.has(hostId) &&
        this.#state[piece] === MISSING && acceptable(piece);
    });
    if (again === null) return null;
    this.#endGameLeft -= 1;
    this.#duplicatesLeft -= 1;
    return this.#start(again, hostId, true);
  }

  /**
   * Marks a piece that is in flight from a slow neighbour as asked of this one
   * too, as one of the second requests there may be. @returns whether it may be asked
   */
  hedge(number: number, hostId: string): boolean {
    const hosts = this.#inFlight.get(number);
    const may = hosts !== undefined && hosts.size < END_GAME_REQUESTS && !hosts.has(hostId) && this.#duplicatesLeft > 0;
    if (!may || this.#state[number] !== MISSING || !this.#offers.get(hostId)?.has(number)) return false;
    this.#duplicatesLeft -= 1;
    hosts.add(hostId);
    return true;
  }

  /** Whether the end game may ask a second neighbour. */
  get #mayDouble(): boolean {
    return this.#endGameLeft > 0 && this.#duplicatesLeft > 0;
  }

  #start(number: number, hostId: string, duplicate: boolean): { number: number; duplicate: boolean } {
    const hosts = this.#inFlight.get(number);
    if (hosts === undefined) this.#inFlight.set(number, new Set([hostId]));
    else hosts.add(hostId);
    this.#take(number);
    return { number, duplicate };
  }

  /** Of the pieces in both sets: in the window the first, else the rarest; while few are held, any. */
  #best(own: Bitmap, among: Bitmap, allowed: (piece: number) => boolean): number | null {
    for (const { first, count } of this.#windows.values()) {
      const end = Math.min(first + count, this.pieceCount);
      for (let at = own.nextShared(among, first); at < end; at = own.nextShared(among, at + 1)) {
        if (allowed(at)) return at;
      }
    }
    const random = this.#heldCount < RANDOM_FIRST_COUNT;
    let best: number | null = null;
    let bestAvailability = Infinity;
    let ties = 0;
    for (let at = own.nextShared(among, 0); at < this.pieceCount; at = own.nextShared(among, at + 1)) {
      if (!allowed(at)) continue;
      const availability = random ? 1 : this.#availability[at]!;
      if (availability > bestAvailability) continue;
      ties = availability < bestAvailability ? 1 : ties + 1;
      bestAvailability = availability;
      if (this.#random() * ties < 1) best = at;
    }
    return best;
  }

  /** Something about the piece has changed: it may be free now. */
  #settle(number: number): void {
    const isFree = this.#state[number] === MISSING && this.#wanted.has(number) && !this.#inFlight.has(number);
    if (isFree && this.#free.add(number) && this.#availability[number]! > 0) this.#openCount += 1;
  }

  /** The piece is not free any more. */
  #take(number: number): void {
    if (this.#free.delete(number) && this.#availability[number]! > 0) this.#openCount -= 1;
  }

  #addOffer(hostId: string, own: Bitmap, number: number): void {
    if (!own.add(number)) return;
    this.#availability[number]! += 1;
    if (this.#availability[number] === 1 && this.#free.has(number)) this.#openCount += 1;
    if (this.#nearIds.has(hostId)) this.#near[number]! += 1;
  }
}
