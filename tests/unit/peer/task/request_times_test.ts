import { assertEquals } from "@std/assert";
import { RequestTimes } from "../../../../peer/task/request_times.ts";

for (
  const { took, lateAfterMs } of [
    { took: [], lateAfterMs: 2_000 },
    { took: Array(7).fill(500), lateAfterMs: 2_000 },
    { took: Array(8).fill(500), lateAfterMs: 1_000 },
    { took: Array(20).fill(1), lateAfterMs: 200 },
    { took: [...Array(19).fill(300), 60_000], lateAfterMs: 600 },
    { took: [...Array(17).fill(300), ...Array(3).fill(5_000)], lateAfterMs: 10_000 },
    { took: [...Array(64).fill(5_000), ...Array(64).fill(300)], lateAfterMs: 600 },
  ]
) {
  Deno.test(`after ${took.length} requests, the last of ${took.at(-1)} ms, one is late after ${lateAfterMs} ms`, () => {
    const times = new RequestTimes();
    for (const ms of took) times.took(ms);
    assertEquals(times.lateAfterMs, lateAfterMs);
  });
}
