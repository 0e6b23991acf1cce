/**
 * One content as the scheduler knows it: what names it, its current generation,
 * and which live hosts have how much of it on disk. The generation of a task
 * that nobody works on is what its best holder reports: complete ones win.
 */
import { pieceCount } from "../../peer/core/piece.ts";
import type { HeldTask, TaskMeta, TaskSpec } from "../../peer/core/wire/scheduler.ts";
import { DigestList } from "./digests.ts";
import type { Holding } from "./resource.ts";

/** Generations that are remembered as replaced at the origin. */
const OBSOLETE_MAX = 8;

export class Task {
  readonly holdings = new Map<string, Holding>();
  readonly id: string;
  /** When a host last found the current generation at the origin; null: not since this scheduler knows it. */
  confirmedAtMs: number | null = null;
  #meta: TaskMeta | null = null;
  #digests = new DigestList(0);
  readonly #obsolete = new Set<string>();

  constructor(public spec: TaskSpec) {
    this.id = spec.task_id;
  }

  get meta(): TaskMeta | null {
    return this.#meta;
  }

  /** Digests of the current generation. */
  get digests(): DigestList {
    return this.#digests;
  }

  get pieceCount(): number {
    return this.#digests.size;
  }

  /** Takes on another generation (null: unknown), with an empty list of digests. */
  setMeta(meta: TaskMeta | null): void {
    this.#meta = meta;
    this.confirmedAtMs = null;
    if (meta !== null) this.#obsolete.delete(meta.generation);
    this.forgetDigests();
  }

  forgetDigests(): void {
    this.#digests = new DigestList(this.#meta === null ? 0 : piecesOfMeta(this.#meta));
  }

  /** The origin has replaced the current generation: it is not taken on again from what hosts have on disk. */
  markObsolete(): void {
    if (this.#meta === null) return;
    this.#obsolete.add(this.#meta.generation);
    if (this.#obsolete.size > OBSOLETE_MAX) this.#obsolete.delete([...this.#obsolete][0]!);
    this.setMeta(null);
  }

  isObsolete(generation: string): boolean {
    return this.#obsolete.has(generation);
  }

  /** Newer words about the task; a digest once known stays. */
  respec(spec: TaskSpec): void {
    const digest = spec.digest ?? this.spec.digest;
    const { task_id, url, tag, filter } = spec;
    this.spec = { task_id, url, tag, filter, ...(digest === undefined ? {} : { digest }) };
  }

  /** Notes what a host has on disk. */
  hold(
    hostId: string,
    { meta, pieceCount, complete }: { meta: TaskMeta; pieceCount: number; complete: boolean },
  ): Holding {
    // One object for all hosts that hold the same: a cluster reports thousands.
    const shared = meta.generation === this.#meta?.generation ? this.#meta : meta;
    const holding = {
      meta: shared,
      pieceCount: Math.min(pieceCount, piecesOfMeta(meta)),
      complete,
      asked: pieceCount === 0,
    };
    this.holdings.set(hostId, holding);
    return holding;
  }

  /** What the host has of the current generation, or undefined. */
  current(hostId: string): Holding | undefined {
    const holding = this.holdings.get(hostId);
    return holding !== undefined && holding.meta.generation === this.#meta?.generation ? holding : undefined;
  }

  isComplete(hostId: string): boolean {
    return this.current(hostId)?.complete ?? false;
  }

  /** Whether any host but this one has a piece of the current generation. */
  isHeldBesides(hostId: string): boolean {
    for (const [holderId, { meta, pieceCount, complete }] of this.holdings) {
      if (holderId === hostId || meta.generation !== this.#meta?.generation) continue;
      if (complete || pieceCount > 0) return true;
    }
    return false;
  }

  /** For a task that nobody works on: a host reports what it holds. */
  reportIdle(hostId: string, held: HeldTask): void {
    this.hold(hostId, { meta: held.meta, pieceCount: held.piece_count, complete: held.complete });
    if (this.isObsolete(held.meta.generation)) return;
    if (held.meta.generation !== this.#meta?.generation && !held.complete && this.#hasCompleteHolder()) return;
    this.respec(held);
    if (held.meta.generation !== this.#meta?.generation) this.setMeta(held.meta);
  }

  /** For a task that nobody works on: the generation of the best holder that is left. */
  chooseMeta(): void {
    if (this.#meta !== null && this.#hasHolder()) return;
    const best =
      [...this.holdings].filter(([, { meta }]) => !this.isObsolete(meta.generation)).sort(([a, one], [b, other]) =>
        Number(other.complete) - Number(one.complete) || other.pieceCount - one.pieceCount || (a < b ? -1 : 1)
      )[0];
    if (best?.[1].meta.generation !== this.#meta?.generation) this.setMeta(best?.[1].meta ?? null);
  }

  #hasCompleteHolder(): boolean {
    return [...this.holdings.keys()].some((hostId) => this.isComplete(hostId));
  }

  #hasHolder(): boolean {
    return [...this.holdings.keys()].some((hostId) => this.current(hostId) !== undefined);
  }
}

/** Pieces of a generation. */
export function piecesOfMeta(meta: TaskMeta): number {
  return pieceCount({ contentLength: meta.content_length, pieceLength: meta.piece_length });
}
