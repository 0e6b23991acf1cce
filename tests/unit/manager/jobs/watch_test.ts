import { assertEquals } from "@std/assert";
import { JobWatch } from "../../../../manager/jobs/watch.ts";
import { complete } from "../fakes.ts";

Deno.test("progress is there while a task runs, and gone after", () => {
  const watch = new JobWatch();
  watch.progress(1, 10, complete());
  watch.progress(1, 11, complete());
  watch.progress(2, 20, complete());
  assertEquals([...watch.live(1).keys()], [10, 11]);
  watch.progress(1, 10, null);
  watch.progress(1, 11, null);
  assertEquals([watch.live(1).size, watch.live(2).size, watch.live(3).size], [0, 1, 0]);
});

Deno.test("listeners hear of their job only, until they stop", () => {
  const watch = new JobWatch();
  const heard: string[] = [];
  const stop = watch.onChange(1, () => heard.push("a"));
  const stopToo = watch.onChange(1, () => heard.push("b"));
  watch.changed(1);
  watch.changed(2);
  stop();
  watch.progress(1, 10, complete());
  stopToo();
  stopToo();
  watch.changed(1);
  assertEquals(heard, ["a", "b", "b"]);
});
