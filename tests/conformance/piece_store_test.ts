// covers: peer/storage/piece_store.ts peer/storage/content.ts
import { openDiskStore } from "../../peer/storage/disk_store.ts";
import type { PieceStore } from "../../peer/storage/piece_store.ts";
import { MemoryStore } from "../testutil/memory_store.ts";
import { testPieceStore } from "./piece_store.ts";

testPieceStore("memory store", (options) => Promise.resolve(new MemoryStore(options)));

testPieceStore("disk store", async ({ now, taskExpireTimeMs }) => {
  const dataDir = await Deno.makeTempDir();
  const config = { taskExpireTimeMs, diskGCThresholdBytes: 0, diskGCThresholdPercent: 0, keepStorage: true };
  return removedAtClose(await openDiskStore({ dataDir, config, now }), dataDir);
});

/** The same store, whose folder goes with it. */
function removedAtClose(store: PieceStore, folder: string): PieceStore {
  const close = store[Symbol.asyncDispose].bind(store);
  store[Symbol.asyncDispose] = async () => {
    await close();
    await Deno.remove(folder, { recursive: true });
  };
  return store;
}
