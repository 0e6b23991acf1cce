/** A task in a memory store, for tests of what works on one: some of its pieces are there. */
import { sha256Hex } from "../../../../peer/core/digest.ts";
import { pieceCount, pieceRange } from "../../../../peer/core/piece.ts";
import type { TaskMeta, TaskSpec } from "../../../../peer/core/wire/scheduler.ts";
import type { StoredTask } from "../../../../peer/storage/piece_store.ts";
import { contentBytes } from "../../../testutil/content.ts";
import { MemoryStore } from "../../../testutil/memory_store.ts";

export const SPEC: TaskSpec = { task_id: "a".repeat(64), url: "http://origin/f", tag: "", filter: "" };

export interface Content {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly meta: TaskMeta;
  readonly store: MemoryStore;
  readonly task: StoredTask;
  /** The content's bytes of one piece. */
  piece(number: number): Uint8Array<ArrayBuffer>;
  sha256(number: number): string;
  /** Puts a piece on disk as valid. */
  hold(number: number): Promise<void>;
  layout: { contentLength: number; pieceLength: number };
}

export async function storedContent(
  { size, pieceLength = 16, held = [], meta = {}, now }: {
    size: number;
    pieceLength?: number;
    held?: readonly number[];
    meta?: Partial<TaskMeta>;
    now?: () => number;
  },
): Promise<Content> {
  const bytes = contentBytes(7, 0, size);
  const store = new MemoryStore({ now });
  const whole: TaskMeta = {
    generation: "g1",
    content_length: size,
    piece_length: pieceLength,
    ranges: true,
    etag: '"1"',
    ...meta,
  };
  const layout = { contentLength: size, pieceLength };
  const task = await store.create(SPEC, whole);
  const piece = (number: number) => {
    const { offset, length } = pieceRange(number, layout);
    return bytes.slice(offset, offset + length);
  };
  const sha256 = (number: number) => sha256Hex(piece(number));
  const hold = async (number: number) => {
    await task.write(piece(number), number * pieceLength);
    task.commit(number, sha256(number));
  };
  for (const number of held) await hold(number);
  return { bytes, meta: whole, store, task, piece, sha256, hold, layout };
}

/** Numbers of every piece. */
export function allPieces(layout: { contentLength: number; pieceLength: number }): number[] {
  return Array.from({ length: pieceCount(layout) }, (_, number) => number);
}
