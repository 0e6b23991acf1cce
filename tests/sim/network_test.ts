// The virtual clock and network themselves: what the simulator's figures rest on.
import { assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import { seededRandom } from "../../peer/core/clock.ts";
import { EventQueue } from "./event_queue.ts";
import { Pipe, SharedLink } from "./links.ts";
import { Uplink } from "./uplink.ts";

/** Runs what `plan` asks for and says what ended when. */
function ends(plan: (queue: EventQueue, note: (name: string) => () => void) => void): [string, number][] {
  const queue = new EventQueue();
  const log: [string, number][] = [];
  plan(queue, (name) => () => log.push([name, queue.nowMs]));
  queue.run(Infinity, () => false);
  return log.map(([name, atMs]) => [name, Math.round(atMs * 1000) / 1000]);
}

Deno.test("events come in order of time, at one time in order of asking", () => {
  const queue = new EventQueue();
  const random = seededRandom(1);
  const seen: [number, number][] = [];
  for (let order = 0; order < 5_000; order++) {
    const timeMs = Math.floor(random() * 100);
    queue.at(timeMs, () => seen.push([queue.nowMs, order]));
  }
  queue.run(Infinity, () => false);
  assertEquals(seen, [...seen].sort(([a, first], [b, second]) => a - b || first - second));
  assertEquals([seen.length, queue.size], [5_000, 0]);
});

Deno.test("an event in the past comes now, one at no time is refused, a run ends in time", () => {
  const log = ends((queue, note) => queue.at(5, () => queue.at(1, note("late"))));
  assertEquals(log, [["late", 5]]);
  const queue = new EventQueue();
  assertThrows(() => queue.at(NaN, () => {}), RangeError);
  queue.at(10, () => {});
  queue.run(9, () => false);
  assertEquals(queue.size, 1);
});

Deno.test("transfers share a link: each gets its part, whoever comes and goes", () => {
  const log = ends((queue, note) => {
    const link = new SharedLink(queue, 10);
    link.start(100, note("a"));
    queue.at(5, () => link.start(100, note("b")));
    queue.at(7, () => link.stop(link.start(1000, note("never"))));
  });
  assertEquals(log, [["a", 15], ["b", 20]]);
});

Deno.test("a transfer stopped gives its part to the others, and what it got was sent", () => {
  const queue = new EventQueue();
  const link = new SharedLink(queue, 10);
  let endedAtMs = 0;
  const flow = link.start(100, () => {});
  link.start(100, () => endedAtMs = queue.nowMs);
  queue.at(10, () => link.stop(flow));
  queue.run(Infinity, () => false);
  assertAlmostEquals(endedAtMs, 15, 1e-6);
  assertAlmostEquals(link.sentBytes, 150, 1e-6);
});

Deno.test("a pipe delays only what comes faster than its rate", () => {
  const pipe = new Pipe(10);
  assertEquals([pipe.pass(100, 0), pipe.pass(100, 0), pipe.pass(100, 50)], [10, 20, 60]);
  assertEquals(new Pipe(Infinity).pass(100, 7), 7);
});

Deno.test("an uplink sends in few slots, the neediest of those who wait next, and refuses who finds no room", () => {
  const log = ends((queue, note) => {
    const uplink = new Uplink(queue, { rate: 1, slots: 1 });
    const upload = (hostId: string, need: number, length: number) => ({
      hostId,
      need,
      mark: { isSent: false },
      length,
      waitsSinceMs: 0,
      onSent: note(hostId),
      onRefused: note(`${hostId} refused`),
    });
    for (const [hostId, need] of [["a", 1], ["b", 1], ["c", 9], ["d", 5], ["e", 0], ["f", 9]] as const) {
      uplink.request(upload(hostId, need, 900));
    }
  });
  // One slot: two may wait, and the three others ask elsewhere.
  assertEquals(log, [
    ["d refused", 0],
    ["e refused", 0],
    ["f refused", 0],
    ["a", 900],
    ["c", 1800],
    ["b", 2700],
  ]);
});

Deno.test("a request that is cancelled is not sent, waiting or not", () => {
  const log = ends((queue, note) => {
    const uplink = new Uplink(queue, { rate: 1, slots: 1 });
    const uploads = ["a", "b", "c"].map((hostId) => ({
      hostId,
      need: 1,
      mark: { isSent: false },
      length: 100,
      waitsSinceMs: 0,
      onSent: note(hostId),
      onRefused: note(`${hostId} refused`),
    }));
    for (const upload of uploads) uplink.request(upload);
    queue.at(10, () => uplink.cancel(uploads[1]!));
    queue.at(20, () => uplink.cancel(uploads[0]!));
  });
  assertEquals(log, [["c", 120]]);
});
