import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { jobEvents } from "../../../../manager/jobs/events.ts";
import type { JobState } from "../../../../manager/jobs/job.ts";
import { JobWatch } from "../../../../manager/jobs/watch.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { FakeClock } from "../../peer/core/fake_clock.ts";

function open(read: () => Promise<{ status: JobState }>) {
  const [watch, clock, stop] = [new JobWatch(), new FakeClock(), new AbortController()];
  let ended = 0;
  const stream = jobEvents(1, { read, watch, clock, signal: stop.signal, onEnd: () => ended += 1 });
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  return { watch, clock, stop, reader, ended: () => ended };
}

Deno.test("changes within half a second are one event", async () => {
  let reads = 0;
  const { watch, clock, reader, stop, ended } = open(() => Promise.resolve({ status: "PENDING", read: ++reads }));
  assertMatch((await reader.read()).value!, /"read":1\}\n\n$/);
  watch.changed(1);
  watch.changed(1);
  const next = reader.read();
  await clock.advance(499);
  assertEquals(reads, 1);
  await clock.advance(1);
  assertMatch((await next).value!, /"read":2/);
  stop.abort();
  assertEquals([(await reader.read()).done, clock.sleeping, ended()], [true, 0, 1]);
});

Deno.test("a quiet stream is kept alive by a comment", async () => {
  const { clock, reader, stop } = open(() => Promise.resolve({ status: "PENDING" }));
  await reader.read();
  await clock.advance(500);
  await clock.advance(15_000);
  assertMatch((await reader.read()).value!, /^: /);
  stop.abort();
  await reader.read();
});

Deno.test("a reader that leaves ends it, with nothing left behind", async () => {
  const { clock, reader, ended } = open(() => Promise.resolve({ status: "PENDING" }));
  await reader.read();
  await reader.cancel();
  await clock.advance(0);
  assertEquals([clock.sleeping, ended()], [0, 1]);
});

Deno.test("a job that is removed ends the stream, another failure breaks it", async () => {
  const gone = open(() => Promise.reject(new LacewingError("not_found", "gone")));
  assertEquals((await gone.reader.read()).done, true);
  const broken = open(() => Promise.reject(new LacewingError("unavailable", "no database")));
  await assertRejects(() => broken.reader.read(), LacewingError, "no database");
});
