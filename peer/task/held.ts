/** What is on this host's disk, in the words of the scheduler's protocol. */
import type { HeldTask } from "../core/wire/scheduler.ts";
import type { PieceStore, StoredTaskInfo } from "../storage/piece_store.ts";

/** Every task on disk that has at least one piece or is complete; with `taskIds` of these only. */
export function heldTasks(store: PieceStore, taskIds?: ReadonlySet<string>): HeldTask[] {
  const isMeant = ({ spec, pieceCount, complete }: StoredTaskInfo) =>
    (taskIds?.has(spec.task_id) ?? true) && (pieceCount > 0 || complete);
  return store.list().filter(isMeant).map((info) => ({
    ...info.spec,
    meta: info.meta,
    piece_count: info.pieceCount,
    complete: info.complete,
    last_used_at: new Date(info.lastUsedAtMs).toISOString(),
  }));
}

/** Which changes on disk are news to the schedulers: a task that has just begun holds nothing, and never did. */
export class HeldNews {
  readonly #held: Set<string>;

  constructor(private readonly store: PieceStore) {
    this.#held = new Set(heldTasks(store).map(({ task_id }) => task_id));
  }

  /** @param changed ids of tasks that may have changed since the last call */
  take(changed: ReadonlySet<string>): { held: HeldTask[]; dropped: string[] } {
    const held = heldTasks(this.store, changed);
    const ids = new Set(held.map(({ task_id }) => task_id));
    const dropped = [...changed].filter((id) => !ids.has(id) && this.#held.delete(id));
    for (const id of ids) this.#held.add(id);
    return { held, dropped };
  }
}
