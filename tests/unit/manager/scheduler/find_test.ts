/** Hosts ask over a real WebSocket who has a task, and which jobs it belongs to. */
import { assertEquals } from "@std/assert";
import { createSchedulerService } from "../../../../manager/scheduler/connection.ts";
import { seededRandom, systemClock } from "../../../../peer/core/clock.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import type { FoundJob, HostMessage, SchedulerMessage } from "../../../../peer/core/wire/scheduler.ts";
import { CONFIG, factsOf, metaOf, SPEC, TASK } from "./world.ts";

const CLUSTERS = [{ id: 1, is_default: true, scopes: {} }, { id: 2, is_default: false, scopes: { idc: "east" } }];
const OTHER = "9".repeat(64);

class Host {
  readonly #heard: SchedulerMessage[] = [];
  #wake = () => {};
  readonly closed = Promise.withResolvers<void>();

  private constructor(readonly socket: WebSocket) {
    socket.onmessage = ({ data }) => {
      this.#heard.push(JSON.parse(data));
      this.#wake();
    };
    socket.onclose = () => this.closed.resolve();
  }

  static async join(url: string, ...facts: Parameters<typeof factsOf>): Promise<Host> {
    const host = new Host(new WebSocket(url));
    await new Promise((resolve) => host.socket.onopen = resolve);
    host.say({ type: "hello", v: 1, host: factsOf(...facts) });
    await host.next("welcome");
    return host;
  }

  say(message: HostMessage): void {
    this.socket.send(JSON.stringify(message));
  }

  async find(find_id: number, task_ids: string[]) {
    this.say({ type: "find", find_id, task_ids });
    return await this.next("found");
  }

  async next<Type extends SchedulerMessage["type"]>(type: Type): Promise<Extract<SchedulerMessage, { type: Type }>> {
    while (true) {
      const at = this.#heard.findIndex((message) => message.type === type);
      if (at >= 0) return this.#heard.splice(at, 1)[0] as Extract<SchedulerMessage, { type: Type }>;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }
}

async function withService(
  jobsOf: (taskIds: readonly string[]) => Promise<FoundJob[]>,
  run: (join: (...facts: Parameters<typeof factsOf>) => Promise<Host>) => Promise<void>,
): Promise<void> {
  const hosts: Host[] = [];
  const deps = {
    log: silentLogger,
    clock: systemClock,
    random: seededRandom(1),
    clusters: () => CLUSTERS,
    joinToken: "",
  };
  const service = createSchedulerService({ ...deps, jobsOf }, CONFIG);
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    (request) => service.handleUpgrade(request, "127.0.0.1"),
  );
  try {
    await run(async (...facts) => {
      const host = await Host.join(`ws://127.0.0.1:${server.addr.port}/`, ...facts);
      hosts.push(host);
      return host;
    });
  } finally {
    await service[Symbol.asyncDispose]();
    await Promise.all(hosts.map(({ closed }) => closed.promise));
    await server.shutdown();
  }
}

Deno.test("a host that asks who has tasks hears of the holders of its own cluster, and of the jobs", async () => {
  const job = { task_id: TASK, job_id: 3, cluster_id: 9, job_state: "SUCCESS", state: "SUCCESS", host_count: 1 };
  const asked: string[][] = [];
  const jobsOf = (ids: readonly string[]) => {
    asked.push([...ids]);
    return Promise.resolve([job]);
  };
  await withService(jobsOf, async (join) => {
    const [a, b, east] = [await join("a"), await join("b"), await join("e", { idc: "east" })];
    b.say({ type: "held", tasks: [{ ...SPEC, meta: metaOf(4), piece_count: 3, complete: false }] });
    await b.find(1, [OTHER]);
    // Who takes part and has nothing yet is no holder.
    a.say({ type: "join", task: SPEC, piece_count: 0, can_source: true, anonymous: false, partial: false });
    await a.next("task");
    const { find_id, tasks, jobs } = await a.find(5, [TASK, OTHER]);
    assertEquals([find_id, jobs, asked.at(-1)], [5, [job], [TASK, OTHER]]);
    assertEquals(tasks.map(({ task_id, host_count }) => [task_id, host_count]), [[TASK, 1]]);
    const [holder] = tasks[0]?.hosts ?? [];
    assertEquals([holder?.host_id, holder?.complete, holder?.piece_count], ["b", false, 3]);
    assertEquals((await east.find(6, [TASK])).tasks, []);
  });
});

Deno.test("jobs that cannot be looked up leave the connection as it is", async () => {
  let isBroken = true;
  const jobsOf = () => isBroken ? Promise.reject(new Error("no database")) : Promise.resolve([]);
  await withService(jobsOf, async (join) => {
    const host = await join("a");
    host.say({ type: "find", find_id: 1, task_ids: [TASK] });
    host.say({ type: "join", task: SPEC, piece_count: 0, can_source: true, anonymous: false, partial: false });
    await host.next("task");
    isBroken = false;
    assertEquals((await host.find(2, [TASK])).find_id, 2);
  });
});
