/**
 * A process that fills a store until it is killed: `store_writer.ts FOLDER
 * TASK_ID LENGTH`. Prints each piece's number after it was committed.
 */
import { openDiskStore } from "../../peer/storage/disk_store.ts";
import { sha256Hex } from "../../peer/core/digest.ts";
import { pieceCount, pieceRange } from "../../peer/core/piece.ts";
import { contentBytes } from "./content.ts";

const [dataDir = "", taskId = "", length = ""] = Deno.args;
const config = { taskExpireTimeMs: 0, diskGCThresholdBytes: 0, diskGCThresholdPercent: 0, keepStorage: true };
const store = await openDiskStore({ dataDir, config, flushDelayMs: 0 });
const spec = { task_id: taskId, url: "http://origin.test/", tag: "", filter: "" };
const meta = { generation: "g1", content_length: Number(length), piece_length: 16 * 1024, ranges: true };
const task = await store.create(spec, meta);
const layout = { contentLength: meta.content_length, pieceLength: meta.piece_length };
const encoder = new TextEncoder();
await Promise.all([0, 1, 2, 3].map(async (worker) => {
  for (let number = worker; number < pieceCount(layout); number += 4) {
    const range = pieceRange(number, layout);
    const bytes = contentBytes(9, range.offset, range.length);
    await task.write(bytes, range.offset);
    task.commit(number, sha256Hex(bytes));
    await Deno.stdout.write(encoder.encode(`${number}\n`));
  }
}));
// Waits to be killed with everything open.
await new Promise(() => setInterval(() => {}, 1000));
