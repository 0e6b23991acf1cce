import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { type CommandFlags, isCommand, runCommand } from "../../../manager/commands.ts";
import { managerConfig } from "../../../manager/config.ts";
import { openStore } from "../../../manager/store/store.ts";
import { sha256Hex } from "../../../peer/core/digest.ts";
import { LacewingError } from "../../../peer/core/errors.ts";

async function withHome(
  use: (run: (line: string, flags?: CommandFlags) => Promise<string>, home: string) => Promise<void>,
) {
  const home = await Deno.makeTempDir();
  try {
    const config = managerConfig.parse({ workHome: home });
    await use((line, flags = {}) => {
      const [command, ...args] = line.split(" ");
      return runCommand(command === "token" ? "token" : "migrate", args, { config, flags });
    }, home);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

Deno.test("migrate says what it did, and that nothing is left to do", () =>
  withHome(async (run) => {
    assertEquals(await run("migrate"), "applied 0001_first\n");
    assertEquals(await run("migrate"), "The database is up to date.\n");
  }));

Deno.test("a token is created, listed without itself, and revoked", () =>
  withHome(async (run, home) => {
    const token = (await run("token create", { name: "ci", scopes: "job, cluster", expires: "30d" })).trim();
    assertMatch(token, /^lwp_/);
    {
      await using store = await openStore(`${home}/manager.db`);
      const found = await store.tokens.find(sha256Hex(token));
      assertEquals(found?.scopes, ["job", "cluster"]);
      assert(Math.abs((found?.expiresAtMs ?? 0) - Date.now() - 30 * 86_400_000) < 60_000);
    }
    const listed = await run("token list");
    assertEquals(JSON.parse(listed).name, "ci");
    assert(!listed.includes(token));
    assertEquals(await run("token revoke 1"), "revoked token 1\n");
    assertEquals(await run("token list"), "");
    await assertRejects(() => run("token revoke 1"), LacewingError, "none with this id");
  }));

const BAD: [string, CommandFlags, RegExp][] = [
  ["token", {}, /token create, token list or token revoke/],
  ["token make", {}, /token create, token list or token revoke/],
  ["token create", { name: "x" }, /--scopes/],
  ["token create", { scopes: "job" }, /--name/],
  ["token create", { name: "x", scopes: "job,root" }, /"root"/],
  ["token create", { name: "x", scopes: "job", expires: "later" }, /later/],
  ["token create y", { name: "x", scopes: "job" }, /one argument too many/],
  ["token list all", {}, /one argument too many/],
  ["token revoke", {}, /want the id/],
  ["token revoke ci", {}, /want the id/],
  ["token revoke 1 2", {}, /one argument too many/],
  ["migrate now", {}, /takes no argument/],
];
for (const [line, flags, wanted] of BAD) {
  Deno.test(`${line} ${JSON.stringify(flags)} is a usage error and makes no database`, () =>
    withHome(async (run, home) => {
      const error = await assertRejects(() => run(line, flags), LacewingError) as LacewingError;
      assertEquals(error.code, "usage");
      assertMatch(error.message, wanted);
      assertEquals([...Deno.readDirSync(home)].length, 0);
    }));
}

Deno.test("isCommand() knows the commands", () => {
  assertEquals([isCommand("token"), isCommand("migrate"), isCommand("serve")], [true, true, false]);
});
