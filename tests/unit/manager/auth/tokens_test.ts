import { assert, assertEquals, assertMatch, assertNotEquals, assertThrows } from "@std/assert";
import { ADMIN_TOKEN_FILE, adminToken, newToken } from "../../../../manager/auth/tokens.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

Deno.test("newToken() is random and says what it is for", () => {
  assertMatch(newToken("lwp"), /^lwp_[A-Za-z0-9_-]{43}$/);
  assertNotEquals(newToken("lwp"), newToken("lwp"));
});

Deno.test("adminToken() makes one for its owner alone, and finds it again", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const made = adminToken(folder, undefined);
    assertEquals(made.made, `${folder}/${ADMIN_TOKEN_FILE}`);
    assertEquals((await Deno.stat(made.made!)).mode! & 0o777, 0o600);
    assertEquals(adminToken(folder, undefined), { token: made.token, made: null });
    assertEquals(adminToken(folder, "given-by-the-operator").token, "given-by-the-operator");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("adminToken() refuses a short one, and a folder that is not there", () => {
  assertEquals(
    (assertThrows(() => adminToken("/nowhere", "short"), LacewingError) as LacewingError).code,
    "config_invalid",
  );
  const error = assertThrows(() => adminToken("/nowhere/at/all", undefined), LacewingError) as LacewingError;
  assert(error.code === "file" && error.message.includes("/nowhere/at/all"));
});
