// covers: manager/routes/docs.ts manager/metrics.ts
import { assert, assertEquals, assertMatch } from "@std/assert";
import { host } from "../fakes.ts";
import { fileJob } from "../jobs/bench.ts";
import { openApi } from "./api.ts";

Deno.test("/healthy is OK as text", async () => {
  await using api = await openApi({ running: false });
  const response = await api.request("GET", "/healthy");
  assertEquals([response.status, await response.text()], [200, "OK"]);
  assertMatch(response.headers.get("content-type") ?? "", /^text\/plain/);
});

Deno.test("/readyz is 200 while the manager serves, 503 when it stops or the database is gone", async () => {
  await using api = await openApi({ running: false });
  assertEquals(await (await api.request("GET", "/readyz")).json(), { status: "ready" });
  api.stopping.abort();
  const stopping = await api.request("GET", "/readyz");
  assertEquals([stopping.status, stopping.headers.get("Retry-After")], [503, "5"]);
  await using other = await openApi({ running: false });
  await other.store[Symbol.asyncDispose]();
  assertEquals((await other.request("GET", "/readyz")).status, 503);
});

Deno.test("/metrics counts jobs, hosts, tasks and requests", async () => {
  await using api = await openApi({ running: false });
  api.schedulers.hostList = [host("a"), host("b"), host("c", { type: "seed" })];
  await api.request("POST", "/api/v1/jobs", { json: fileJob("http://h/a") });
  await api.request("GET", "/api/v1/jobs/1");
  await api.request("GET", "/api/v1/jobs/2");
  await api.request("GET", "/no/such/path");
  const response = await api.request("GET", "/metrics");
  const text = await response.text();
  assertMatch(response.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  for (
    const line of [
      'lacewing_manager_info{version="1.2.3"} 1',
      'lacewing_jobs{state="PENDING"} 1',
      'lacewing_jobs{state="SUCCESS"} 0',
      'lacewing_hosts{cluster="1",type="normal"} 2',
      'lacewing_hosts{cluster="1",type="seed"} 1',
      'lacewing_http_request_duration_seconds_count{method="GET",route="/api/v1/jobs/:id",status="200"} 1',
      'lacewing_http_request_duration_seconds_count{method="GET",route="/api/v1/jobs/:id",status="404"} 1',
      'lacewing_http_request_duration_seconds_count{method="GET",route="other",status="404"} 1',
    ]
  ) assert(text.includes(line + "\n"), `${line}\nis not in\n${text}`);
});

Deno.test("/docs is served from this machine alone", async () => {
  await using api = await openApi({ running: false });
  const page = await api.request("GET", "/docs");
  const html = await page.text();
  assertMatch(page.headers.get("Content-Security-Policy") ?? "", /default-src 'self'/);
  assert(!/https?:\/\//.test(html));
  for (const [, path] of html.matchAll(/(?:src|href)="(docs[^"]+)"/g)) {
    const file = await api.request("GET", `/${path}`);
    assertEquals(file.status, 200, path);
    assert((await file.arrayBuffer()).byteLength > 0);
  }
  for (const path of ["/docs/other.js", "/docs/..%2f..%2fdeno.json", "/docs/package.json", "/docs/toString"]) {
    assertEquals((await api.request("GET", path)).status, 404, path);
  }
});
