import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { lock, makeWorkHome } from "../../../manager/work_home.ts";
import { LacewingError } from "../../../peer/core/errors.ts";

async function withFolder(use: (folder: string) => Promise<void>) {
  const folder = await Deno.makeTempDir();
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a work home is made for its user alone", () =>
  withFolder(async (folder) => {
    makeWorkHome(`${folder}/a/b`);
    makeWorkHome(`${folder}/a/b`);
    assertEquals((await Deno.stat(`${folder}/a/b`)).mode! & 0o777, 0o700);
    await Deno.writeTextFile(`${folder}/file`, "");
    assertThrows(() => makeWorkHome(`${folder}/file/x`), LacewingError, "--workhome");
  }));

Deno.test("a lock has one holder, who is named, and is free when he lets go", () =>
  withFolder(async (folder) => {
    const held = await lock(`${folder}/lock`, "this folder");
    const error = await assertRejects(
      () => lock(`${folder}/lock`, "this folder"),
      LacewingError,
      `process ${Deno.pid}`,
    );
    assertEquals((error as LacewingError).code, "already_running");
    held[Symbol.dispose]();
    (await lock(`${folder}/lock`, "this folder"))[Symbol.dispose]();
  }));

Deno.test("a lock that cannot be made says where", () =>
  withFolder(async (folder) => {
    await assertRejects(() => lock(`${folder}/no/lock`, "this folder"), LacewingError, "this folder");
  }));
