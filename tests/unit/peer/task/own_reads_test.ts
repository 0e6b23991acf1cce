import { assert, assertEquals } from "@std/assert";
import { Bitmap } from "../../../../peer/core/bitmap.ts";
import { seededRandom } from "../../../../peer/core/clock.ts";
import { OwnReads } from "../../../../peer/task/own_reads.ts";
import { PiecePicker } from "../../../../peer/task/piece_picker.ts";

const MIB = 1024 * 1024;
const IDLE = { active: 0, isServed: false, readBytes: 0 };

function setUp(pieceCount: number, { offered = null as readonly number[] | null, ranges = true, seed = 1 } = {}) {
  const random = seededRandom(seed);
  const picker = new PiecePicker({ pieceCount, random });
  picker.want(0, pieceCount);
  if (offered !== null) {
    const pieces = new Bitmap(pieceCount);
    for (const number of offered) pieces.add(number);
    picker.offer("a", pieces);
  }
  return { picker, own: new OwnReads(picker, { pieceLength: MIB, ranges, connections: 4, random }) };
}

Deno.test("OwnReads reads nothing while a scheduler answers", () => {
  const { own } = setUp(8);
  assertEquals([own.isAlone, own.next(IDLE, 0)], [false, null]);
  own.setAlone(true, 0);
  own.setAlone(false, 1);
  assertEquals([own.isAlone, own.next(IDLE, 2)], [false, null]);
});

Deno.test("OwnReads reads runs in order, at once and over all connections, where no neighbour is known", () => {
  const { own, picker } = setUp(64);
  own.setAlone(true, 0);
  for (let active = 0; active < 4; active++) {
    const run = own.next({ ...IDLE, active }, 0);
    assertEquals(run, { first: 4 * active, count: 4 });
    for (let number = run!.first; number < run!.first + 4; number++) picker.reading(number);
  }
  assertEquals(own.next({ ...IDLE, active: 4 }, 0), null);
});

Deno.test("OwnReads shares what is left among its connections", () => {
  const { own } = setUp(4);
  own.setAlone(true, 0);
  assertEquals(own.next(IDLE, 0), { first: 0, count: 1 });
});

Deno.test("OwnReads waits a second for a scheduler while a neighbour has something, or may have", () => {
  for (const offered of [[], [0, 1]]) {
    const { own } = setUp(8, { offered });
    own.setAlone(true, 5_000);
    own.setAlone(true, 5_900);
    assertEquals(own.next(IDLE, 5_999), null);
    assert(own.next(IDLE, 6_000) !== null);
  }
});

Deno.test("OwnReads reads single pieces that nobody offers, at random", () => {
  const firsts = new Set<number>();
  for (let seed = 0; seed < 60; seed++) {
    const { own } = setUp(8, { offered: [0, 1, 2, 3], seed });
    own.setAlone(true, 0);
    const run = own.next(IDLE, 1_000)!;
    assertEquals(run.count, 1);
    firsts.add(run.first);
  }
  assertEquals([...firsts].sort(), [4, 5, 6, 7]);
});

Deno.test("OwnReads reads what neighbours offer last, and only when they send nothing", () => {
  const { own, picker } = setUp(2, { offered: [0] });
  own.setAlone(true, 0);
  assertEquals(own.next(IDLE, 1_000), { first: 1, count: 1 });
  picker.reading(1);
  assertEquals(own.next({ ...IDLE, active: 0, isServed: true }, 1_000), null);
  assertEquals(own.next({ ...IDLE, active: 1 }, 1_000), { first: 0, count: 1 });
  picker.reading(0);
  assertEquals(own.next(IDLE, 1_000), null);
});

Deno.test("OwnReads reads two pieces at a time among neighbours, one beside those that send", () => {
  const { own } = setUp(8, { offered: [0] });
  own.setAlone(true, 0);
  assert(own.next({ ...IDLE, active: 0, isServed: true }, 1_000) !== null);
  assertEquals(own.next({ ...IDLE, active: 1, isServed: true }, 1_000), null);
  assert(own.next({ ...IDLE, active: 1 }, 1_000) !== null);
  assertEquals(own.next({ ...IDLE, active: 2 }, 1_000), null);
});

Deno.test("OwnReads reads an origin without ranges once, as a whole", () => {
  const { own, picker } = setUp(8, { ranges: false });
  own.setAlone(true, 0);
  assertEquals(own.next(IDLE, 0), { first: 0, count: 8 });
  assertEquals(own.next({ ...IDLE, active: 1 }, 0), null);
  for (let number = 0; number < 8; number++) picker.held(number);
  assertEquals(own.next(IDLE, 0), null);
});

Deno.test("OwnReads gives a reader in order one connection, and each time a run twice as long up to 64 MiB", () => {
  const { own, picker } = setUp(256);
  picker.setWindow("reader", 0, 8);
  own.setAlone(true, 0);
  const counts: number[] = [];
  for (let run = own.next(IDLE, 0); run !== null; run = own.next(IDLE, 0)) {
    const numbers = Array.from({ length: run.count }, (_, index) => run!.first + index);
    for (const number of numbers) picker.reading(number);
    picker.setWindow("reader", run.first, 8);
    assertEquals(own.next({ ...IDLE, active: 1 }, 0), null);
    for (const number of numbers) picker.held(number);
    counts.push(run.count);
  }
  assertEquals(counts, [16, 32, 64, 64, 64, 16]);
});

/** A reader whose next piece is being read. */
function waitingReader() {
  const made = setUp(128);
  made.own.setAlone(true, 0);
  made.picker.setWindow("reader", 0, 8);
  const { count } = made.own.next(IDLE, 0)!;
  for (let number = 0; number < count; number++) made.picker.reading(number);
  return made;
}

Deno.test("OwnReads gives a reader that waits for a slow origin all connections", () => {
  const { own } = waitingReader();
  assertEquals(own.next({ ...IDLE, active: 1, readBytes: 2 * MIB }, 149), null);
  assertEquals(own.next({ ...IDLE, active: 1, readBytes: 2 * MIB }, 150), { first: 16, count: 4 });
});

Deno.test("OwnReads gives a reader no more connections while the origins send faster than 64 MiB a second", () => {
  const { own } = waitingReader();
  assertEquals(own.next({ ...IDLE, active: 1, readBytes: 10 * MIB }, 150), null);
  assertEquals(own.next({ ...IDLE, active: 1, readBytes: 10 * MIB }, 200), null);
  assert(own.next({ ...IDLE, active: 1, readBytes: 11 * MIB }, 350) !== null);
});

Deno.test("OwnReads gives a reader no more connections while the next pieces are here", () => {
  const { own, picker } = waitingReader();
  assertEquals(own.next({ ...IDLE, active: 1 }, 100), null);
  for (const number of [0, 1]) picker.held(number);
  assertEquals(own.next({ ...IDLE, active: 1 }, 200), null);
});

Deno.test("OwnReads goes back to one connection when 32 MiB are here ahead of the reader", () => {
  const { own, picker } = waitingReader();
  assert(own.next({ ...IDLE, active: 1 }, 150) !== null);
  for (let number = 0; number < 31; number++) picker.held(number);
  assert(own.next({ ...IDLE, active: 1 }, 151) !== null);
  picker.held(31);
  assertEquals(own.next({ ...IDLE, active: 1 }, 152), null);
  picker.endWindow("another");
  assertEquals(own.next({ ...IDLE, active: 1 }, 152), null);
  picker.endWindow("reader");
  assertEquals(own.next({ ...IDLE, active: 1 }, 152), { first: 32, count: 4 });
});

Deno.test("OwnReads gives a second reader a connection of its own, where it is", () => {
  const { own, picker } = waitingReader();
  picker.setWindow("second", 100, 8);
  assertEquals(own.next({ ...IDLE, active: 1 }, 1), { first: 100, count: 4 });
  for (let number = 100; number < 104; number++) picker.reading(number);
  assertEquals(own.next({ ...IDLE, active: 2 }, 1), null);
  for (let number = 100; number < 104; number++) picker.held(number);
  picker.setWindow("second", 104, 8);
  assertEquals(own.next({ ...IDLE, active: 1 }, 2), { first: 104, count: 4 });
});

Deno.test("OwnReads begins where the only reader of a whole content is", () => {
  const { own, picker } = setUp(128);
  own.setAlone(true, 0);
  picker.setWindow("reader", 120, 8);
  assertEquals(own.next(IDLE, 0), { first: 120, count: 8 });
});

/** A content with a scheduler, its first pieces leased, and a reader at `first`. */
function farReader(first: number, { count = 8 } = {}) {
  const made = setUp(400);
  for (let number = 0; number < 32; number++) made.picker.reading(number);
  made.picker.setWindow("front", 0, 8);
  made.picker.setWindow("far", first, count);
  return made;
}

Deno.test("OwnReads reads for a reader that has waited half a second far ahead of the leases, and then goes on", () => {
  const { own, picker } = farReader(390, { count: 6 });
  assertEquals(own.next(IDLE, 1_000), null);
  assertEquals(own.next(IDLE, 1_499), null);
  assertEquals(own.next({ ...IDLE, active: 1 }, 1_500), null);
  assertEquals(own.next(IDLE, 1_500), { first: 390, count: 4 });
  for (let number = 390; number < 394; number++) picker.held(number);
  picker.setWindow("far", 394, 2);
  assertEquals(own.next(IDLE, 1_501), { first: 394, count: 2 }, "no more than the reader reads");
});

Deno.test("OwnReads leaves to the scheduler what comes soon, what a neighbour has, and what could not be read", () => {
  const near = farReader(159);
  const offered = farReader(390);
  const pieces = new Bitmap(400);
  pieces.add(390);
  offered.picker.offer("a", pieces);
  const failed = farReader(390);
  failed.own.farFailed();
  const whole = setUp(400, { ranges: false });
  whole.picker.setWindow("far", 390, 8);
  for (const { own } of [near, offered, failed, whole]) {
    assertEquals([own.next(IDLE, 0), own.next(IDLE, 10_000)], [null, null]);
  }
});
