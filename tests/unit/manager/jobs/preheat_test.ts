import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { failureOf } from "../../../../manager/jobs/preheat.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { complete, failing, forever, host, item } from "../fakes.ts";
import { fileJob, imageJob, openBench } from "./bench.ts";

const merge = (...all: ReturnType<typeof complete>[]) => ({ ...all[0]!, hosts: all.flatMap(({ hosts }) => hosts) });

Deno.test("failureOf() is null only when every host has it", () => {
  assertEquals(failureOf("http://h/a", complete()), null);
  assertEquals(failureOf("http://h/a", { ...complete(), hosts: [] })?.code, "unavailable");
});

Deno.test("failureOf() names what cannot pass before what may, and counts the others", () => {
  const error = failureOf(
    "http://h/a",
    merge(complete(1, "z"), failing("network", "reset", "a"), failing("disk_full", "no space", "b")),
  );
  assertEquals(error?.code, "disk_full");
  assertMatch(error!.message, /http:\/\/h\/a: host host-b \(10\.0\.0\.1\): no space \(and 1 more hosts\)/);
});

Deno.test("failureOf() keeps a code that nobody knows as unknown", () => {
  assertEquals(failureOf("http://h/a", failing("no_such_code", "x"))?.code, "unknown");
});

Deno.test("clusters with the same platforms ask the registry once", async () => {
  await using bench = await openBench();
  const { id } = await bench.store.clusters.create({ name: "two" });
  const { id: third } = await bench.store.clusters.create({ name: "three" });
  bench.schedulers.hostList = [
    host("a"),
    host("b", { cluster_id: id }),
    host("c", { cluster_id: third, platform: "linux/arm64" }),
  ];
  bench.resolver.answer = () => ({ items: [item("http://h/l")], skipped: [] });
  const job = await bench.service.get(await bench.create(imageJob()));
  assertEquals(job.status, "SUCCESS");
  assertEquals(bench.resolver.requests.map(({ platforms }) => platforms), [["linux/amd64"], ["linux/arm64"]]);
});

Deno.test("a registry that is down for a moment is asked again", async () => {
  await using bench = await openBench({ retries: 1 });
  bench.schedulers.hostList = [host("a")];
  bench.resolver.answer = () => {
    throw new LacewingError("network", "connection refused");
  };
  const id = await bench.create(imageJob());
  bench.resolver.answer = () => ({ items: [item("http://h/l")], skipped: [] });
  await bench.clock.advance(1000);
  assertEquals((await bench.service.get(id)).status, "SUCCESS");
});

Deno.test("right after a start any host is waited for, but not for ever", async () => {
  await using bench = await openBench({ hostsBackAtMs: 10_000 });
  const first = await bench.create(fileJob("http://h/a"));
  await bench.clock.advance(5000);
  assertEquals((await bench.service.get(first)).status, "PENDING");
  bench.schedulers.hostList = [host("a")];
  await bench.clock.advance(100);
  assertEquals((await bench.service.get(first)).status, "SUCCESS");
  bench.schedulers.hostList = [];
  const second = await bench.create(fileJob("http://h/b"));
  await bench.clock.advance(5000);
  assertEquals((await bench.service.get(second)).status, "FAILURE");
});

Deno.test("run() rejects with the signal's reason and leaves nothing running", async () => {
  await using bench = await openBench({ running: false });
  bench.schedulers.hostList = [host("a")];
  bench.schedulers.answer = forever;
  await bench.create(fileJob(["http://h/a", "http://h/b"]));
  const [job] = await bench.store.jobs.claim("a", { leaseMs: 1000, limit: 1 });
  const stop = new AbortController();
  const reason = new DOMException("enough", "AbortError");
  const run = assertRejects(() => bench.runner.run(job!, stop.signal), DOMException, "enough");
  await bench.clock.advance(0);
  assertEquals(bench.schedulers.orders.length, 2);
  stop.abort(reason);
  await run;
  assertEquals((await bench.store.jobTasks.pending(job!.id, 1)).length, 2);
  assertEquals(bench.watch.live(job!.id).size, 0);
});
