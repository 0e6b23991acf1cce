import { assert, assertEquals, assertMatch } from "@std/assert";
import { fileJob } from "../jobs/bench.ts";
import { openApi } from "./api.ts";

const PATH = "/api/v1/scheduler-clusters";

Deno.test("cluster 1 `default` is there from the start", async () => {
  await using api = await openApi({ running: false });
  const response = await api.request("GET", PATH);
  const [cluster, ...others] = await response.json();
  assertEquals([cluster.id, cluster.name, cluster.is_default, cluster.scopes, others.length], [
    1,
    "default",
    true,
    {},
    0,
  ]);
  assertEquals(response.headers.get("X-Total-Count"), "1");
});

Deno.test("a cluster is created, read, changed and deleted", async () => {
  await using api = await openApi({ running: false });
  const scopes = { idc: "a|b", cidrs: ["10.0.0.0/8", "fd00::/8"], hostnames: ["^web-\\d+$"] };
  const made = await (await api.request("POST", PATH, { json: { name: "edge", bio: "b", scopes } })).json();
  assertEquals([made.name, made.bio, made.is_default, made.scopes, made.config], ["edge", "b", false, scopes, {}]);
  assertEquals(await (await api.request("GET", `${PATH}/${made.id}`)).json(), made);
  const changed = await (await api.request("PATCH", `${PATH}/${made.id}`, { json: { name: "rim", scopes: {} } }))
    .json();
  assertEquals([changed.name, changed.bio, changed.scopes], ["rim", "b", {}]);
  assertEquals((await api.request("DELETE", `${PATH}/${made.id}`)).status, 204);
  assertEquals((await api.request("GET", `${PATH}/${made.id}`)).status, 404);
  assertEquals((await api.request("DELETE", `${PATH}/${made.id}`)).status, 404);
});

Deno.test("there is one default: a new one takes the mark, and the default is not deleted", async () => {
  await using api = await openApi({ running: false });
  assertEquals((await api.request("DELETE", `${PATH}/1`)).status, 409);
  assertEquals((await api.request("PATCH", `${PATH}/1`, { json: { is_default: false } })).status, 409);
  const { id } = await (await api.request("POST", PATH, { json: { name: "new", is_default: true } })).json();
  const marks = (await (await api.request("GET", PATH)).json()).map((
    c: { id: number; is_default: boolean },
  ) => [c.id, c.is_default]);
  assertEquals(marks, [[1, false], [id, true]]);
  assertEquals((await api.request("DELETE", `${PATH}/1`)).status, 204);
  assertEquals((await api.request("DELETE", `${PATH}/${id}`)).status, 409, "the last one");
});

Deno.test("a cluster that a pending job names is not deleted", async () => {
  await using api = await openApi({ running: false });
  const { id } = await (await api.request("POST", PATH, { json: { name: "busy" } })).json();
  await api.request("POST", "/api/v1/jobs", { json: fileJob("http://h/a", { scheduler_cluster_ids: [id] }) });
  const refused = await api.request("DELETE", `${PATH}/${id}`);
  assertEquals(refused.status, 409);
  assertMatch((await refused.json()).detail, /job 1 is pending/);
  await api.request("DELETE", "/api/v1/jobs/1");
  assertEquals((await api.request("DELETE", `${PATH}/${id}`)).status, 204);
});

Deno.test("a name is taken once", async () => {
  await using api = await openApi({ running: false });
  assertEquals((await api.request("POST", PATH, { json: { name: "default" } })).status, 409);
});

const BAD: [string, unknown, string][] = [
  ["no name", {}, "name"],
  ["an empty name", { name: "" }, "name"],
  ["a name of two lines", { name: "a\nb" }, "name"],
  ["a name that is too long", { name: "x".repeat(129) }, "name"],
  ["a range that is none", { name: "x", scopes: { cidrs: ["10.0.0.0"] } }, "scopes.cidrs.0"],
  ["a range of too many bits", { name: "x", scopes: { cidrs: ["10.0.0.0/33"] } }, "scopes.cidrs.0"],
  ["a pattern that is none", { name: "x", scopes: { hostnames: ["("] } }, "scopes.hostnames.0"],
  ["an unknown scope", { name: "x", scopes: { city: "y" } }, "scopes.city"],
  ["a config key", { name: "x", config: { limit: 1 } }, "config.limit"],
  ["a default that is text", { name: "x", is_default: "yes" }, "is_default"],
];
for (const [what, json, path] of BAD) {
  Deno.test(`POST refuses ${what} with 422 and names the path`, async () => {
    await using api = await openApi({ running: false });
    const response = await api.request("POST", PATH, { json });
    const { errors } = await response.json();
    assertEquals(response.status, 422);
    assert(errors.some((error: { path: string }) => error.path === path), JSON.stringify(errors));
  });
}
