import { assertEquals } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import type { HostMessage } from "../../../../peer/core/wire/scheduler.ts";
import { Orders } from "../../../../peer/scheduler_client/orders.ts";
import type { TaskRequest, TaskRun } from "../../../../peer/task/task.ts";

const TASK = { task_id: "a".repeat(64), url: "http://origin/f", tag: "t", filter: "", headers: { "X-A": "1" } };

/** Tasks whose outcome the test decides. */
function tasks(finished: (request: TaskRequest, signal: AbortSignal) => Promise<unknown>) {
  const seen = { started: [] as TaskRequest[], dropped: [] as string[], disposed: 0 };
  return {
    seen,
    start(request: TaskRequest, { signal }: { signal: AbortSignal }): TaskRun {
      seen.started.push(request);
      const done = finished(request, signal);
      done.catch(() => {});
      return {
        taskId: TASK.task_id,
        progress: () => ({ total: 10, done: 10, fromLocal: 0, fromPeers: 4, fromSource: 6, peers: 1 }),
        onProgress: () => () => {},
        finished: done as TaskRun["finished"],
        async *read() {},
        [Symbol.asyncDispose]: () => Promise.resolve(void seen.disposed++),
      };
    },
    drop: (taskId: string) => Promise.resolve(void seen.dropped.push(taskId)),
  };
}

function states(sent: HostMessage[]): string[] {
  return sent.flatMap((message) => message.type === "order_progress" ? [message.state] : []);
}

Deno.test("a preheat runs the task with its headers and reports the end", async () => {
  const fake = tasks(() => Promise.resolve());
  const sent: HostMessage[] = [];
  {
    await using orders = new Orders({ tasks: fake, log: silentLogger });
    orders.handle({ type: "order", order_id: "1", kind: "preheat", task: TASK }, (message) => sent.push(message));
    while (orders.activeCount > 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  assertEquals(states(sent), ["running", "success"]);
  assertEquals(sent.at(-1), {
    type: "order_progress",
    order_id: "1",
    state: "success",
    content_length: 10,
    done: 10,
    from_source: 6,
    from_peers: 4,
  });
  assertEquals(fake.seen.started[0]!.headers, [["X-A", "1"]]);
  assertEquals(fake.seen.disposed, 1);
});

Deno.test("a preheat that fails reports the code and the reason", async () => {
  const sent: HostMessage[] = [];
  {
    await using orders = new Orders({
      tasks: tasks(() => Promise.reject(new LacewingError("source_not_found", "404"))),
      log: silentLogger,
    });
    orders.handle({ type: "order", order_id: "1", kind: "preheat", task: TASK }, (message) => sent.push(message));
    while (orders.activeCount > 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  const last = sent.at(-1)!;
  assertEquals(last.type === "order_progress" && last.error, { code: "source_not_found", message: "404" });
});

Deno.test("a cancelled preheat ends as a failure, an unknown one is ignored", async () => {
  const sent: HostMessage[] = [];
  await using orders = new Orders({
    tasks: tasks((_, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
    ),
    log: silentLogger,
  });
  orders.handle({ type: "cancel_order", order_id: "unknown" }, () => {});
  orders.handle({ type: "order", order_id: "1", kind: "preheat", task: TASK }, (message) => sent.push(message));
  orders.handle({ type: "order", order_id: "1", kind: "preheat", task: TASK }, (message) => sent.push(message));
  orders.handle({ type: "cancel_order", order_id: "1" }, () => {});
  while (orders.activeCount > 0) await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(states(sent), ["running", "failure"]);
});

Deno.test("an order to drop a task drops it", async () => {
  const fake = tasks(() => Promise.resolve());
  await using orders = new Orders({ tasks: fake, log: silentLogger });
  orders.handle({ type: "order", order_id: "1", kind: "drop", task: TASK }, () => {});
  while (orders.activeCount > 0) await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(fake.seen.dropped, [TASK.task_id]);
});
