import { assertEquals } from "@std/assert";
import { host } from "../fakes.ts";
import { openApi } from "./api.ts";

Deno.test("peers are the live hosts, in pages, by cluster and type", async () => {
  await using api = await openApi({ running: false });
  api.schedulers.hostList = [host("a"), host("b", { type: "seed" }), host("c", { cluster_id: 2 })];
  const ids = async (path: string) =>
    (await (await api.request("GET", `/api/v1/${path}`)).json()).map(({ id }: { id: string }) => id);
  assertEquals(await ids("peers"), ["a", "b", "c"]);
  assertEquals(await ids("peers?cluster_id=1&type=normal"), ["a"]);
  assertEquals(await ids("peers?page=2&per_page=2"), ["c"]);
  assertEquals(await ids("peers?page=9"), []);
  assertEquals(await ids("seed-peers"), ["b"]);
  assertEquals(await ids("seed-peers?cluster_id=2"), []);
});

Deno.test("tasks show who holds what", async () => {
  await using api = await openApi({ running: false });
  const holder = { id: "a", hostname: "host-a", ip: "10.0.0.1", complete: true, piece_count: 3 };
  api.schedulers.taskList = [{
    task_id: "1".repeat(64),
    url: "http://h/a",
    tag: "",
    filter: "",
    cluster_id: 1,
    meta: null,
    hosts: [holder],
  }];
  const response = await api.request("GET", "/api/v1/tasks");
  assertEquals(response.headers.get("X-Total-Count"), "1");
  assertEquals((await response.json())[0].hosts, [holder]);
  assertEquals(await (await api.request("GET", "/api/v1/tasks?cluster_id=2")).json(), []);
});

Deno.test("schedulers are addressed as the asking host reached the manager", async () => {
  await using api = await openApi({ running: false });
  const list = await (await api.request("GET", "http://localhost:9999/api/v1/schedulers")).json();
  assertEquals(list, [{ id: 1, url: "http://localhost:9999/ws" }]);
});

for (const query of ["peers?cluster_id=x", "peers?type=big", "tasks?per_page=1000", "seed-peers?page=0"]) {
  Deno.test(`GET /${query} is 422`, async () => {
    await using api = await openApi({ running: false });
    assertEquals((await api.request("GET", `/api/v1/${query}`)).status, 422);
  });
}
