/** One task's own rate beside the daemon's total. */
import { assertEquals } from "@std/assert";
import { RateLimiter } from "../../../../peer/core/rate_limit.ts";
import { Requests } from "../../../../peer/task/requests.ts";
import { Run } from "../../../../peer/task/run.ts";
import { piecesAtOnce, TaskRate } from "../../../../peer/task/task_rate.ts";
import { FakeClock } from "../core/fake_clock.ts";

const deps = {
  onDisposed() {},
  verify: () => Promise.reject(new Error("not asked")),
  hostName: (id: string) => id,
  isCurrent: () => Promise.resolve(true),
};

function requestAt(rateLimitBytesPerSecond: number): Run {
  return new Run(
    "task",
    {
      url: "http://origin.test/f",
      headers: [],
      tag: "",
      filter: "",
      digest: null,
      range: null,
      disableBackSource: false,
      rateLimitBytesPerSecond,
    },
    deps,
    new AbortController().signal,
  );
}

function rateOf(perTask: number, total = 0): { rate: TaskRate; requests: Requests; own: () => number | undefined } {
  const clock = new FakeClock();
  const requests = new Requests();
  const rate = new TaskRate({ clock, totalLimiter: new RateLimiter(clock, total) }, requests, perTask);
  return { rate, requests, own: () => rate.limiters[0]?.bytesPerSecond };
}

Deno.test("a task has its own limit and a share of the total", () => {
  const { rate } = rateOf(10, 20);
  assertEquals(rate.limiters.map(({ bytesPerSecond }) => bytesPerSecond), [10, 20]);
});

Deno.test("a task goes at the highest rate that its requests ask for, never above the daemon's for one task", () => {
  const { rate, requests, own } = rateOf(0);
  const slow = requestAt(5);
  for (const [run, expected] of [[slow, 5], [requestAt(8), 8], [requestAt(0), 0]] as const) {
    requests.add(run);
    rate.update();
    assertEquals(own(), expected);
  }
  rate.setPerTask(7);
  assertEquals(own(), 7);
  rate.setPerTask(0);
  assertEquals(own(), 0);
});

Deno.test("a task without requests has the daemon's limit for one task", () => {
  const { rate, requests, own } = rateOf(3);
  const run = requestAt(2);
  requests.add(run);
  rate.update();
  assertEquals(own(), 2);
  requests.delete(run);
  rate.update();
  assertEquals(own(), 3);
});

const KIB = 1024;
const AT_ONCE: [rates: number[], pieceLength: number, count: number][] = [
  [[], 256 * KIB, Infinity],
  [[0, 0], 256 * KIB, Infinity],
  [[100 * KIB, 0], 256 * KIB, 1],
  [[1], 16 * KIB * KIB, 1],
  [[0, 1024 * KIB], 256 * KIB, 4],
  [[100 * KIB * KIB, 1024 * KIB], 256 * KIB, 4],
  [[100 * KIB * KIB, 0], 16 * KIB * KIB, 6],
];
for (const [rates, pieceLength, count] of AT_ONCE) {
  Deno.test(`piecesAtOnce() is ${count} for pieces of ${pieceLength} B under limits of ${rates.join(" and ")} B/s`, () => {
    const limiters = rates.map((bytesPerSecond) => ({ bytesPerSecond, take: () => undefined }));
    assertEquals(piecesAtOnce(limiters, pieceLength), count);
  });
}
