/**
 * Gives the upload server the pieces that this host may serve: whatever the
 * store has of exactly the generation asked for. A task that is asked for
 * again and again stays open for a while: opening it costs a look into the
 * database, and a neighbour asks for a thousand pieces one by one.
 */
import type { PieceStore, StoredTask } from "../storage/piece_store.ts";
import type { Holding, PieceProvider } from "../transfer/piece_transfer.ts";
import type { PieceEvents } from "./piece_events.ts";

/** How long a task stays open after its last piece was sent. */
const KEEP_OPEN_MS = 2_000;

interface OpenTask {
  readonly task: Promise<StoredTask | null>;
  readonly unwatch: () => void;
  users: number;
  closeTimer: ReturnType<typeof setTimeout> | undefined;
}

export interface OwnedPieceProvider extends PieceProvider, AsyncDisposable {}

export function createPieceProvider(store: PieceStore, events: PieceEvents): OwnedPieceProvider {
  const open = new Map<string, OpenTask>();

  const close = async (key: string, entry: OpenTask) => {
    if (open.get(key) === entry) open.delete(key);
    clearTimeout(entry.closeTimer);
    entry.unwatch();
    await (await entry.task)?.[Symbol.asyncDispose]();
  };

  const acquire = (taskId: string, generation: string): { key: string; entry: OpenTask } => {
    const key = `${taskId}/${generation}`;
    const known = open.get(key);
    if (known !== undefined) {
      clearTimeout(known.closeTimer);
      known.users += 1;
      return { key, entry: known };
    }
    const entry: OpenTask = {
      task: openGeneration(store, taskId, generation),
      // A dropped task must be asked for anew; those who read from it now go on.
      unwatch: events.watch(taskId, generation, (piece) => {
        if (piece === null && open.get(key) === entry) open.delete(key);
      }),
      users: 1,
      closeTimer: undefined,
    };
    open.set(key, entry);
    return { key, entry };
  };

  const release = async (key: string, entry: OpenTask, { now }: { now: boolean }) => {
    entry.users -= 1;
    if (entry.users > 0) return;
    if (now || open.get(key) !== entry) return await close(key, entry);
    entry.closeTimer = setTimeout(() => void close(key, entry), KEEP_OPEN_MS);
  };

  return {
    async hold(taskId: string, generation: string): Promise<Holding | null> {
      const { key, entry } = acquire(taskId, generation);
      let task: StoredTask | null;
      try {
        task = await entry.task;
      } catch (error) {
        if (open.get(key) === entry) open.delete(key);
        entry.unwatch();
        throw error;
      }
      if (task === null) {
        await release(key, entry, { now: true });
        return null;
      }
      const { meta } = task.info;
      let held = true;
      return {
        pieces: task.pieces,
        contentLength: meta.content_length,
        pieceLength: meta.piece_length,
        read: (buffer, offset) => task.read(buffer, offset),
        watch: (listener) => events.watch(taskId, generation, listener),
        isKnownTo: (hostId, piece) => events.isKnownTo(taskId, generation, { hostId, piece }),
        async [Symbol.asyncDispose]() {
          if (!held) return;
          held = false;
          await release(key, entry, { now: false });
        },
      };
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all([...open].map(([key, entry]) => close(key, entry)));
    },
  };
}

async function openGeneration(store: PieceStore, taskId: string, generation: string): Promise<StoredTask | null> {
  const task = await store.open(taskId);
  if (task === null || task.info.meta.generation === generation) return task;
  await task[Symbol.asyncDispose]();
  return null;
}
