// covers: manager/store/clusters.ts manager/store/tokens.ts manager/store/migrations.ts manager/store/sqlite_dialect.ts
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { databasePath, openStore } from "../../../../manager/store/store.ts";
import { openDatabase } from "../../../../manager/store/sqlite_dialect.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

async function withFolder(use: (folder: string) => Promise<void>) {
  const folder = await Deno.makeTempDir();
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a new database is migrated, an old one is left as it is", () =>
  withFolder(async (folder) => {
    const path = `${folder}/manager.db`;
    let id: string;
    {
      await using store = await openStore(path);
      assertEquals(store.migrated, ["0001_first"]);
      id = store.managerId;
      await store.clusters.create({ name: "kept" });
    }
    await using store = await openStore(path);
    assertEquals([store.migrated.length, store.managerId], [0, id]);
    assertEquals((await store.clusters.list()).map(({ name }) => name), ["default", "kept"]);
  }));

Deno.test("the database is its owner's alone, in WAL with FULL synchronous", () =>
  withFolder(async (folder) => {
    await using _store = await openStore(`${folder}/manager.db`);
    assertEquals((await Deno.stat(`${folder}/manager.db`)).mode! & 0o777, 0o600);
    const database = openDatabase(`${folder}/manager.db`);
    assertEquals(database.prepare("PRAGMA journal_mode").get()?.journal_mode, "wal");
    assertEquals(database.prepare("PRAGMA synchronous").get()?.synchronous, 2);
    assertEquals(database.prepare("PRAGMA foreign_keys").get()?.foreign_keys, 1);
    database.close();
  }));

Deno.test("a migration that fails leaves nothing behind, and goes well the next time", () =>
  withFolder(async (folder) => {
    const path = `${folder}/manager.db`;
    const blocker = new DatabaseSync(path);
    blocker.exec("CREATE TABLE settings (other TEXT)");
    await assertRejects(() => openStore(path), LacewingError, "already exists");
    assertEquals(blocker.prepare("SELECT name FROM sqlite_master WHERE name = 'jobs'").all().length, 0);
    blocker.exec("DROP TABLE settings");
    blocker.close();
    await using store = await openStore(path);
    assertEquals(store.migrated, ["0001_first"]);
  }));

Deno.test("a file that is no database, and a folder that is not there, are errors that name the path", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(
      `${folder}/text`,
      "this is not a database, and long enough to be read as a header".repeat(20),
    );
    for (const path of [`${folder}/text`, `${folder}/no/such/file`, folder]) {
      const error = await assertRejects(() => openStore(path), LacewingError, path);
      assertEquals(error.code, "file");
    }
  }));

Deno.test("a transaction that fails is rolled back, and later ones go well", async () => {
  await using store = await openStore(":memory:");
  await store.clusters.create({ name: "taken" });
  const error = await assertRejects(() => store.clusters.create({ name: "taken", isDefault: true }), LacewingError);
  assertEquals(error.code, "conflict");
  assertEquals((await store.clusters.get(1)).isDefault, true, "the mark is not lost");
  await Promise.all(Array.from({ length: 20 }, (_, at) => store.clusters.create({ name: `c${at}`, isDefault: true })));
  assertEquals((await store.clusters.list()).filter(({ isDefault }) => isDefault).length, 1);
  assertEquals(await store.clusters.count(), 22);
});

Deno.test("a store that is open takes what another process writes", () =>
  withFolder(async (folder) => {
    await using one = await openStore(`${folder}/manager.db`);
    await using two = await openStore(`${folder}/manager.db`);
    for (let at = 0; at < 10; at++) await (at % 2 === 0 ? one : two).clusters.update(1, { bio: String(at) });
    assertEquals([(await one.clusters.get(1)).bio, (await two.clusters.get(1)).bio], ["9", "9"]);
  }));

Deno.test("a token's last use is written down at most once a minute", async () => {
  let nowMs = 1000;
  await using store = await openStore(":memory:", () => nowMs);
  const token = await store.tokens.create({ name: "t", bio: "", digest: "d", scopes: ["job"], expiresAtMs: null });
  await store.tokens.used(token);
  nowMs = 50_000;
  await store.tokens.used(await store.tokens.get(token.id));
  assertEquals((await store.tokens.find("d"))?.lastUsedAtMs, 1000);
  nowMs = 61_000;
  await store.tokens.used(await store.tokens.get(token.id));
  assertEquals((await store.tokens.find("d"))?.lastUsedAtMs, 61_000);
  assertEquals(await store.tokens.find("other"), null);
});

Deno.test("databasePath() takes nothing, and sqlite URLs", () => {
  assertEquals(databasePath("", "/home"), "/home/manager.db");
  assertEquals(databasePath("sqlite:///var/lib/x%20y.db", "/home"), "/var/lib/x y.db");
});

for (
  const url of [
    "postgres://u:secret@h/db",
    "postgresql://h/db",
    "mysql://h/db",
    "sqlite://relative",
    "sqlite:x",
    "/path",
    "sqlite:///a?b",
  ]
) {
  Deno.test(`databasePath() refuses ${url}`, () => {
    const error = assertThrows(() => databasePath(url, "/home"), LacewingError) as LacewingError;
    assertEquals(error.code, "config_invalid");
    assert(!error.message.includes("secret"));
    assertEquals(error.message.includes("not available in this version"), url.startsWith("postgres"));
  });
}
