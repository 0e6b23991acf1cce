import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { Bitmap } from "../../../../peer/core/bitmap.ts";
import { seededRandom } from "../../../../peer/core/clock.ts";
import { PiecePicker } from "../../../../peer/task/piece_picker.ts";

/** A neighbour's pieces drawn as a string: `1` has it, `.` has not. */
function pieces(drawing: string): Bitmap {
  const bitmap = new Bitmap(drawing.length);
  [...drawing].forEach((mark, number) => mark === "1" && bitmap.add(number));
  return bitmap;
}

function picker(pieceCount: number, { held = [] as number[], seed = 1, duplicatesMax = 2 } = {}): PiecePicker {
  const made = new PiecePicker({ pieceCount, random: seededRandom(seed), duplicatesMax, endGameMax: duplicatesMax });
  made.want(0, pieceCount);
  for (const number of held) made.held(number);
  return made;
}

Deno.test("pick() gives the rarest piece once four are held", () => {
  const made = picker(8, { held: [0, 1, 2, 3] });
  made.offer("a", pieces("11111111"));
  made.offer("b", pieces("1111111."));
  made.offer("c", pieces("111111.."));
  assertEquals(made.pick("a"), { number: 7, duplicate: false });
  assertEquals(made.pick("b"), { number: 6, duplicate: false });
});

Deno.test("pick() chooses the first pieces at random, whatever their rarity", () => {
  const chosen = new Set<number>();
  for (let seed = 0; seed < 60; seed++) {
    const made = picker(8, { seed });
    made.offer("a", pieces("11111111"));
    made.offer("b", pieces("1111111."));
    chosen.add(made.pick("a")!.number);
  }
  assertEquals(chosen.size, 8);
});

Deno.test("pick() breaks ties at random", () => {
  const chosen = new Set<number>();
  for (let seed = 0; seed < 60; seed++) {
    const made = picker(8, { held: [0, 1, 2, 3], seed });
    made.offer("a", pieces("11111111"));
    chosen.add(made.pick("a")!.number);
  }
  assertEquals([...chosen].sort(), [4, 5, 6, 7]);
});

Deno.test("pick() puts the reader's window before rarity", () => {
  const made = picker(8, { held: [0, 1, 2, 3] });
  made.setWindow("reader", 4, 2);
  made.offer("a", pieces("11111111"));
  made.offer("b", pieces("1111111."));
  assertEquals(made.pick("a")!.number, 4);
  assertEquals(made.pick("a")!.number, 5);
  assertEquals(made.pick("a")!.number, 7);
});

Deno.test("pick() puts the windows of all readers before rarity, until they end", () => {
  const made = picker(8, { held: [0, 1, 2, 3] });
  made.setWindow("first", 4, 1);
  made.setWindow("second", 6, 1);
  made.setWindow("gone", 5, 1);
  made.endWindow("gone");
  made.offer("a", pieces("11111111"));
  made.offer("b", pieces("111111.."));
  assertEquals([1, 2, 3].map(() => made.pick("a")!.number), [4, 6, 7]);
});

Deno.test("waitedFor names what the furthest reader waits for and nobody works on", () => {
  const made = picker(8, { held: [0, 1, 2, 3] });
  assertEquals([made.waitedFor, made.leadOfReaders(9)], [null, null]);
  made.setWindow("held", 2, 2);
  assertEquals([made.waitedFor, made.leadOfReaders(9), made.leadOfReaders(1)], [null, 2, 1]);
  made.setWindow("far", 6, 2);
  made.setWindow("near", 4, 2);
  assertEquals([made.waitedFor, made.leadOfReaders(9)], [{ first: 6, count: 2 }, 0]);
  made.reading(6);
  assertEquals(made.waitedFor, { first: 4, count: 2 });
});

Deno.test("pick() asks a piece twice only when every offered piece is asked", () => {
  const made = picker(6, { held: [0, 1, 2, 3] });
  made.offer("a", pieces("111111"));
  made.offer("b", pieces("111111"));
  const first = made.pick("a")!;
  const second = made.pick("b")!;
  assert(first.number !== second.number);
  assertEquals(made.pick("a"), { number: second.number, duplicate: true });
  assertEquals(made.pick("a"), null);
});

Deno.test("pick() keeps the end game within its budget", () => {
  const made = picker(6, { held: [0, 1, 2, 3], duplicatesMax: 1 });
  for (const host of ["a", "b", "c"]) made.offer(host, pieces("111111"));
  made.pick("a");
  made.pick("b");
  const again = ["a", "b", "c"].map((host) => made.pick(host)).filter((picked) => picked !== null);
  assertEquals(again.length, 1);
});

Deno.test("a content of few pieces has no end game: a second request is for a neighbour that is late", () => {
  const made = new PiecePicker({ pieceCount: 4, random: seededRandom(1) });
  made.want(0, 4);
  for (const host of ["a", "b"]) made.offer(host, pieces("1111"));
  const asked = [1, 2, 3, 4].map(() => made.pick("a")!.number);
  assertEquals(made.pick("b"), null);
  assertEquals(made.hasWork, false);
  assertEquals(asked.map((number) => made.hedge(number, "b")), [true, true, false, false]);
});

Deno.test("hasWork says whether pick() may find anything", () => {
  const made = picker(2, { duplicatesMax: 1 });
  assertEquals(made.hasWork, false);
  for (const host of ["a", "b", "c"]) made.offer(host, pieces("11"));
  assertEquals(made.hasWork, true);
  made.pick("a");
  made.pick("a");
  assertEquals(made.hasWork, true, "the end game may begin");
  made.pick("b");
  assertEquals(made.hasWork, false);
});

Deno.test("pick() never asks for pieces that are read from the origin, wait for a digest, or are unwanted", () => {
  const made = new PiecePicker({ pieceCount: 4, random: seededRandom(1) });
  made.want(0, 3);
  made.offer("a", pieces("1111"));
  made.reading(0);
  made.pending(1, "a");
  assertEquals(made.pick("a"), { number: 2, duplicate: false });
  assertEquals(made.pick("a"), null);
});

Deno.test("pick() gives nothing of a neighbour that is banned, lost or unknown", () => {
  const made = picker(2);
  made.offer("a", pieces("11"));
  made.ban("a");
  made.offer("a", pieces("11"));
  made.offer("b", pieces("11"));
  made.lost("b");
  assertEquals([made.pick("a"), made.pick("b"), made.pick("nobody")], [null, null, null]);
  assertEquals(made.availability(0), 0);
});

Deno.test("have() before the first offer changes nothing", () => {
  const made = picker(2);
  made.have("a", [0]);
  assertEquals(made.availability(0), 0);
});

Deno.test("a failed piece may be asked again, of another neighbour too", () => {
  const made = picker(1);
  made.offer("a", pieces("1"));
  made.offer("b", pieces("1"));
  assertEquals(made.pick("a")!.number, 0);
  made.failed(0, "a");
  assertEquals(made.pick("b"), { number: 0, duplicate: false });
});

Deno.test("hedge() lets a second neighbour be asked for a piece in flight, within the budget", () => {
  const made = picker(8, { duplicatesMax: 1 });
  for (const host of ["a", "b", "c"]) made.offer(host, pieces("11111111"));
  const { number } = made.pick("a")!;
  assertEquals(made.hedge(number, "a"), false);
  assertEquals(made.hedge(number, "nobody"), false);
  assertEquals(made.hedge((number + 1) % 8, "b"), false);
  assertEquals(made.hedge(number, "b"), true);
  assertEquals(made.hedge(number, "c"), false);
  const other = made.pick("a")!;
  assertEquals(made.hedge(other.number, "b"), false);
});

Deno.test("idlePieces() lists wanted pieces that nobody works on", () => {
  const made = picker(6, { held: [0] });
  made.offer("a", pieces(".1...."));
  made.pick("a");
  made.reading(2);
  assertEquals(made.idlePieces(2), [3, 4]);
  assertEquals(made.idlePieces(10), [3, 4, 5]);
  assertEquals(made.idlePieces(10, 4), [4, 5]);
});

Deno.test("availability always equals the number of offers, whatever happens", () => {
  const hosts = ["a", "b", "c"];
  const step = fc.tuple(
    fc.constantFrom("offer", "have", "lost", "pick", "held", "failed"),
    fc.constantFrom(...hosts),
    fc.nat(9),
  );
  fc.assert(fc.property(fc.array(step, { maxLength: 60 }), fc.integer(), (steps, seed) => {
    const made = picker(10, { seed });
    const model = new Map<string, Set<number>>();
    for (const [what, host, number] of steps) {
      if (what === "offer") {
        const bitmap = new Bitmap(10);
        bitmap.add(number);
        made.offer(host, bitmap);
        model.set(host, new Set([number]));
      } else if (what === "have") {
        made.have(host, [number]);
        model.get(host)?.add(number);
      } else if (what === "lost") {
        made.lost(host);
        model.delete(host);
      } else if (what === "pick") {
        const picked = made.pick(host);
        if (picked !== null) assert(model.get(host)!.has(picked.number) && !made.isHeld(picked.number));
      } else if (what === "held") made.held(number);
      else made.failed(number, host);
    }
    for (let number = 0; number < 10; number++) {
      assertEquals(made.availability(number), [...model.values()].filter((own) => own.has(number)).length);
    }
  }));
});

Deno.test("a piece is never in flight from more than two neighbours", () => {
  fc.assert(
    fc.property(fc.integer(), fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 40 }), (seed, hosts) => {
      const made = picker(5, { seed, duplicatesMax: 100 });
      for (const host of ["a", "b", "c", "d"]) made.offer(host, pieces("11111"));
      const asked = new Map<number, string[]>();
      for (const host of hosts) {
        const picked = made.pick(host);
        if (picked === null) continue;
        const before = asked.get(picked.number) ?? [];
        assert(!before.includes(host) && before.length < 2);
        if (picked.duplicate) assertEquals(asked.size, 5);
        asked.set(picked.number, [...before, host]);
      }
    }),
  );
});

Deno.test("isOfferedNear() counts neighbours that are near, until their offers are gone", () => {
  const made = picker(3);
  made.offer("far", pieces("111"));
  made.offer("near", pieces("1.."), { isNear: true });
  made.have("near", [1, 1]);
  made.have("far", [2]);
  assertEquals([0, 1, 2].map((number) => made.isOfferedNear(number)), [true, true, false]);
  made.offer("near", pieces(".1."), { isNear: true });
  assertEquals([0, 1, 2].map((number) => made.isOfferedNear(number)), [false, true, false]);
  made.offer("near", pieces("111"));
  assertEquals([0, 1, 2].map((number) => made.isOfferedNear(number)), [false, false, false]);
  made.lost("near");
  made.lost("far");
  assertEquals([0, 1, 2].map((number) => made.availability(number)), [0, 0, 0]);
});

Deno.test("what may be asked for is what a look at each piece finds, whatever happened before", () => {
  const SIZE = 40;
  const event = fc.record({
    what: fc.constantFrom("offer", "have", "lost", "want", "held", "reading", "pending", "missing", "failed", "pick"),
    host: fc.constantFrom("a", "b"),
    number: fc.nat(SIZE - 1),
  });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      const made = new PiecePicker({ pieceCount: SIZE, random: seededRandom(1), duplicatesMax: 0 });
      const offers = new Map<string, Set<number>>();
      const [wanted, held, kept] = [new Set<number>(), new Set<number>(), new Set<number>()];
      const asked = new Map<number, Set<string>>();
      const isFree = (number: number) =>
        wanted.has(number) && !held.has(number) && !kept.has(number) && !asked.get(number)?.size;
      const numbers = Array.from({ length: SIZE }, (_, number) => number);
      for (const { what, host, number } of events) {
        switch (what) {
          case "offer": {
            const bitmap = new Bitmap(SIZE);
            for (let at = number; at < SIZE; at += 2) bitmap.add(at);
            made.offer(host, bitmap);
            offers.set(host, new Set(bitmap));
            break;
          }
          case "have":
            made.have(host, [number]);
            offers.get(host)?.add(number);
            break;
          case "lost":
            made.lost(host);
            offers.delete(host);
            break;
          case "want":
            made.want(number, Math.min(8, SIZE - number));
            for (const one of numbers.slice(number, number + 8)) wanted.add(one);
            break;
          case "held":
            made.held(number);
            held.add(number);
            asked.delete(number);
            break;
          case "reading":
            made.reading(number);
            kept.add(number);
            break;
          case "pending":
            made.pending(number, host);
            asked.get(number)?.delete(host);
            kept.add(number);
            break;
          case "missing":
            made.missing(number);
            kept.delete(number);
            break;
          case "failed":
            made.failed(number, host);
            asked.get(number)?.delete(host);
            break;
          case "pick": {
            const may = [...offers.get(host) ?? []].filter(isFree);
            const picked = made.pick(host);
            assertEquals(picked !== null, may.length > 0);
            if (picked === null) break;
            assert(may.includes(picked.number));
            asked.set(picked.number, new Set([host]));
          }
        }
        assertEquals(made.idlePieces(SIZE), numbers.filter(isFree));
        assertEquals(made.hasWork, [...offers.values()].some((offered) => [...offered].some(isFree)));
        assertEquals(made.isComplete, [...wanted].every((one) => held.has(one)));
      }
    }),
    { numRuns: 300 },
  );
});
