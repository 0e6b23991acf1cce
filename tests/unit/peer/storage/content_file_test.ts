import { assert, assertEquals } from "@std/assert";
import { closeSync } from "node:fs";
import {
  breakLink,
  createDataFile,
  dataPath,
  judgeFile,
  lookAt,
  openDataFile,
  removeFile,
  removeOrphans,
} from "../../../../peer/storage/content_file.ts";
import { metaOf, specOf } from "../../../conformance/piece_store.ts";

const ID = specOf(1).task_id;

function testInFolder(claim: string, run: (folder: string) => Promise<void>): void {
  Deno.test(claim, async () => {
    const folder = await Deno.makeTempDir();
    try {
      await run(folder);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

for (
  const [claim, record, found, state] of [
    ["a complete file as recorded", {}, [3000, 5], "same"],
    ["a half-written file, whatever its time", { complete: false, fileMtimeMs: null }, [3000, 9], "same"],
    ["a complete file with another time", {}, [3000, 6], "doubtful"],
    ["a complete file with an older time", {}, [3000, 4], "doubtful"],
    ["a complete file without a recorded time", { fileMtimeMs: null }, [3000, 5], "doubtful"],
    ["a shorter file", {}, [2999, 5], "doubtful"],
    ["a longer half-written file", { complete: false }, [3001, 5], "doubtful"],
    ["a suspect file", { suspect: true }, [3000, 5], "doubtful"],
    ["no file", {}, null, "missing"],
  ] as const
) {
  Deno.test(`judgeFile() calls ${claim} ${state}`, () => {
    const recorded = { meta: metaOf(3000), complete: true, suspect: false, fileMtimeMs: 5, ...record };
    assertEquals(judgeFile(recorded, found === null ? null : { size: found[0], mtimeMs: found[1] }), state);
  });
}

for (const generation of ["g1", "A_b-9", "0".repeat(64)]) {
  Deno.test(`dataPath() keeps the plain generation name ${generation}`, () => {
    assertEquals(
      dataPath("/d", { spec: specOf(1), meta: metaOf(1, generation) }),
      `/d/${ID.slice(0, 3)}/${ID}.${generation}.data`,
    );
  });
}

for (const generation of ["", ".", "..", "../x", "a.b", "a/b", "a\\b", "\0", "\u00e4", "0".repeat(65)]) {
  Deno.test(`dataPath() digests the generation name ${JSON.stringify(generation)}`, () => {
    const path = dataPath("/d", { spec: specOf(1), meta: metaOf(1, generation) });
    assert(/^\/d\/[0-9a-f]{3}\/[0-9a-f]{64}\.[0-9a-f]{32}\.data$/.test(path), path);
  });
}

testInFolder("createDataFile() replaces what is there by a new file", async (folder) => {
  const path = `${folder}/abc/file`;
  const first = await createDataFile(path, 10);
  const before = await Deno.stat(path);
  const second = await createDataFile(path, 20);
  const after = await Deno.stat(path);
  assertEquals([before.size, after.size], [10, 20]);
  assert(before.ino !== after.ino);
  for (const { descriptor } of [first, second]) closeSync(descriptor);
});

testInFolder("openDataFile() brings a file to its length", async (folder) => {
  await Deno.writeTextFile(`${folder}/f`, "12345");
  for (const length of [5, 9, 3]) {
    const { size = 0 } = await lookAt(`${folder}/f`) ?? {};
    closeSync(openDataFile(`${folder}/f`, { length, size }).descriptor);
    assertEquals((await lookAt(`${folder}/f`))?.size, length);
  }
});

testInFolder("breakLink() leaves the other name as it is", async (folder) => {
  await Deno.writeTextFile(`${folder}/f`, "bytes");
  await Deno.link(`${folder}/f`, `${folder}/g`);
  assertEquals((await lookAt(`${folder}/f`))?.nameCount, 2);
  await breakLink(`${folder}/f`);
  await Deno.writeTextFile(`${folder}/f`, "other");
  assertEquals(await Deno.readTextFile(`${folder}/g`), "bytes");
  assertEquals((await lookAt(`${folder}/f`))?.nameCount, 1);
});

testInFolder("a file that is not there is seen as null and removed without a word", async (folder) => {
  assertEquals(await lookAt(`${folder}/f`), null);
  await removeFile(`${folder}/f`);
});

testInFolder("removeOrphans() leaves alone what is not its own", async (folder) => {
  const own = `${folder}/${ID.slice(0, 3)}/${ID}.g1.data`;
  const names = [own, own.replace("g1", "g2"), `${own}.new`, `${folder}/${ID.slice(0, 3)}/readme`];
  await Deno.mkdir(`${folder}/${ID.slice(0, 3)}`);
  for (const name of names) await Deno.writeTextFile(name, "");
  await Deno.mkdir(`${folder}/photos`);
  await Deno.writeTextFile(`${folder}/photos/${ID}.g1.data`, "");
  await Deno.mkdir(`${folder}/abc`);
  assertEquals(await removeOrphans(folder, new Set([own])), 2);
  assertEquals([...Deno.readDirSync(`${folder}/${ID.slice(0, 3)}`)].length, 2);
  assertEquals([...Deno.readDirSync(folder)].map(({ name }) => name).sort(), [ID.slice(0, 3), "photos"].sort());
});
