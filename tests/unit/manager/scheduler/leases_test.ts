import { assertEquals } from "@std/assert";
import { LeaseBook } from "../../../../manager/scheduler/leases.ts";

const KiB256 = 256 * 1024;

/** A book over pieces drawn as a string: `.` free, `x` done, a letter: leased to that host. */
function draw(picture: string): { book: LeaseBook; isDone: (number: number) => boolean } {
  const book = new LeaseBook();
  book.setLayout({ contentLength: picture.length * KiB256, pieceLength: KiB256 }, { ranges: true });
  for (const [id, { index, 0: run }] of [...picture.matchAll(/([a-w])\1*/g)].entries()) {
    const lease = { id: id + 1, hostId: run[0]!, generation: "g", extra: false };
    book.grant(lease, { first: index, count: run.length }, 0);
  }
  return { book, isDone: (number) => picture[number] === "x" };
}

/** Leases as a picture of who covers what. */
function picture(book: LeaseBook, size: number): string {
  return Array.from({ length: size }, (_, number) => {
    for (const { hostId, left } of book.live) if (left.has(number)) return hostId;
    return ".";
  }).join("");
}

for (
  const [pieces, readers, want] of [
    ["........", 1, "0+4"],
    ["........", 4, "0+1"],
    ["xxaa....", 1, "4+2"],
    ["xx..a...", 1, "2+2"],
    ["x.x.x.x.", 1, "1+1"],
    ["xxxxxxxx", 1, undefined],
    ["aaaabbbb", 1, undefined],
    ["........................................................................", 1, "0+36"],
    ["", 1, undefined],
  ] as [string, number, string | undefined][]
) {
  Deno.test(`of ${pieces || "nothing"} the next run for ${readers} readers of a lone host is ${want ?? "none"}`, () => {
    const { book, isDone } = draw(pieces);
    const remaining = pieces.replaceAll(/[^.]/g, "").length;
    const run = book.nextRun(isDone, { remaining, readers, isLone: true });
    assertEquals(run === undefined ? undefined : `${run.first}+${run.count}`, want);
  });
}

/** A book of many pieces whose origin has answered a lease of two after `firstMs`, and sent the second piece `nextMs` later. */
function paced(pieces: number, [firstMs, nextMs]: readonly [number, number]): LeaseBook {
  const book = new LeaseBook();
  book.setLayout({ contentLength: pieces * KiB256, pieceLength: KiB256 }, { ranges: true });
  book.grant({ id: 1, hostId: "a", generation: "g", extra: false }, { first: 0, count: 2 }, 0);
  book.delivered("a", 0, firstMs);
  book.delivered("a", 1, firstMs + nextMs);
  return book;
}

for (
  const [pieces, pace, want, why] of [
    [256, [44, 42], 1, "a slow origin: pieces one by one, each to another host"],
    [4096, [44, 42], 1, "a slow origin, however long the content is"],
    [1024, [12, 10], 5, "a faster one: leases of 50 ms"],
    [2048, [70, 20], 8, "one that answers late: three times as long as the answer takes"],
    [1024, [510, 10], 16, "one that answers very late: a 64th of the content"],
    [256, [2, 0], 4, "one whose pieces come together: a 64th of the content"],
    [8192, [2, 0], 16, "the same with a long content: 4 MiB"],
    [100, [2, 1], 1, "a short content: one piece"],
  ] as const
) {
  Deno.test(`a run among many hosts from ${why}`, () => {
    const run = paced(pieces, pace).nextRun((number) => number < 2, {
      remaining: pieces - 2,
      readers: 4,
      isLone: false,
    });
    assertEquals(run, { first: 2, count: want });
  });
}

Deno.test("a run is at least one piece, however long a piece is", () => {
  const book = new LeaseBook();
  book.setLayout({ contentLength: 100 * 2 ** 24, pieceLength: 2 ** 24 }, { ranges: true });
  assertEquals(book.nextRun(() => false, { remaining: 100, readers: 4, isLone: false }), { first: 0, count: 1 });
});

Deno.test("a piece reported leaves its lease, the last one ends it", () => {
  const { book } = draw("aab.");
  assertEquals(book.delivered("b", 0, 5).length, 0);
  assertEquals(book.delivered("a", 0, 5).length, 0);
  assertEquals(picture(book, 4), ".ab.");
  assertEquals(book.delivered("a", 1, 5).map(({ id }) => id), [1]);
  assertEquals([picture(book, 4), book.size], ["..b.", 1]);
});

Deno.test("end() frees what was not delivered, and unknown leases are nothing", () => {
  const { book, isDone } = draw("aaaa");
  book.delivered("a", 0, 0);
  assertEquals(book.end(1)?.left.size, 3);
  assertEquals([book.end(1), book.end(99), book.hasFree(isDone)], [undefined, undefined, true]);
  assertEquals(book.isLeased(1), false);
});

Deno.test("a second lease on a piece outlives the first, and the first the second", () => {
  for (const [ended, stays] of [[1, "b"], [2, "a"]] as const) {
    const { book } = draw("aa");
    book.grant({ id: 2, hostId: "b", generation: "g", extra: true }, { first: 0, count: 2 }, 0);
    book.end(ended);
    assertEquals([picture(book, 2), book.isLeased(0)], [stays + stays, true]);
  }
});

Deno.test("a starving run takes pieces that nobody reads, the others only when they are stale", () => {
  const { book } = draw("x..aa.x.");
  const run = (numbers: number[], stale = false) => {
    const found = book.starvingRun(numbers, { share: 1, stale: () => stale });
    return found === undefined ? undefined : `${found.first}+${found.count}`;
  };
  assertEquals(run([0, 1, 2, 3]), "0+3");
  assertEquals(run([3, 4, 5]), "5+1");
  assertEquals([run([3, 4]), run([3, 4], true)], [undefined, "3+2"]);
  assertEquals([run([]), run([99], true)], [undefined, undefined]);
});

Deno.test("another layout ends the leases of a generation and keeps the probe", () => {
  const { book } = draw("aa..");
  book.probe(7, "p", 0);
  const ended = book.setLayout({ contentLength: 10 * KiB256, pieceLength: KiB256 }, { ranges: true });
  assertEquals([ended.map(({ id }) => id), picture(book, 10)], [[1], "pppp......"]);
  assertEquals(book.setLayout(null, { ranges: true }).map(({ id }) => id), [7]);
  assertEquals(book.size, 0);
});

Deno.test("without ranges a probe covers everything", () => {
  const book = new LeaseBook();
  book.probe(1, "p", 0);
  book.setLayout({ contentLength: 10 * KiB256, pieceLength: KiB256 }, { ranges: false });
  assertEquals(picture(book, 10), "pppppppppp");
});

Deno.test("a slow origin is given the time that one piece needs", () => {
  const book = new LeaseBook();
  book.setLayout({ contentLength: 2 ** 28, pieceLength: 2 ** 24 }, { ranges: true });
  assertEquals(book.timeoutMs(10_000), 74_000);
});
