import { assert, assertEquals } from "@std/assert";
import { silentLogger } from "../../../../peer/core/log.ts";
import { openMetadata, readBootId, removeMetadata, syncFiles } from "../../../../peer/storage/startup.ts";
import { metaOf, specOf } from "../../../conformance/piece_store.ts";

const OPTIONS = { bootId: "boot 1", log: silentLogger };

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

Deno.test({
  name: "readBootId() names this run of the machine the same each time",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const bootId = await readBootId();
    assert(/^[0-9a-f-]{36}$/.test(bootId ?? ""));
    assertEquals(await readBootId(), bootId);
  },
});

for (const [what, bytes] of [["of random bytes", 9000], ["cut short", 50]] as const) {
  testInFolder(`openMetadata() starts empty beside a database ${what}`, async (folder) => {
    const first = await openMetadata(folder, OPTIONS);
    first.insert(specOf(1), metaOf(10), 0);
    first.close(false);
    const damaged = new Uint8Array(bytes).map((_, index) => index * 37);
    await Deno.writeFile(`${folder}/pieces.db`, damaged);
    const second = await openMetadata(folder, OPTIONS);
    assertEquals(second.generations(), []);
    second.close(true);
    assertEquals(await Deno.readFile(`${folder}/pieces.db.damaged`), damaged);
    const third = await openMetadata(folder, OPTIONS);
    third.close(true);
  });
}

testInFolder("an empty database file is a new database", async (folder) => {
  await Deno.writeFile(`${folder}/pieces.db`, new Uint8Array(0));
  const metadata = await openMetadata(folder, OPTIONS);
  metadata.insert(specOf(1), metaOf(10), 0);
  metadata.close(true);
});

testInFolder("removeMetadata() leaves nothing and does not mind nothing", async (folder) => {
  (await openMetadata(folder, OPTIONS)).close(false);
  await removeMetadata(folder);
  await removeMetadata(folder);
  assertEquals([...Deno.readDirSync(folder)], []);
});

testInFolder("syncFiles() takes files that are gone, and tells what it could not sync", async (folder) => {
  await Deno.writeTextFile(`${folder}/f`, "x");
  const paths = Array.from({ length: 20 }, (_, index) => `${folder}/gone${index}`);
  assertEquals(await syncFiles([], silentLogger), true);
  assertEquals(await syncFiles([`${folder}/f`, ...paths], silentLogger), true);
  assertEquals(await syncFiles([folder], silentLogger), false);
});
