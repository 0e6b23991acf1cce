/** The scheduler's process of `scale.ts`: serves hosts, and says what it has used for each line it is sent. */
import process from "node:process";
import { createSchedulerService } from "../../manager/scheduler/connection.ts";
import { systemClock } from "../../peer/core/clock.ts";
import { silentLogger } from "../../peer/core/log.ts";
import { coldWave } from "./config.ts";

if (import.meta.main) {
  const service = createSchedulerService({
    log: silentLogger,
    clock: systemClock,
    random: Math.random,
    clusters: () => [{ id: 1, is_default: true, scopes: {} }],
    joinToken: "",
  }, coldWave(2).scheduler);
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(JSON.stringify({ port })),
  }, (request) => service.handleUpgrade(request, "127.0.0.1"));
  for await (const _ of Deno.stdin.readable) {
    const { user, system } = process.cpuUsage();
    console.log(JSON.stringify({ rss: Deno.memoryUsage().rss, cpuMs: (user + system) / 1000 }));
  }
  await service[Symbol.asyncDispose]();
  await server.shutdown();
}
