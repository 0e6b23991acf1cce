/** The part that is read from an origin, over invented origins. */
import { assertEquals, assertRejects } from "@std/assert";
import { systemClock } from "../../../../peer/core/clock.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { parseRange } from "../../../../peer/core/range.ts";
import type { Source, SourceBody, SourceRequest } from "../../../../peer/source/source.ts";
import { DirectContent } from "../../../../cli/direct/direct_content.ts";

interface Invented {
  text: string;
  /** False: ranges are ignored. */
  ranges?: boolean;
  /** False: no length is told. */
  length?: boolean;
  etag?: string;
  /** Bytes of each chunk. */
  step?: number;
  /** Each open's body breaks after so many bytes; the last entry holds on. */
  breaks?: number[];
  /** What the content is from the second open on. */
  later?: string;
}

class InventedSource implements Source {
  readonly asked: SourceRequest[] = [];
  open_count = 0;
  closed_count = 0;

  constructor(private readonly origin: Invented) {}

  open(request: SourceRequest): Promise<SourceBody> {
    const { origin } = this;
    const { ranges = true, length = true, etag = '"1"', step = 3, breaks = [] } = origin;
    this.asked.push(request);
    const number = this.open_count++;
    const text = number > 0 && origin.later !== undefined ? origin.later : origin.text;
    const own = number > 0 && origin.later !== undefined ? '"2"' : etag;
    if (request.expect?.etag !== undefined && request.expect.etag !== own) {
      return Promise.reject(new LacewingError("content_changed", "another version"));
    }
    const bytes = new TextEncoder().encode(text);
    const wanted = ranges ? request.range : null;
    if (wanted !== null && wanted.offset >= bytes.length) {
      return Promise.reject(new LacewingError("range_not_satisfiable", `the content has ${bytes.length} B`));
    }
    const part = wanted === null ? bytes : bytes.subarray(wanted.offset, wanted.offset + wanted.length);
    let at = 0;
    const breakAt = breaks[number] ?? Infinity;
    let isClosed = false;
    return Promise.resolve({
      contentLength: length ? bytes.length : null,
      ranges,
      version: own === "" ? {} : { etag: own },
      offset: wanted?.offset ?? 0,
      length: length ? part.length : null,
      read: () => {
        if (at >= breakAt) return Promise.reject(new LacewingError("network", "broken"));
        if (at >= part.length) return Promise.resolve(null);
        const chunk = part.slice(at, Math.min(at + step, breakAt));
        at += chunk.length;
        return Promise.resolve(chunk);
      },
      [Symbol.asyncDispose]: () => {
        if (!isClosed) this.closed_count += 1;
        isClosed = true;
        return Promise.resolve();
      },
    });
  }
}

async function readAll(
  origin: Invented,
  range: string | null,
): Promise<{ text: string; source: InventedSource; total: number | null }> {
  const source = new InventedSource(origin);
  const deps = { source, clock: systemClock, signal: new AbortController().signal };
  try {
    await using content = await DirectContent.open(deps, {
      url: "http://o.test/",
      headers: [],
      range: range === null ? null : parseRange(range),
      rateLimitBytesPerSecond: 0,
    });
    let text = "";
    for (let bytes = await content.read(); bytes !== null; bytes = await content.read()) {
      text += new TextDecoder().decode(bytes);
    }
    return { text, source, total: content.total };
  } finally {
    await Promise.resolve();
    assertEquals(source.closed_count <= source.open_count, true);
  }
}

const TEXT = "0123456789abcdefghij";
const RANGES: [string | null, string][] = [
  [null, TEXT],
  ["0-0", "0"],
  ["0-9", "0123456789"],
  ["4-6", "456"],
  ["15-99", "fghij"],
  ["15-", "fghij"],
  ["0-", TEXT],
  ["19-19", "j"],
  ["-1", "j"],
  ["-5", "fghij"],
  ["-20", TEXT],
  ["-99", TEXT],
];
const KINDS: [string, Partial<Invented>][] = [
  ["an origin with ranges", {}],
  ["an origin that ignores ranges", { ranges: false }],
  ["an origin that ignores ranges and tells no length", { ranges: false, length: false }],
  ["an origin that sends byte by byte", { ranges: false, length: false, step: 1 }],
  ["an origin that sends all at once", { ranges: false, step: 100 }],
];
for (const [kind, origin] of KINDS) {
  for (const [range, text] of RANGES) {
    Deno.test(`${range ?? "all"} of ${kind} is exactly that`, async () => {
      const result = await readAll({ text: TEXT, ...origin }, range);
      assertEquals(result.text, text);
      assertEquals(result.source.closed_count, result.source.open_count);
    });
  }

  for (const range of ["20-", "20-30", "99-"]) {
    Deno.test(`${range} of ${kind} is not satisfiable`, async () => {
      const error = await assertRejects(() => readAll({ text: TEXT, ...origin }, range), LacewingError);
      assertEquals(error.code, "range_not_satisfiable");
    });
  }

  for (const range of ["0-", "0-0", "-1", "-0"]) {
    Deno.test(`${range} of nothing at ${kind} is not satisfiable`, async () => {
      const error = await assertRejects(() => readAll({ text: "", ...origin }, range), LacewingError);
      assertEquals(error.code, "range_not_satisfiable");
    });
  }

  Deno.test(`all of nothing at ${kind} is nothing`, async () => {
    assertEquals((await readAll({ text: "", ...origin }, null)).text, "");
  });
}

for (const [kind, origin] of KINDS.slice(0, 4)) {
  for (const range of [null, "2-17", "2-", "-18"]) {
    Deno.test(`${range ?? "all"} of ${kind} survives broken connections`, async () => {
      const whole = (await readAll({ text: TEXT, ...origin }, range)).text;
      // The first open of a range from the end asks for one byte only.
      const result = readAll({ text: TEXT, ...origin, breaks: [5, 4, 10] }, range);
      const isHeldInMemory = range === "-18" && origin.length === false;
      if (isHeldInMemory) return assertEquals((await assertRejects(() => result, LacewingError)).code, "network");
      assertEquals((await result).text, whole);
    });
  }
}

Deno.test("a broken connection goes on where it broke, not from the start", async () => {
  const { source } = await readAll({ text: TEXT, breaks: [6] }, null);
  assertEquals(source.asked[1]?.range, { offset: 6, length: 14 });
  assertEquals(source.asked[1]?.expect, { etag: '"1"' });
});

Deno.test("a content that changes while it is read is never mixed", async () => {
  const origin = { text: TEXT, breaks: [6], later: "ABCDEFGHIJKLMNOPQRST" };
  for (const ranges of [true, false]) {
    const error = await assertRejects(() => readAll({ ...origin, ranges }, null), LacewingError);
    assertEquals(error.code, "content_changed");
  }
  const longer = { ...origin, etag: "", later: TEXT + "k" };
  assertEquals((await assertRejects(() => readAll(longer, null), LacewingError)).code, "content_changed");
});

Deno.test("an origin that breaks again and again without a byte is given up", async () => {
  const source = { text: TEXT, breaks: [3, 0, 0, 0, 0] };
  const error = await assertRejects(() => readAll(source, null), LacewingError);
  assertEquals(error.code, "network");
});

Deno.test("the length is told as soon as it is known", async () => {
  assertEquals((await readAll({ text: TEXT }, null)).total, 20);
  assertEquals((await readAll({ text: TEXT }, "5-")).total, 15);
  assertEquals((await readAll({ text: TEXT, ranges: false, length: false }, "5-")).total, null);
});

Deno.test("a rate limit is kept", async () => {
  let sleptMs = 0;
  const clock = {
    nowMs: () => sleptMs,
    sleep: (ms: number) => {
      sleptMs += ms;
      return Promise.resolve();
    },
  };
  const source = new InventedSource({ text: "x".repeat(1000), step: 100 });
  await using content = await DirectContent.open({ source, clock, signal: new AbortController().signal }, {
    url: "http://o.test/",
    headers: [],
    range: null,
    rateLimitBytesPerSecond: 100,
  });
  while (await content.read() !== null);
  assertEquals(Math.abs(sleptMs - 9990) < 10, true, String(sleptMs));
});

/** Reads what is left of a content of which so much is there. */
async function resume(origin: Invented, range: string | null, from: { have: number; etag?: string; length?: number }) {
  const source = new InventedSource(origin);
  const { signal } = new AbortController();
  const contentLength = from.length ?? TEXT.length;
  const part = range === null ? { offset: 0, length: contentLength } : { offset: 5, length: 10 };
  await using content = await DirectContent.open(
    { source, clock: systemClock, signal },
    {
      url: "http://o.test/",
      headers: [],
      range: range === null ? null : parseRange(range),
      rateLimitBytesPerSecond: 0,
    },
    { version: { etag: from.etag ?? '"1"' }, contentLength, part, have: from.have },
  );
  let text = "";
  for (let bytes = await content.read(); bytes !== null; bytes = await content.read()) {
    text += new TextDecoder().decode(bytes);
  }
  return { text, resumed: content.resumed, total: content.total, facts: content.facts };
}

const RESUMES: [string, Invented, string | null, { have: number; etag?: string; length?: number }, number, string][] = [
  ["the whole", { text: TEXT }, null, { have: 7 }, 7, TEXT.slice(7)],
  ["a range", { text: TEXT }, "5-14", { have: 4 }, 4, TEXT.slice(9, 15)],
  ["all of it, but for a byte that is asked for again", { text: TEXT }, null, { have: 20 }, 19, TEXT.slice(19)],
  ["more than all", { text: TEXT }, null, { have: 99 }, 19, TEXT.slice(19)],
  ["nothing", { text: TEXT }, null, { have: 0 }, 0, TEXT],
  ["an origin without ranges", { text: TEXT, ranges: false }, null, { have: 7 }, 7, TEXT.slice(7)],
  ["a connection that breaks", { text: TEXT, breaks: [3] }, null, { have: 7 }, 7, TEXT.slice(7)],
  ["another version", { text: TEXT, etag: '"2"' }, null, { have: 7 }, 0, TEXT],
  ["another length", { text: TEXT }, null, { have: 7, length: 21 }, 0, TEXT],
  ["what is longer than the content is now", { text: TEXT }, null, { have: 25, length: 30 }, 0, TEXT],
  ["another range", { text: TEXT }, "5-13", { have: 4 }, 0, TEXT.slice(5, 14)],
];
for (const [claim, origin, range, from, resumed, text] of RESUMES) {
  Deno.test(`an earlier run's part is gone on with, or not: ${claim}`, async () => {
    const result = await resume(origin, range, from);
    assertEquals([result.resumed, result.text], [resumed, text]);
    assertEquals(result.total, resumed + text.length);
  });
}

Deno.test("facts for a later run need a validator and a length", async () => {
  const facts = async (origin: Invented) => (await resume(origin, null, { have: 0 })).facts;
  assertEquals(await facts({ text: TEXT }), {
    version: { etag: '"1"' },
    contentLength: 20,
    part: { offset: 0, length: 20 },
  });
  assertEquals(await facts({ text: TEXT, etag: "" }), null);
  assertEquals(await facts({ text: TEXT, length: false, ranges: false }), null);
});
