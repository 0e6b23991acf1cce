/** What is on this host's disk, in the words of the scheduler's protocol. */
import type { HeldTask } from "../core/wire/scheduler.ts";
import type { PieceStore } from "../storage/piece_store.ts";

/** Every task on disk that has at least one piece or is complete. */
export function heldTasks(store: PieceStore): HeldTask[] {
  return store.list().filter(({ pieceCount, complete }) => pieceCount > 0 || complete).map((info) => ({
    ...info.spec,
    meta: info.meta,
    piece_count: info.pieceCount,
    complete: info.complete,
    last_used_at: new Date(info.lastUsedAtMs).toISOString(),
  }));
}
