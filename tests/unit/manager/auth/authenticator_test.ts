import { assertEquals, assertRejects } from "@std/assert";
import { Authenticator } from "../../../../manager/auth/authenticator.ts";
import { openStore } from "../../../../manager/store/store.ts";
import { sha256Hex } from "../../../../peer/core/digest.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

const CONFIG = { adminToken: "the-admin-token", joinToken: "the-join-token" };

Deno.test("admin token, join token and personal tokens are told apart", async () => {
  let nowMs = 1000;
  await using store = await openStore(":memory:", () => nowMs);
  const facts = {
    name: "ci",
    bio: "",
    digest: sha256Hex("a-personal-token"),
    scopes: ["job" as const],
    expiresAtMs: 5000,
  };
  const { id } = await store.tokens.create(facts);
  const authenticator = new Authenticator({ tokens: store.tokens, now: () => nowMs }, CONFIG);
  assertEquals((await authenticator.authenticate("Bearer the-admin-token", "a")).scopes, ["admin"]);
  assertEquals((await authenticator.authenticate("bearer the-join-token", "a")).scopes, ["peer"]);
  assertEquals(await authenticator.authenticate("Bearer a-personal-token", "a"), { name: "ci", scopes: ["job"] });
  assertEquals((await store.tokens.get(id)).lastUsedAtMs, 1000);
  nowMs = 5000;
  await assertRejects(() => authenticator.authenticate("Bearer a-personal-token", "a"), LacewingError, "expired");
});

for (
  const header of [
    undefined,
    "",
    "Bearer",
    "Bearer ",
    "Basic dTpw",
    "the-admin-token",
    "Bearer the-admin-token x",
    "Bearer the-admin-toke",
    "Bearer ",
  ]
) {
  Deno.test(`the header ${JSON.stringify(header)} lets nobody in`, async () => {
    await using store = await openStore(":memory:");
    const authenticator = new Authenticator({ tokens: store.tokens, now: () => 0 }, CONFIG);
    const error = await assertRejects(() => authenticator.authenticate(header, "a"), LacewingError);
    assertEquals(error.code, "unauthorized");
  });
}

Deno.test("without a join token an empty one does not fit", async () => {
  await using store = await openStore(":memory:");
  const authenticator = new Authenticator({ tokens: store.tokens, now: () => 0 }, { ...CONFIG, joinToken: "" });
  await assertRejects(() => authenticator.authenticate("Bearer ", "a"), LacewingError);
});

Deno.test("requests without any token do not count as failed tries, wrong ones do", async () => {
  await using store = await openStore(":memory:");
  const authenticator = new Authenticator({ tokens: store.tokens, now: () => 0 }, CONFIG);
  for (let count = 0; count < 20; count++) await assertRejects(() => authenticator.authenticate(undefined, "a"));
  assertEquals(authenticator.waitMs("a"), 0);
  for (let count = 0; count < 10; count++) await assertRejects(() => authenticator.authenticate("Bearer x", "a"));
  const error = await assertRejects(() => authenticator.authenticate("Bearer the-admin-token", "a"), LacewingError);
  assertEquals(error.code, "too_many_requests");
});
