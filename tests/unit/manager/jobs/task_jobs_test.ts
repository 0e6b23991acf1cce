import { assertEquals } from "@std/assert";
import { jobSchema } from "../../../../manager/jobs/job_schemas.ts";
import type { TaskView } from "../../../../manager/scheduler/schedulers.ts";
import { host } from "../fakes.ts";
import { openBench } from "./bench.ts";

const ID = "c".repeat(64);

function held(...hosts: { id: string; complete: boolean; piece_count: number }[]): TaskView {
  return {
    task_id: ID,
    url: "http://h/a",
    tag: "",
    filter: "",
    cluster_id: 1,
    meta: { generation: "g", content_length: 1000, piece_length: 400, ranges: true },
    hosts: hosts.map((facts) => ({ ...facts, hostname: facts.id, ip: "10.0.0.1" })),
  };
}

Deno.test("get_task says who has it, how many pieces and bytes", async () => {
  await using bench = await openBench();
  bench.schedulers.taskList = [
    held({ id: "a", complete: true, piece_count: 3 }, { id: "b", complete: false, piece_count: 1 }),
  ];
  const job = await bench.service.get(await bench.create({ type: "get_task", args: { task_id: ID } }));
  assertEquals(job.status, "SUCCESS");
  const [task] = job.result!.clusters[0]!.tasks;
  assertEquals([task?.task_id, task?.content_length], [ID, 1000]);
  assertEquals(task?.hosts.map(({ id, state, piece_count, bytes }) => [id, state, piece_count, bytes]), [
    ["a", "SUCCESS", 3, 1000],
    ["b", "PENDING", 1, 400],
  ]);
  assertEquals(job.result?.bytes.done, 1400);
  jobSchema.parse(job);
});

Deno.test("get_task of what nobody has is a FAILURE that says so", async () => {
  await using bench = await openBench();
  const job = await bench.service.get(await bench.create({ type: "get_task", args: { url: "http://h/a" } }));
  assertEquals([job.status, job.result?.clusters[0]?.tasks[0]?.error?.code], ["FAILURE", "no_holder"]);
});

Deno.test("delete_task waits until the hosts have dropped it", async () => {
  await using bench = await openBench();
  bench.schedulers.taskList = [held({ id: "a", complete: true, piece_count: 3 })];
  const id = await bench.create({ type: "delete_task", args: { task_id: ID } });
  assertEquals([bench.schedulers.drops, (await bench.service.get(id)).status], [[[1, ID]], "PENDING"]);
  bench.schedulers.taskList = [];
  await bench.clock.advance(100);
  const job = await bench.service.get(id);
  assertEquals([job.status, job.result?.clusters[0]?.tasks[0]?.hosts[0]?.state], ["SUCCESS", "SUCCESS"]);
});

Deno.test("delete_task fails when a host keeps it, and names the host", async () => {
  await using bench = await openBench();
  bench.schedulers.taskList = [held({ id: "a", complete: true, piece_count: 3 })];
  const id = await bench.create({ type: "delete_task", args: { task_id: ID } });
  await bench.clock.advance(30_100);
  const job = await bench.service.get(id);
  assertEquals([job.status, job.result?.clusters[0]?.tasks[0]?.hosts.map(({ id }) => id)], ["FAILURE", ["a"]]);
});

Deno.test("delete_task of what nobody has is done", async () => {
  await using bench = await openBench();
  const job = await bench.service.get(await bench.create({ type: "delete_task", args: { task_id: ID } }));
  assertEquals(job.status, "SUCCESS");
});

Deno.test("a delete_task that runs out of time says so", async () => {
  await using bench = await openBench();
  bench.schedulers.taskList = [held({ id: "a", complete: true, piece_count: 3 })];
  const id = await bench.create({ type: "delete_task", args: { task_id: ID, timeout: 2 } });
  await bench.clock.advance(2000);
  const job = await bench.service.get(id);
  assertEquals([job.status, job.result?.clusters[0]?.tasks[0]?.error?.code], ["FAILURE", "timeout"]);
});

Deno.test("sync_peers lists the live hosts of each cluster", async () => {
  await using bench = await openBench();
  bench.schedulers.hostList = [host("a"), host("b")];
  const job = await bench.service.get(await bench.create({ type: "sync_peers" }));
  assertEquals(job.status, "SUCCESS");
  assertEquals((job.result!.clusters[0] as unknown as { hosts: { id: string }[] }).hosts.map(({ id }) => id), [
    "a",
    "b",
  ]);
  jobSchema.parse(job);
});
