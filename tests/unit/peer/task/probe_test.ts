import { assert, assertEquals, assertRejects } from "@std/assert";
import { seededRandom, systemClock } from "../../../../peer/core/clock.ts";
import { sha256Hex } from "../../../../peer/core/digest.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import type { SourceBody } from "../../../../peer/source/source.ts";
import { importSpool, probe } from "../../../../peer/task/probe.ts";
import type { Session } from "../../../../peer/task/session.ts";
import { contentBytes } from "../../../testutil/content.ts";
import { FakeSource } from "../../../testutil/fake_source.ts";
import { Place } from "../../../testutil/place.ts";
import { storedContent } from "./stored_content.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const PIECE = 256 * KIB;
const ORIGIN = { url: "http://origin/f", headers: [["x-a", "b"]] as const };

/** An origin that says it has `size` bytes, though only the first ones are there to be read. */
function large(size: number): FakeSource {
  const source = new FakeSource(contentBytes(1, 0, MIB));
  const open = source.open.bind(source);
  source.open = async (request, options) => ({ ...await open(request, options), contentLength: size });
  return source;
}

function depsOf(source: FakeSource, place: Place, signal = new AbortController().signal) {
  const traffic = { sourceBytes: 0, wastedBytes: 0 };
  const random = seededRandom(1);
  return { source, clock: systemClock, random, tempDir: place.path("tmp"), limiters: [], traffic, signal };
}

/** The bodies that a source opened and that are not closed yet. */
function openBodies(source: FakeSource): Set<SourceBody> {
  const bodies = new Set<SourceBody>();
  const open = source.open.bind(source);
  source.open = async (request, options) => {
    const body: SourceBody = {
      ...await open(request, options),
      [Symbol.asyncDispose]: () => Promise.resolve(void bodies.delete(body)),
    };
    bodies.add(body);
    return body;
  };
  return bodies;
}

interface Row {
  what: string;
  source: FakeSource;
  /** Pieces that the probe covers. */
  count: number;
  hasBody: boolean;
  ranges: boolean;
}

const plain = (size: number, over: Partial<FakeSource> = {}) =>
  Object.assign(new FakeSource(contentBytes(1, 0, size)), over);

const ROWS: Row[] = [
  { what: "an empty content", source: plain(0), count: 0, hasBody: true, ranges: true },
  { what: "one byte", source: plain(1), count: 1, hasBody: true, ranges: true },
  { what: "one piece", source: plain(PIECE), count: 1, hasBody: true, ranges: true },
  { what: "three pieces and a byte", source: plain(3 * PIECE + 1), count: 4, hasBody: true, ranges: true },
  { what: "more than the probe asks for", source: plain(3 * MIB), count: 4, hasBody: true, ranges: true },
  { what: "pieces as long as the probe", source: large(1024 * MIB), count: 1, hasBody: true, ranges: true },
  { what: "pieces longer than the probe", source: large(1025 * MIB), count: 1, hasBody: false, ranges: true },
  { what: "no ranges", source: plain(3 * MIB, { ranges: false }), count: 12, hasBody: true, ranges: false },
  { what: "no mark, small", source: plain(MIB, { version: {} }), count: 4, hasBody: true, ranges: false },
  { what: "no mark, large", source: plain(3 * MIB, { version: {} }), count: 12, hasBody: false, ranges: false },
];
for (const { what, source, count, hasBody, ranges } of ROWS) {
  Deno.test(`the probe of an origin with ${what} covers ${count} pieces`, async () => {
    await using place = new Place();
    const bodies = openBodies(source);
    const found = await probe(ORIGIN, depsOf(source, place));
    assertEquals([found.count, found.body !== null, found.meta.ranges, found.spool], [count, hasBody, ranges, null]);
    assertEquals(source.requests, [{ ...ORIGIN, range: { offset: 0, length: MIB } }]);
    assertEquals(bodies.size, hasBody ? 1 : 0, "an answer of no use is closed");
  });
}

Deno.test("contents without a mark get names of their own, those with one the same name", async () => {
  await using place = new Place();
  const names = async (version: FakeSource["version"]) => {
    const deps = depsOf(plain(10, { version }), place);
    return [(await probe(ORIGIN, deps)).meta.generation, (await probe(ORIGIN, deps)).meta.generation];
  };
  const [one, two] = await names({});
  assert(one !== two, one);
  const [three, four] = await names({ etag: '"1"' });
  assertEquals(three, four);
});

Deno.test("a content of unknown length is gathered in a file, and taken over piece by piece", async () => {
  await using place = new Place();
  for (const size of [0, 1, PIECE, 2 * PIECE + 3]) {
    const deps = depsOf(plain(size, { chunked: true }), place);
    const { meta, spool, body } = await probe(ORIGIN, deps);
    assert(spool !== null);
    assertEquals([meta.content_length, meta.ranges, body, deps.traffic.sourceBytes], [size, false, null, size]);
    const content = await storedContent({ size, pieceLength: meta.piece_length });
    const taken: [number, string][] = [];
    const session = {
      picker: { pieceCount: Math.ceil(size / PIECE) },
      layout: content.layout,
      store: content.task,
      acceptFromSource: (number: number, sha256: string) => taken.push([number, sha256]),
    } as unknown as Session;
    await importSpool(spool, session);
    const bytes = contentBytes(1, 0, size);
    const pieces = Array.from({ length: Math.ceil(size / PIECE) }, (_, n) => bytes.slice(n * PIECE, (n + 1) * PIECE));
    assertEquals(taken, pieces.map((piece, number): [number, string] => [number, sha256Hex(piece)]));
    const written = new Uint8Array(size);
    await content.task.read(written, 0);
    assertEquals(written, bytes);
    assertEquals([...Deno.readDirSync(place.path("tmp"))], [], "the file is gone");
  }
});

for (const [what, cutAfter] of [["breaks", [100_000]], ["breaks at once", [0]]] as const) {
  Deno.test(`an origin of unknown length that ${what} fails the probe and leaves no file`, async () => {
    await using place = new Place();
    const source = plain(MIB, { chunked: true, cutAfter: [...cutAfter] });
    const error = await assertRejects(() => probe(ORIGIN, depsOf(source, place)), LacewingError) as LacewingError;
    assertEquals(error.code, "network");
    assertEquals([...Deno.readDirSync(place.path("tmp"))], []);
  });
}

Deno.test("a probe that is stopped while it gathers leaves no file", async () => {
  await using place = new Place();
  const stop = new AbortController();
  const deps = depsOf(plain(MIB, { chunked: true }), place, stop.signal);
  const reason = new DOMException("stopped", "AbortError");
  Object.defineProperty(deps.traffic, "sourceBytes", { get: () => 0, set: () => stop.abort(reason) });
  assertEquals(await probe(ORIGIN, deps).then(() => null, (error) => error), reason);
  assertEquals([...Deno.readDirSync(place.path("tmp"))], []);
});

Deno.test("a temporary folder that cannot be made is a failure of the file", async () => {
  await using place = new Place();
  const source = plain(10, { chunked: true });
  const bodies = openBodies(source);
  const deps = { ...depsOf(source, place), tempDir: place.path("no-folder/tmp") };
  const error = await assertRejects(() => probe(ORIGIN, deps), LacewingError) as LacewingError;
  assertEquals([error.code, bodies.size], ["file", 0]);
});

Deno.test("a gathered file that is shorter than its content is an error, and goes", async () => {
  await using place = new Place();
  await Deno.writeFile(place.path("spool"), new Uint8Array(20));
  const content = await storedContent({ size: 40 });
  const session = {
    picker: { pieceCount: 3 },
    layout: content.layout,
    store: content.task,
    acceptFromSource() {},
  } as unknown as Session;
  await assertRejects(() => importSpool(place.path("spool"), session), LacewingError, "it ends at byte 20");
  await assertRejects(() => Deno.stat(place.path("spool")), Deno.errors.NotFound);
});
