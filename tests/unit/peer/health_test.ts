import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { LacewingError } from "../../../peer/core/errors.ts";
import { startHealthServer } from "../../../peer/health.ts";

const FIGURES = {
  tasks_active: 1,
  uploads_active: 2,
  uploaded_bytes: 3,
  source_bytes: 4,
  wasted_bytes: 5,
  stored_bytes: 6,
  free_bytes: 7,
  schedulers_up: 8,
  resident_bytes: 9,
  loop_stall_seconds: 0.01,
};
const LOCAL = { hostname: "127.0.0.1", port: 0 };

async function text(address: string, path: string, init?: RequestInit) {
  const response = await fetch(`http://${address}${path}`, init);
  return { status: response.status, headers: response.headers, body: await response.text() };
}

Deno.test("/healthz says that the daemon serves", async () => {
  await using server = startHealthServer(() => FIGURES, LOCAL);
  const { status, body } = await text(server.address, "/healthz");
  assertEquals([status, body], [200, "OK\n"]);
  assertEquals((await text(server.address, "/healthz", { method: "HEAD" })).status, 200);
});

Deno.test("/metrics gives every figure with type and help, read anew at each scrape", async () => {
  const figures = { ...FIGURES };
  await using server = startHealthServer(() => figures, LOCAL);
  const { status, headers, body } = await text(server.address, "/metrics");
  assertEquals(status, 200);
  assertMatch(headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  for (const [name, value] of Object.entries(FIGURES)) {
    assertMatch(body, new RegExp(`^# HELP lacewing_daemon_${name} \\w.+$`, "m"));
    assertMatch(body, new RegExp(`^# TYPE lacewing_daemon_${name} gauge$`, "m"));
    assertMatch(body, new RegExp(`^lacewing_daemon_${name} ${value}$`, "m"));
  }
  figures.uploaded_bytes = 12345;
  assertMatch((await text(server.address, "/metrics")).body, /^lacewing_daemon_uploaded_bytes 12345$/m);
});

for (
  const [method, path, status] of [
    ["GET", "/", 404],
    ["GET", "/healthz/x", 404],
    ["GET", "/metrics/", 404],
    ["POST", "/healthz", 405],
    ["DELETE", "/metrics", 405],
    ["PUT", "/nothing", 405],
  ] as const
) {
  Deno.test(`${method} ${path} is answered with ${status}`, async () => {
    await using server = startHealthServer(() => FIGURES, LOCAL);
    const answer = await text(server.address, path, { method });
    assertEquals(answer.status, status);
    assertEquals(answer.headers.get("allow"), status === 405 ? "GET, HEAD" : null);
    assert(!answer.body.includes("at "), "no stack trace");
  });
}

Deno.test("two servers of one process keep their figures apart", async () => {
  await using one = startHealthServer(() => ({ ...FIGURES, tasks_active: 11 }), LOCAL);
  await using two = startHealthServer(() => ({ ...FIGURES, tasks_active: 22 }), LOCAL);
  assertMatch((await text(one.address, "/metrics")).body, /^lacewing_daemon_tasks_active 11$/m);
  assertMatch((await text(two.address, "/metrics")).body, /^lacewing_daemon_tasks_active 22$/m);
});

Deno.test("a port that is taken is an error that names it, and the key to change", async () => {
  await using one = startHealthServer(() => FIGURES, LOCAL);
  const port = Number(one.address.split(":")[1]);
  const start = () => startHealthServer(() => FIGURES, { ...LOCAL, port });
  const error = assertThrows(start, LacewingError) as LacewingError;
  assertEquals(error.code, "network");
  assert(error.message.includes(one.address) && error.message.includes("health.tcpListen.port"), error.message);
});
