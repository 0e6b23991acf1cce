import { assertEquals } from "@std/assert";
import { TreeReport } from "../../../../cli/recursive/tree_report.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

function stats(length: number, from: { peers?: number; local?: number } = {}) {
  const { peers = 0, local = 0 } = from;
  return {
    length,
    from_peers: peers,
    from_local: local,
    from_source: length - peers - local,
    peers: 1,
    verified: null,
  };
}

Deno.test("the summary tells files, bytes, time, and where they came from", () => {
  const report = new TreeReport();
  for (const length of [1024, 1024, 2048]) {
    report.done({ size: null }, stats(length, { peers: length / 2, local: length / 4 }));
  }
  report.unchanged({ size: null });
  report.failed("x", new LacewingError("file", "no"));
  assertEquals(
    report.summary(2000),
    "3 files, 4.0 KiB in 2.0 s (2.0 KiB/s), 50% from peers, 1.0 KiB from this host, 1.0 KiB from the origin, 1 unchanged, 1 failed",
  );
  assertEquals(new TreeReport().summary(0), "0 files, 0 B in 0 ms (0 B/s)");
});

Deno.test("the worst failure is the one with the highest exit code, and a defect above all", () => {
  const report = new TreeReport();
  assertEquals(report.worst(), null);
  report.failed("a", new LacewingError("source_not_found", "404"));
  report.failed("b", new LacewingError("file", "refused"));
  report.failed("c", new LacewingError("timeout", "late"));
  assertEquals([report.worst()?.code, report.worst()?.message], ["file", "Cannot take all: 3 failures, named above"]);
  report.failed("d", new TypeError("oops"));
  assertEquals(report.worst()?.code, "unknown");
  assertEquals(report.failures(), ["a: 404", "b: refused", "c: late", "d: unexpected: oops"]);
});

Deno.test("failures beyond a thousand are counted", () => {
  const report = new TreeReport();
  for (let index = 0; index < 1005; index++) report.failed(`f${index}`, new LacewingError("file", "no"));
  assertEquals([report.failures().length, report.failures().at(-1)], [1001, "and 5 more"]);
});

Deno.test("the progress adds up files under way and files done", () => {
  const report = new TreeReport();
  const [one, two] = [{ size: 100 }, { size: 50 }];
  report.found(one);
  report.found(two);
  report.progress(one, { total: 100, done: 40, fromPeers: 10 });
  report.progress(two, { total: 50, done: 5, fromPeers: 5 });
  const files = { done: 0, total: 2, isComplete: true };
  assertEquals(report.total(true), { total: 150, atLeast: 150, done: 45, fromPeers: 15, files });
  report.done(two, stats(50, { peers: 50 }));
  assertEquals(report.total(false), {
    total: null,
    atLeast: 150,
    done: 90,
    fromPeers: 60,
    files: { done: 1, total: 2, isComplete: false },
  });
  report.failed("x", new Error("no"), one);
  assertEquals(report.total(true).done, 50);
});

Deno.test("the total holds what is to be downloaded: not what is unchanged, and not what failed", () => {
  const report = new TreeReport();
  const [same, bad, good] = [{ size: 10 }, { size: 20 }, { size: 40 }];
  for (const file of [same, bad, good]) report.found(file);
  assertEquals(report.total(true).total, 70);
  report.unchanged(same);
  report.progress(bad, { total: 21, done: 7, fromPeers: 0 });
  assertEquals([report.total(true).total, report.total(true).done], [61, 7]);
  report.failed("bad", new Error("no"), bad);
  report.done(good, stats(40));
  const files = { done: 3, total: 3, isComplete: true };
  assertEquals(report.total(true), { total: 40, atLeast: 40, done: 40, fromPeers: 0, files });
});

Deno.test("files that tell no size leave the total open until their downloads tell it", () => {
  const report = new TreeReport();
  const [first, second, third] = [{ size: null }, { size: null }, { size: 5 }];
  for (const file of [first, second, third]) report.found(file);
  const sums = () => [report.total(true).total, report.total(true).atLeast];
  assertEquals(sums(), [null, 5]);
  report.progress(first, { total: 100, done: 30, fromPeers: 0 });
  assertEquals(sums(), [null, 105]);
  report.progress(second, { total: null, done: 3, fromPeers: 0 });
  assertEquals(sums(), [null, 108]);
  report.progress(second, { total: 50, done: 4, fromPeers: 0 });
  assertEquals(sums(), [155, 155]);
  for (const [file, length] of [[first, 100], [second, 50], [third, 5]] as const) report.done(file, stats(length));
  assertEquals(sums(), [155, 155]);
});
