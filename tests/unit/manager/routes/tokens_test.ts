import { assert, assertEquals, assertMatch } from "@std/assert";
import { openApi } from "./api.ts";

const PATH = "/api/v1/personal-access-tokens";

Deno.test("a token is shown once, and only its digest is kept", async () => {
  await using api = await openApi({ running: false });
  const response = await api.request("POST", PATH, { json: { name: "ci", scopes: ["job", "job", "cluster"] } });
  const made = await response.json();
  assertEquals(response.headers.get("Cache-Control"), "no-store");
  assertMatch(made.token, /^lwp_[A-Za-z0-9_-]{43}$/);
  assertEquals([made.scopes, made.expires_at, made.last_used_at], [["job", "cluster"], null, null]);
  const listed = await (await api.request("GET", PATH)).text();
  assert(!listed.includes(made.token) && listed.includes('"ci"'));
  assert(!JSON.stringify(await api.store.tokens.list()).includes(made.token));
  assertEquals((await api.request("DELETE", `${PATH}/${made.id}`)).status, 204);
  assertEquals((await api.request("GET", `${PATH}/${made.id}`)).status, 404);
});

Deno.test("a name is taken once", async () => {
  await using api = await openApi({ running: false });
  const json = { name: "ci", scopes: ["job"] };
  assertEquals((await api.request("POST", PATH, { json })).status, 200);
  assertEquals((await api.request("POST", PATH, { json })).status, 409);
});

const BAD: [string, unknown, string][] = [
  ["no scopes", { name: "x" }, "scopes"],
  ["an empty list of scopes", { name: "x", scopes: [] }, "scopes"],
  ["an unknown scope", { name: "x", scopes: ["root"] }, "scopes.0"],
  ["an empty name", { name: "", scopes: ["job"] }, "name"],
  ["an expiry that is no time", { name: "x", scopes: ["job"], expires_at: "tomorrow" }, "expires_at"],
  ["an expiry that is no text", { name: "x", scopes: ["job"], expires_at: 5 }, "expires_at"],
];
for (const [what, json, path] of BAD) {
  Deno.test(`POST refuses ${what} with 422 and names the path`, async () => {
    await using api = await openApi({ running: false });
    const response = await api.request("POST", PATH, { json });
    assertEquals(response.status, 422);
    assertEquals((await response.json()).errors[0].path, path);
  });
}
