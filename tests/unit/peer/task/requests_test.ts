import { assertEquals } from "@std/assert";
import { parseRange } from "../../../../peer/core/range.ts";
import { Requests } from "../../../../peer/task/requests.ts";
import { Run } from "../../../../peer/task/run.ts";
import type { TaskRequest } from "../../../../peer/task/task.ts";
import { REQUEST } from "./engine_bench.ts";

function run(request: Partial<TaskRequest>): Run {
  const deps = {
    onDisposed() {},
    verify: () => Promise.reject(new Error("not asked")),
    isCurrent: () => Promise.resolve(true),
    hostName: (id: string) => id,
  };
  return new Run("task", { ...REQUEST, ...request }, deps, new AbortController().signal);
}

function requests(...asked: Partial<TaskRequest>[]): Requests {
  const all = new Requests();
  for (const request of asked) all.add(run(request));
  return all;
}

const RATES: [asked: number[], perTask: number, rate: number][] = [
  [[], 0, 0],
  [[], 10, 10],
  [[0], 0, 0],
  [[0], 10, 10],
  [[5], 0, 5],
  [[5], 10, 5],
  [[50], 10, 10],
  [[5, 7], 0, 7],
  [[7, 5], 0, 7],
  [[5, 0], 0, 0],
  [[0, 5], 10, 10],
  [[5, 7, 50], 10, 10],
];
for (const [asked, perTask, rate] of RATES) {
  Deno.test(`requests limited to [${asked}] with ${perTask} for the task pass ${rate} B/s`, () => {
    const all = requests(...asked.map((rateLimitBytesPerSecond) => ({ rateLimitBytesPerSecond })));
    assertEquals(all.rate(perTask), rate);
  });
}

const [WHOLE, PART] = [{ range: null }, { range: parseRange("0-9") }];
for (
  const [what, asked, partial] of [
    ["none", [], false],
    ["a whole one", [WHOLE], false],
    ["a part", [PART], true],
    ["two parts", [PART, PART], true],
    ["a part and a whole one", [PART, WHOLE], false],
  ] as const
) {
  Deno.test(`${what} asked for: ${partial ? "only a part" : "not only a part"} is wanted`, () => {
    assertEquals(requests(...asked).isPartial, partial);
  });
}

Deno.test("the origin may be read when one request lets it be", () => {
  assertEquals(requests().canSource, false);
  assertEquals(requests({ disableBackSource: true }).canSource, false);
  assertEquals(requests({ disableBackSource: true }, {}).canSource, true);
});

Deno.test("the origin gets the headers of the newest request that may read it", () => {
  const [old, fresh, silent] = ["old", "fresh", "silent"].map((value): TaskRequest["headers"] => [["x", value]]);
  assertEquals(requests().headers, []);
  assertEquals(requests({ headers: old }, { headers: fresh }).headers, fresh);
  assertEquals(requests({ headers: old }, { headers: silent, disableBackSource: true }).headers, old);
  assertEquals(requests({ headers: silent, disableBackSource: true }).headers, []);
});

Deno.test("a request that leaves counts no more, and leaves once", () => {
  const all = requests({ rateLimitBytesPerSecond: 5 });
  const fast = run({ rateLimitBytesPerSecond: 9 });
  all.add(fast);
  assertEquals([all.size, all.rate(0)], [2, 9]);
  assertEquals([all.delete(fast), all.delete(fast)], [true, false]);
  assertEquals([all.size, all.rate(0)], [1, 5]);
});

Deno.test("requests may leave while they are gone through", () => {
  const all = requests({}, {}, {});
  let count = 0;
  for (const each of all) {
    all.delete(each);
    count += 1;
  }
  assertEquals([count, all.size], [3, 0]);
});
