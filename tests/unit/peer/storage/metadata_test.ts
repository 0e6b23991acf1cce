import { assert, assertEquals, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { Metadata } from "../../../../peer/storage/metadata.ts";
import { metaOf, specOf } from "../../../conformance/piece_store.ts";

const DIGEST = "0123456789abcdef".repeat(4);

function testWithFile(claim: string, run: (path: string) => void): void {
  Deno.test(claim, () => {
    const folder = Deno.makeTempDirSync();
    try {
      run(`${folder}/pieces.db`);
    } finally {
      Deno.removeSync(folder, { recursive: true });
    }
  });
}

function open(path: string, bootId: string | null = "boot 1"): Metadata {
  return new Metadata(path, { folder: "/data", bootId });
}

/** Runs SQL on the closed database. */
function alter(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

testWithFile("a record comes back as it was saved", (path) => {
  const first = open(path);
  const record = first.insert(specOf(1), metaOf(3000), 123);
  const changed = {
    ...record,
    complete: true,
    verified: "md5:1",
    lastUsedAtMs: 456,
    checkedAtMs: 789,
    fileMtimeMs: 1.5,
  };
  first.save(changed);
  first.addPieces([{ generationId: record.id, number: 2, sha256: DIGEST }]);
  first.close(true);
  const second = open(path);
  assertEquals(second.generations(), [{ record: changed, pieceCount: 1 }]);
  assertEquals(second.pieces(record.id), [[2, DIGEST]]);
  second.close(true);
});

testWithFile("pieces are listed ascending, forgotten one by one and deleted with their generation", (path) => {
  const metadata = open(path);
  const { id } = metadata.insert(specOf(1), metaOf(100_000), 0);
  metadata.addPieces([30, 4, 11].map((number) => ({ generationId: id, number, sha256: DIGEST })));
  metadata.forgetPieces(id, [11, 99]);
  assertEquals(metadata.pieces(id).map(([number]) => number), [4, 30]);
  metadata.delete(id);
  assertEquals([metadata.pieces(id), metadata.generations()], [[], []]);
  metadata.close(true);
});

testWithFile("pieces of one call are recorded all or none", (path) => {
  const metadata = open(path);
  const { id } = metadata.insert(specOf(1), metaOf(3000), 0);
  const pieces = [id, id + 1].map((generationId) => ({ generationId, number: 1, sha256: DIGEST }));
  assertEquals(assertThrows(() => metadata.addPieces(pieces), LacewingError).code, "file");
  assertEquals(metadata.pieces(id), []);
  metadata.addPieces(pieces.slice(0, 1));
  assertEquals(metadata.pieces(id).length, 1);
  metadata.close(true);
});

testWithFile("a task has one generation at most", (path) => {
  const metadata = open(path);
  metadata.insert(specOf(1), metaOf(3000), 0);
  assertThrows(() => metadata.insert(specOf(1), metaOf(3000, "g2"), 0), LacewingError);
  metadata.close(true);
});

for (
  const [before, after, clean, suspect] of [
    ["a", "a", false, false],
    ["a", "b", true, false],
    ["a", "b", false, true],
    ["a", null, false, false],
    [null, "b", false, false],
  ] as const
) {
  testWithFile(
    `from boot ${before} to ${after} after a ${clean ? "clean stop" : "crash"}, suspect is ${suspect}`,
    (path) => {
      const first = open(path, before);
      first.insert(specOf(1), metaOf(3000), 0);
      first.close(clean);
      const second = open(path, after);
      assertEquals(second.generations()[0]?.record.suspect, suspect);
      second.close(false);
      const third = open(path, after);
      assertEquals(third.generations()[0]?.record.suspect, suspect);
      third.close(true);
    },
  );
}

testWithFile("a second opener is refused as already running", (path) => {
  const first = open(path);
  const error = assertThrows(() => open(path), LacewingError);
  assertEquals(error.code, "already_running");
  assert(error.message.includes("/data"));
  first.close(true);
  open(path).close(true);
});

testWithFile("a database of a newer version is refused and kept", (path) => {
  open(path).close(true);
  alter(path, "PRAGMA user_version = 99");
  assertEquals(assertThrows(() => open(path), LacewingError).code, "file");
  alter(path, "PRAGMA user_version = 1");
  open(path).close(true);
});

for (
  const [what, sql] of [
    ["spec that is no JSON", "UPDATE generation SET spec = '{'"],
    ["spec of another task", `UPDATE generation SET task_id = '${"f".repeat(64)}'`],
    ["meta without a length", "UPDATE generation SET meta = '{}'"],
  ] as const
) {
  testWithFile(`a row with a ${what} is dropped`, (path) => {
    const first = open(path);
    first.insert(specOf(1), metaOf(3000), 0);
    first.close(true);
    alter(path, sql);
    const second = open(path);
    assertEquals([second.generations(), second.generations()], [[], []]);
    second.close(true);
  });
}

testWithFile("a page damaged by a crash is found out when the store opens", (path) => {
  const first = open(path);
  const { id } = first.insert(specOf(1), metaOf(10_000_000), 0);
  first.addPieces(Array.from({ length: 5000 }, (_, number) => ({ generationId: id, number, sha256: DIGEST })));
  first.close(false);
  using file = Deno.openSync(path, { write: true });
  file.seekSync(8 * 4096, Deno.SeekMode.Start);
  file.writeSync(new Uint8Array(4096).fill(0xa5));
  assertThrows(() => open(path), Error, "malformed");
});
