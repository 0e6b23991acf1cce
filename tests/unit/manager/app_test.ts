// covers: manager/routes/problem.ts manager/routes/env.ts manager/routes/schemas.ts manager/openapi.ts
import { assert, assertEquals, assertMatch } from "@std/assert";
import { host } from "./fakes.ts";
import { fileJob } from "./jobs/bench.ts";
import { ADMIN_TOKEN, bearer, JOIN_TOKEN, openApi } from "./routes/api.ts";

const JOBS = "/api/v1/jobs";
const JSON_TYPE = { "Content-Type": "application/json" };

async function assertProblem(response: Response, status: number, code: string) {
  const problem = await response.json();
  assertEquals([response.status, problem.status, problem.code], [status, status, code], JSON.stringify(problem));
  assertEquals(response.headers.get("content-type"), "application/problem+json");
  assertEquals(problem.message, problem.detail);
  assertEquals(problem.type, `urn:lacewing:error:${code}`);
  assert(problem.title.length > 0 && !/\bat .*\.ts:\d/.test(JSON.stringify(problem)));
  return problem;
}

Deno.test("malformed JSON is 400", async () => {
  await using api = await openApi({ running: false });
  for (const body of ["{", "", "{'a':1}", '{"type":"preheat",}']) {
    await assertProblem(await api.request("POST", JOBS, { body, headers: JSON_TYPE }), 400, "bad_request");
  }
});

Deno.test("a body that is not JSON by its type is 415", async () => {
  await using api = await openApi({ running: false });
  const body = JSON.stringify(fileJob("http://h/a"));
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"]) {
    const problem = await assertProblem(
      await api.request("POST", JOBS, { body, headers: { "Content-Type": type } }),
      415,
      "unsupported_media_type",
    );
    assert(problem.detail.includes(type) && problem.detail.includes("application/json"));
  }
  const withCharset = { "Content-Type": "application/json; charset=utf-8" };
  assertEquals((await api.request("POST", JOBS, { body, headers: withCharset })).status, 200);
});

Deno.test("a body over 1 MiB is 413, with and without its length announced", async () => {
  await using api = await openApi({ running: false });
  const body = `{"type":"${"x".repeat(1024 * 1024)}"}`;
  await assertProblem(await api.request("POST", JOBS, { body, headers: JSON_TYPE }), 413, "too_large");
  const announced = { ...JSON_TYPE, "Content-Length": String(body.length) };
  await assertProblem(await api.request("POST", JOBS, { body, headers: announced }), 413, "too_large");
});

Deno.test("an unknown path is 404 as a problem, also outside /api", async () => {
  await using api = await openApi({ running: false });
  for (const path of ["/", "/api/v1/nothing", "/api/v2/jobs", "/api/v1/jobs/1/nothing", "/api/v1/jobs/"]) {
    await assertProblem(await api.request("GET", path), 404, "not_found");
  }
});

Deno.test("a method that a path does not have is 405 with Allow", async () => {
  await using api = await openApi({ running: false });
  const response = await api.request("PUT", JOBS, { json: {} });
  assertEquals(response.headers.get("Allow"), "GET, HEAD, OPTIONS, POST");
  await assertProblem(response, 405, "method_not_allowed");
  assertEquals(
    (await api.request("POST", `${JOBS}/1`, { json: {} })).headers.get("Allow"),
    "DELETE, GET, HEAD, OPTIONS, PATCH",
  );
});

Deno.test("OPTIONS says what a path allows, HEAD answers as GET without a body", async () => {
  await using api = await openApi({ running: false });
  const options = await api.request("OPTIONS", JOBS);
  assertEquals([options.status, options.headers.get("Allow")], [204, "GET, HEAD, OPTIONS, POST"]);
  assertEquals(options.headers.get("Access-Control-Allow-Origin"), null);
  const head = await api.request("HEAD", JOBS);
  assertEquals([head.status, await head.text(), head.headers.get("X-Total-Count")], [200, "", "0"]);
});

Deno.test("what fails unexpectedly is 500 without our insides, and logged", async () => {
  await using api = await openApi({ running: false });
  api.schedulers.hosts = () => {
    throw new TypeError("secret detail of the code");
  };
  const problem = await assertProblem(await api.request("GET", "/api/v1/peers"), 500, "unknown");
  assert(!JSON.stringify(problem).includes("secret detail"));
  assert(api.logged.some((line) => line.includes("secret detail")));
});

Deno.test("a name that only resolves to loopback is refused", async () => {
  await using api = await openApi({ running: false });
  for (const base of ["http://evil.example.com:8080", "http://10.0.0.1", "http://127.0.0.1.evil.example.com"]) {
    await assertProblem(await api.request("GET", `${base}${JOBS}`), 403, "forbidden");
  }
  for (const base of ["http://localhost:1", "http://127.0.0.1:2", "http://[::1]:3"]) {
    assertEquals((await api.request("GET", `${base}${JOBS}`)).status, 200);
  }
});

Deno.test("state is not changed for a page of another origin", async () => {
  await using api = await openApi({ running: false });
  const json = fileJob("http://h/a");
  for (const origin of ["http://evil.example.com", "null", "http://127.0.0.1:9999"]) {
    await assertProblem(await api.request("POST", JOBS, { json, headers: { Origin: origin } }), 403, "forbidden");
  }
  assertEquals((await api.request("POST", JOBS, { json, headers: { Origin: "http://127.0.0.1:8080" } })).status, 200);
  const upgrade = { Upgrade: "websocket", Origin: "http://evil.example.com" };
  await assertProblem(await api.request("GET", "/api/v1/scheduler/connect", { headers: upgrade }), 403, "forbidden");
});

Deno.test("with authentication every route is closed but the health checks", async () => {
  await using api = await openApi({ auth: true, running: false });
  const closed = [
    JOBS,
    "/api/v1/scheduler-clusters",
    "/api/v1/schedulers",
    "/api/v1/peers",
    "/api/v1/seed-peers",
    "/api/v1/tasks",
    "/api/v1/personal-access-tokens",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/nothing",
  ];
  for (const path of closed) {
    const response = await api.request("GET", path);
    assertMatch(response.headers.get("WWW-Authenticate") ?? "", /^Bearer /);
    await assertProblem(response, 401, "unauthorized");
    assert((await api.request("GET", path, bearer(ADMIN_TOKEN))).status !== 401);
  }
  for (const path of ["/healthy", "/readyz"]) assertEquals((await api.request("GET", path)).status, 200);
});

Deno.test("a wrong method or body does not tell a stranger more than 401", async () => {
  await using api = await openApi({ auth: true, running: false });
  await assertProblem(await api.request("PUT", JOBS, { json: {} }), 401, "unauthorized");
  await assertProblem(await api.request("POST", JOBS, { body: "{", headers: JSON_TYPE }), 401, "unauthorized");
});

Deno.test("the join token lists schedulers and nothing else", async () => {
  await using api = await openApi({ auth: true, running: false });
  assertEquals((await api.request("GET", "/api/v1/schedulers", bearer(JOIN_TOKEN))).status, 200);
  const refused = await api.request("GET", JOBS, bearer(JOIN_TOKEN));
  assertMatch(refused.headers.get("WWW-Authenticate") ?? "", /insufficient_scope.*scope="job"/);
  await assertProblem(refused, 403, "forbidden");
});

Deno.test("a token allows what its scopes say, until it is revoked or expires", async () => {
  await using api = await openApi({ auth: true, running: false });
  const made = await (await api.request("POST", "/api/v1/personal-access-tokens", {
    json: { name: "ci", scopes: ["job"], expires_at: new Date(1_900_000_060_000).toISOString() },
    ...{ headers: { ...bearer(ADMIN_TOKEN).headers, ...JSON_TYPE } },
  })).json();
  assertEquals((await api.request("GET", JOBS, bearer(made.token))).status, 200);
  assertEquals((await api.request("GET", "/api/v1/scheduler-clusters", bearer(made.token))).status, 200);
  const create = { json: { name: "x" }, headers: { ...bearer(made.token).headers, ...JSON_TYPE } };
  assertEquals((await api.request("POST", "/api/v1/scheduler-clusters", create)).status, 403);
  assertEquals((await api.request("GET", "/api/v1/personal-access-tokens", bearer(made.token))).status, 403);
  await api.clock.advance(60_001);
  assertEquals((await api.request("GET", JOBS, bearer(made.token))).status, 401);
  await api.request("DELETE", `/api/v1/personal-access-tokens/${made.id}`, bearer(ADMIN_TOKEN));
  assertEquals((await api.request("GET", JOBS, bearer(made.token))).status, 401);
});

Deno.test("wrong tokens are slowed down for the address they come from", async () => {
  await using api = await openApi({ auth: true, running: false });
  for (let count = 0; count < 10; count++) {
    assertEquals((await api.request("GET", JOBS, { ...bearer(`wrong-${count}`), remoteIp: "10.0.0.9" })).status, 401);
  }
  const refused = await api.request("GET", JOBS, { ...bearer(ADMIN_TOKEN), remoteIp: "10.0.0.9" });
  assertEquals(refused.headers.get("Retry-After"), "60");
  await assertProblem(refused, 429, "too_many_requests");
  assertEquals((await api.request("GET", JOBS, { ...bearer(ADMIN_TOKEN), remoteIp: "10.0.0.8" })).status, 200);
  await api.clock.advance(60_000);
  assertEquals((await api.request("GET", JOBS, { ...bearer(ADMIN_TOKEN), remoteIp: "10.0.0.9" })).status, 200);
});

Deno.test("a host's WebSocket passes with its token, or without one to be asked later, not with a wrong one", async () => {
  await using api = await openApi({ auth: true, running: false });
  const path = "/api/v1/scheduler/connect";
  const upgrade = (headers: Record<string, string>) =>
    api.request("GET", path, { headers: { Upgrade: "websocket", ...headers }, remoteIp: "10.0.0.7" });
  assertEquals(await (await upgrade(bearer(JOIN_TOKEN).headers)).text(), "upgraded 10.0.0.7");
  assertEquals((await upgrade({})).status, 200);
  assertEquals((await upgrade(bearer("wrong").headers)).status, 401);
  assertEquals((await api.request("GET", path, bearer(JOIN_TOKEN))).status, 400);
});

Deno.test("the OpenAPI document is complete: each route, its schemas, no dangling reference", async () => {
  await using api = await openApi({ running: false });
  api.schedulers.hostList = [host("a")];
  const document = await (await api.request("GET", "/openapi.json")).json();
  assertEquals(document.openapi, "3.1.0");
  const described = Object.entries<Record<string, unknown>>(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`)
  );
  const undescribed = ["/docs", "/docs/:file", "/openapi.json", "/api/v1/scheduler/connect"];
  const served = api.app.routes.filter(({ method, path }) => method !== "ALL" && !undescribed.includes(path))
    .map(({ method, path }) => `${method} ${path}`);
  assertEquals([...new Set(described)].sort(), [...new Set(served)].sort());
  const text = JSON.stringify(document);
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    assert(document.components.schemas[name!] !== undefined, `${name} is referred to and missing`);
  }
  assert(document.components.schemas.PreheatImageArgs !== undefined && document.components.schemas.Job !== undefined);
});
