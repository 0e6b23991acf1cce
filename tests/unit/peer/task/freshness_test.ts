import { assertEquals } from "@std/assert";
import { type ErrorCode, LacewingError } from "../../../../peer/core/errors.ts";
import type { TaskMeta } from "../../../../peer/core/wire/scheduler.ts";
import { isStillAtOrigin, needsNoCheck } from "../../../../peer/task/freshness.ts";
import { FakeSource } from "../../../testutil/fake_source.ts";
import { storedContent } from "./stored_content.ts";

const MINUTE_MS = 60_000;
const URL_TEXT = "http://origin/f";
const BLOB = `http://origin/v2/a/blobs/sha256:${"a".repeat(64)}`;

/** A content on disk, last known to be fresh so long ago, and the origin that it came from. */
async function aged({ ageMs = 2 * MINUTE_MS, size = 40, meta = {} }: {
  ageMs?: number;
  size?: number;
  meta?: Partial<TaskMeta>;
} = {}) {
  let nowMs = Date.now() - ageMs;
  const content = await storedContent({ size, meta, now: () => nowMs });
  nowMs = Date.now();
  const source = new FakeSource(content.bytes);
  const ask = (url = URL_TEXT) =>
    isStillAtOrigin(content.task, { source, url, headers: [["x-a", "b"]], signal: new AbortController().signal });
  return { ...content, source, ask };
}

Deno.test("an answer holds for a minute", async () => {
  assertEquals(needsNoCheck((await aged({ ageMs: MINUTE_MS - 5_000 })).task, URL_TEXT), true);
  const { task, ask } = await aged({ ageMs: MINUTE_MS + 1 });
  assertEquals(needsNoCheck(task, URL_TEXT), false);
  await ask();
  assertEquals(needsNoCheck(task, URL_TEXT), true);
});

Deno.test("the origin is asked for one byte of this very version", async () => {
  const { ask, source } = await aged();
  assertEquals(await ask(), true);
  assertEquals(source.requests, [{
    url: URL_TEXT,
    headers: [["x-a", "b"]],
    range: { offset: 0, length: 1 },
    expect: { etag: '"1"' },
  }]);
});

Deno.test("a content that changed is not fresh, and is asked about again", async () => {
  const { source, ask, task } = await aged();
  source.version = { etag: '"2"' };
  assertEquals([await ask(), needsNoCheck(task, URL_TEXT), await ask()], [false, false, false]);
});

Deno.test("another length under the same mark is not fresh", async () => {
  const { source, bytes, ask } = await aged();
  source.bytes = bytes.slice(1);
  assertEquals(await ask(), false);
});

Deno.test("an origin that does not say its length is believed by its mark", async () => {
  const { source, ask } = await aged();
  source.chunked = true;
  assertEquals(await ask(), true);
});

Deno.test("an empty content is asked for without a range", async () => {
  const { source, ask } = await aged({ size: 0 });
  assertEquals([await ask(), source.requests[0]!.range], [true, null]);
});

const KEPT: ErrorCode[] = [
  "network",
  "timeout",
  "source_failed",
  "source_not_found",
  "source_refused",
  "tls",
  "policy",
];
for (const code of KEPT) {
  Deno.test(`an origin's ${code} leaves the content as it is, and does not count as an answer`, async () => {
    const { source, ask, task } = await aged();
    source.failures = [new LacewingError(code, "no")];
    assertEquals([await ask(), needsNoCheck(task, URL_TEXT)], [true, false]);
  });
}

for (const code of ["content_changed", "range_not_satisfiable"] as const) {
  Deno.test(`an origin's ${code} means that the content is another one`, async () => {
    const { source, ask } = await aged();
    source.failures = [new LacewingError(code, "no")];
    assertEquals(await ask(), false);
  });
}

Deno.test("a content that its URL fixes, or that has no mark, is never asked about", async () => {
  const blob = await aged();
  assertEquals([needsNoCheck(blob.task, BLOB), await blob.ask(BLOB), blob.source.requests.length], [true, true, 0]);
  const unmarked = await aged({ meta: { etag: undefined } });
  assertEquals([needsNoCheck(unmarked.task, URL_TEXT), await unmarked.ask()], [true, true]);
  assertEquals(unmarked.source.requests, []);
});

Deno.test("a task that stops does not wait for an origin that hangs", async () => {
  const { task } = await aged();
  const stop = new AbortController();
  const hangs = {
    open: (_request: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  };
  const asked = isStillAtOrigin(task, { source: hangs, url: URL_TEXT, headers: [], signal: stop.signal });
  stop.abort(new DOMException("The task was stopped", "AbortError"));
  assertEquals([await asked, needsNoCheck(task, URL_TEXT)], [true, false]);
});
