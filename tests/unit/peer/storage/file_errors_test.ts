import { assert, assertEquals } from "@std/assert";
import { closeSync, openSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { fileError, isDamagedDatabase, isLockedDatabase, isMissing } from "../../../../peer/storage/file_errors.ts";

const WHERE = { action: "write piece data", folder: "/data" };

function caught(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

function withCode(code: string): Error {
  return Object.assign(new Error("it failed"), { code });
}

Deno.test({
  name: "fileError() tells a full device as disk_full, from node:fs and from Deno",
  ignore: Deno.build.os !== "linux",
  fn() {
    const descriptor = openSync("/dev/full", "w");
    const byNode = fileError(caught(() => writeSync(descriptor, new Uint8Array(1))), WHERE);
    closeSync(descriptor);
    const byDeno = fileError(caught(() => Deno.writeFileSync("/dev/full", new Uint8Array(1))), WHERE);
    assertEquals([byNode.code, byDeno.code], ["disk_full", "disk_full"]);
    assert(byNode.message.includes("/data") && byNode.message.includes("write piece data"));
    assert(byNode.cause instanceof Error);
  },
});

for (const code of ["ENOSPC", "EDQUOT"]) {
  Deno.test(`fileError() tells ${code} as disk_full`, () => {
    assertEquals(fileError(withCode(code), WHERE).code, "disk_full");
  });
}

for (const code of ["EIO", "EACCES", "ENOENT", "EROFS", "EFBIG"]) {
  Deno.test(`fileError() tells ${code} as file`, () => {
    assertEquals(fileError(withCode(code), WHERE).code, "file");
  });
}

for (const thrown of ["text", null, undefined, 7]) {
  Deno.test(`fileError() takes a thrown ${JSON.stringify(thrown)}`, () => {
    assertEquals(fileError(thrown, WHERE).code, "file");
  });
}

Deno.test("fileError() lets a typed error pass untouched", () => {
  const error = new LacewingError("already_running", "Cannot start");
  assert(fileError(error, WHERE) === error);
});

Deno.test("isDamagedDatabase() knows a file that is no database, and nothing else", () => {
  const path = Deno.makeTempFileSync();
  Deno.writeTextFileSync(path, "no database ".repeat(500));
  const database = new DatabaseSync(path);
  const error = caught(() => database.exec("SELECT * FROM sqlite_master"));
  assertEquals([isDamagedDatabase(error), isLockedDatabase(error)], [true, false]);
  database.close();
  Deno.removeSync(path);
  const syntax = new DatabaseSync(":memory:");
  const wrong = caught(() => syntax.exec("SELECT * FROM nowhere"));
  assertEquals([isDamagedDatabase(wrong), isLockedDatabase(wrong)], [false, false]);
  syntax.close();
});

Deno.test("isLockedDatabase() knows a database that is held elsewhere", () => {
  const path = Deno.makeTempFileSync();
  const holder = new DatabaseSync(path);
  holder.exec("BEGIN EXCLUSIVE");
  const other = new DatabaseSync(path, { timeout: 0 });
  const error = caught(() => other.exec("BEGIN EXCLUSIVE"));
  assertEquals([isLockedDatabase(error), isDamagedDatabase(error)], [true, false]);
  other.close();
  holder.close();
  Deno.removeSync(path);
});

Deno.test("isMissing() knows a name that does not exist, from node:fs and from Deno", () => {
  assert(isMissing(caught(() => Deno.statSync("/nowhere/at/all"))));
  assert(isMissing(caught(() => openSync("/nowhere/at/all", "r"))));
  assert(!isMissing(caught(() => Deno.mkdirSync("/"))));
});
