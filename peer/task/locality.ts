/**
 * Decides which of a host's neighbours elsewhere may be asked for a piece, so
 * that each piece crosses the link between two idcs once. What a neighbour of
 * the same idc offers is asked there. What only others offer is brought over
 * by one host of the idc: rendezvous hashing of piece and host says by whom, and
 * who comes next when it does not. Pure; hosts agree without a word.
 *
 * Keeps: a host that starves may ask anybody, a piece at a time; a host without an
 * idc, or without a neighbour in it, asks whom it likes.
 *
 * In a large task the scheduler names the few carriers among whom the piece is
 * brought over (manager/scheduler/border.ts), because a host knows a part of its idc only.
 *
 * Two racks of 8 hosts: 3.8 copies crossed without it, 1.0 with it, and 1.0 of 256
 * hosts in two to eight racks (tests/sim).
 */

/** How long a host waits for each one of its idc that comes before it: bounds of twice what a piece takes from elsewhere. */
const TURN_MS_MIN = 1_000;
const TURN_MS_MAX = 5_000;
/** Hosts that one waits for at most. */
const TURNS_MAX = 3;
/** Part of a new duration in the average. */
const WEIGHT = 0.2;
const UNKNOWN = 255;
/**
 * Pieces that a host brings over at once, beside what it asks for within its idc: what the whole idc waits for
 * is not to wait for what this host wants. Without them and without their place at the head of the line
 * (`Claim`), 64 hosts of two racks had 1.24 copies cross in 1.20 × the bound, 256 had 2.0 in 1.25 × (tests/sim).
 */
export const CROSSINGS_MAX = 4;

export class Locality {
  readonly #idc: string;
  readonly #own: number;
  readonly #hostId: string;
  /** Neighbours of the same idc → the hash of their names. */
  readonly #near = new Map<string, number>();
  readonly #far = new Set<string>();
  /** The same of those that bring pieces over, without this host; null: all of the idc do. */
  #carriers: ReadonlyMap<string, number> | null = null;
  #carries = true;
  /** How many of the idc come before this host, and when it first wanted the piece; each from when it was asked for. */
  #turns: Uint8Array;
  #sinceMs: Float64Array;
  #pieceMs = 0;
  #isStarving = false;

  constructor({ hostId, idc }: { hostId: string; idc: string }, pieceCount: number) {
    this.#idc = idc;
    this.#hostId = hostId;
    this.#own = hashOf(hostId);
    this.#turns = new Uint8Array(idc === "" ? 0 : pieceCount).fill(UNKNOWN);
    this.#sinceMs = new Float64Array(idc === "" ? 0 : pieceCount).fill(Infinity);
  }

  /** Whether there is anybody in the idc to share the work with. */
  get isActive(): boolean {
    return this.#near.size > 0;
  }

  /** Whether there is also anybody elsewhere to bring pieces over from. */
  get isBetween(): boolean {
    return this.isActive && this.#far.size > 0;
  }

  isNear(hostId: string): boolean {
    return this.#near.has(hostId);
  }

  /** Whether a piece that this neighbour sends is brought over for all of the idc. */
  crosses(hostId: string): boolean {
    return this.isActive && this.#far.has(hostId);
  }

  add(hostId: string, idc: string): void {
    this.remove(hostId);
    if (this.#idc === "" || idc !== this.#idc) return void this.#far.add(hostId);
    this.#near.set(hostId, hashOf(hostId));
    this.#turns.fill(UNKNOWN);
  }

  remove(hostId: string): void {
    this.#far.delete(hostId);
    if (this.#near.delete(hostId)) this.#turns.fill(UNKNOWN);
  }

  /** @param hostIds who of the idc brings pieces over; null where all do */
  setCarriers(hostIds: readonly string[] | null): void {
    const others = hostIds?.filter((hostId) => hostId !== this.#hostId);
    this.#carriers = others === undefined ? null : new Map(others.map((hostId) => [hostId, hashOf(hostId)]));
    this.#carries = hostIds === null || hostIds.includes(this.#hostId);
    this.#turns.fill(UNKNOWN);
  }

  /**
   * Whether the neighbour may be asked for the piece now.
   *
   * @param isOfferedNear whether a neighbour of the idc offers it
   */
  mayAsk(hostId: string, piece: number, isOfferedNear: boolean, nowMs: number): boolean {
    if (!this.isActive || this.isNear(hostId) || this.#isStarving) return true;
    if (isOfferedNear) return false;
    if (this.#sinceMs[piece] === Infinity) this.#sinceMs[piece] = nowMs;
    const turns = this.#turnsOf(piece);
    return turns === 0 || nowMs - this.#sinceMs[piece]! >= turns * this.#turnMs;
  }

  /**
   * Nothing has come for a moment: the next request goes to whoever has something.
   *
   * @returns whether that is new, so that somebody may be asked now who could not be before
   */
  starves(): boolean {
    const isNew = this.isActive && !this.#isStarving;
    this.#isStarving ||= isNew;
    return isNew;
  }

  /** A neighbour is being asked. */
  asked(): void {
    this.#isStarving = false;
  }

  /** A neighbour has sent a piece. */
  took(hostId: string, ms: number): void {
    if (!this.crosses(hostId)) return;
    this.#pieceMs += (ms - this.#pieceMs) * (this.#pieceMs === 0 ? 1 : WEIGHT);
  }

  get #turnMs(): number {
    return Math.min(TURN_MS_MAX, Math.max(TURN_MS_MIN, 2 * this.#pieceMs));
  }

  #turnsOf(piece: number): number {
    const known = this.#turns[piece]!;
    if (known !== UNKNOWN) return known;
    const own = scoreOf(piece, this.#own);
    let turns = this.#carries ? 0 : TURNS_MAX;
    for (const hash of (this.#carriers ?? this.#near).values()) {
      if (turns === TURNS_MAX) break;
      if (scoreOf(piece, hash) > own) turns += 1;
    }
    this.#turns[piece] = turns;
    return turns;
  }
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** The finalizer of MurmurHash3 over both: each host is first for as many pieces as any other. */
function scoreOf(piece: number, host: number): number {
  let score = host ^ Math.imul(piece + 1, 0x9e3779b1);
  score = Math.imul(score ^ (score >>> 16), 0x85ebca6b);
  score = Math.imul(score ^ (score >>> 13), 0xc2b2ae35);
  return (score ^ (score >>> 16)) >>> 0;
}
