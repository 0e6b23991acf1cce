import { assert, assertEquals } from "@std/assert";
import { SentMarks } from "../../../../peer/transfer/sent_marks.ts";

Deno.test("SentMarks has one mark for each piece of each generation of each task", () => {
  const marks = new SentMarks();
  marks.of("task", "one", 3).isSent = true;
  assertEquals(marks.of("task", "one", 3).isSent, true);
  for (const other of [marks.of("task", "one", 4), marks.of("task", "two", 3), marks.of("other", "one", 3)]) {
    assertEquals(other.isSent, false);
  }
});

Deno.test("SentMarks forgets what was asked for the longest ago", () => {
  const marks = new SentMarks(2);
  const first = marks.of("task", "one", 1);
  first.isSent = true;
  marks.of("task", "one", 2).isSent = true;
  marks.of("task", "one", 1);
  marks.of("task", "one", 3);
  assert(marks.of("task", "one", 1) === first);
  assertEquals(marks.of("task", "one", 2).isSent, false);
});
