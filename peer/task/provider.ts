/**
 * Gives the upload server the pieces that this host may serve: whatever the
 * store has of exactly the generation asked for.
 */
import type { PieceStore } from "../storage/piece_store.ts";
import type { Holding, PieceProvider } from "../transfer/piece_transfer.ts";
import type { PieceEvents } from "./piece_events.ts";

export function createPieceProvider(store: PieceStore, events: PieceEvents): PieceProvider {
  return {
    async hold(taskId: string, generation: string): Promise<Holding | null> {
      const task = await store.open(taskId);
      if (task === null) return null;
      const { meta } = task.info;
      if (meta.generation !== generation) {
        await task[Symbol.asyncDispose]();
        return null;
      }
      return {
        pieces: task.pieces,
        contentLength: meta.content_length,
        pieceLength: meta.piece_length,
        read: (buffer, offset) => task.read(buffer, offset),
        watch: (listener) => events.watch(taskId, generation, listener),
        [Symbol.asyncDispose]: () => task[Symbol.asyncDispose](),
      };
    },
  };
}
