import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { chooseEvictions, type Evictable } from "../../../../peer/storage/gc.ts";

const NO_BOUND = { taskExpireTimeMs: 0, diskGCThresholdBytes: 0, diskGCThresholdPercent: 0 };
const ROOMY = { nowMs: 1000, freeBytes: 1000, totalBytes: 1000 };

/** Tasks drawn as text: name, last use, bytes, `!` when open. */
function draw(text: string): Evictable[] {
  return text.split(" ").filter((word) => word !== "").map((word) => {
    const [taskId = "", lastUsedAtMs, storedBytes] = word.replace("!", "").split(":");
    return {
      taskId,
      lastUsedAtMs: Number(lastUsedAtMs),
      storedBytes: Number(storedBytes),
      open: word.endsWith("!"),
    };
  });
}

const ROWS: [claim: string, tasks: string, policy: object, disk: object, chosen: string][] = [
  ["nothing of an empty store", "", { diskGCThresholdBytes: 1 }, {}, ""],
  ["nothing without bounds", "a:0:500 b:1:500", {}, { freeBytes: 0 }, ""],
  ["what was idle for longer than the expire time", "a:899:1 b:900:1", { taskExpireTimeMs: 100 }, {}, "a"],
  ["no expired task that is open", "a:1:1! b:2:1", { taskExpireTimeMs: 100 }, {}, "b"],
  ["nothing at the byte threshold", "a:1:50 b:2:50", { diskGCThresholdBytes: 100 }, {}, ""],
  ["the least recently used above the byte threshold", "b:2:50 a:1:50 c:3:1", { diskGCThresholdBytes: 100 }, {}, "a"],
  ["as many as it takes", "a:1:10 b:2:10 c:3:100", { diskGCThresholdBytes: 100 }, {}, "a b"],
  ["the next one for an open one", "a:1:50! b:2:50 c:3:50", { diskGCThresholdBytes: 100 }, {}, "b"],
  ["everything that is not open when that does not suffice", "a:1:90! b:2:1", { diskGCThresholdBytes: 10 }, {}, "b"],
  ["nothing at the percent threshold", "a:1:50", { diskGCThresholdPercent: 90 }, { freeBytes: 100 }, ""],
  ["above the percent threshold", "a:1:50 b:2:50", { diskGCThresholdPercent: 90 }, { freeBytes: 99 }, "a"],
  [
    "for the tighter of two thresholds",
    "a:1:10 b:2:10 c:3:10",
    { diskGCThresholdBytes: 25, diskGCThresholdPercent: 90 },
    { freeBytes: 85 },
    "a b",
  ],
  [
    "expired ones first, and counts their bytes",
    "a:1:60 b:950:30 c:960:30",
    { taskExpireTimeMs: 100, diskGCThresholdBytes: 60 },
    {},
    "a",
  ],
  ["nothing from the future", "a:5000:1", { taskExpireTimeMs: 100 }, {}, ""],
];

for (const [claim, tasks, policy, disk, chosen] of ROWS) {
  Deno.test(`chooseEvictions() names ${claim}`, () => {
    const result = chooseEvictions(draw(tasks), { ...NO_BOUND, ...policy }, { ...ROOMY, ...disk });
    assertEquals(result.join(" "), chosen);
  });
}

Deno.test("chooseEvictions() never names an open task, and stops when the threshold holds", () => {
  const task = fc.record({
    taskId: fc.uuid(),
    lastUsedAtMs: fc.nat(1000),
    storedBytes: fc.nat(100),
    open: fc.boolean(),
  });
  fc.assert(fc.property(fc.uniqueArray(task, { selector: ({ taskId }) => taskId }), fc.nat(1000), (tasks, bytes) => {
    const policy = { ...NO_BOUND, diskGCThresholdBytes: bytes + 1 };
    const chosen = new Set(chooseEvictions(tasks, policy, ROOMY));
    const left = tasks.filter(({ taskId }) => !chosen.has(taskId));
    const leftBytes = left.reduce((sum, { storedBytes }) => sum + storedBytes, 0);
    const noneOpen = tasks.every(({ taskId, open }) => !open || !chosen.has(taskId));
    return noneOpen && (leftBytes <= bytes + 1 || left.every(({ open }) => open));
  }));
});
