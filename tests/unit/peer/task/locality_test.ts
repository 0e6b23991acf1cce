import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { Locality } from "../../../../peer/task/locality.ts";

const RACK = ["a1", "a2", "a3", "a4"];

/** What a host of a rack of these sees; one neighbour more is elsewhere. */
function placeOf(hostId: string, { rack = RACK, idc = "a", pieceCount = 64 } = {}): Locality {
  const place = new Locality({ hostId, idc }, pieceCount);
  for (const other of rack) if (other !== hostId) place.add(other, idc);
  place.add("far", "b");
  return place;
}

Deno.test("Locality lets a host without an idc, or alone in it, ask whom it likes", () => {
  for (const place of [placeOf("a1", { idc: "" }), placeOf("a1", { rack: [] })]) {
    assertEquals(place.isActive, false);
    assert(place.mayAsk("far", 0, true, 0));
    assert(place.mayAsk("a2", 0, false, 0));
    assertEquals(place.starves(), false);
  }
});

Deno.test("Locality lets neighbours of the idc be asked always, others never for what those offer", () => {
  const place = placeOf("a1");
  for (let piece = 0; piece < 64; piece++) {
    assert(place.mayAsk("a2", piece, true, 0));
    assert(!place.mayAsk("far", piece, true, 0));
    assert(!place.mayAsk("far", piece, true, 3_600_000));
  }
});

Deno.test("Locality has each piece brought over by one host of the idc, each by a fair part", () => {
  fc.assert(fc.property(fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 2, maxLength: 12 }), (rack) => {
    const places = rack.map((hostId) => placeOf(hostId, { rack }));
    for (let piece = 0; piece < 64; piece++) {
      assertEquals(places.filter((place) => place.mayAsk("far", piece, false, 0)).length, 1);
    }
  }));
  const rack = Array.from({ length: 8 }, (_, index) => `host-${index}`);
  for (const hostId of rack) {
    const place = placeOf(hostId, { rack, pieceCount: 800 });
    const own = Array.from({ length: 800 }, (_, piece) => piece).filter((it) => place.mayAsk("far", it, false, 0));
    assert(own.length > 50 && own.length < 200, `${hostId} has ${own.length} of 800`);
  }
});

Deno.test("Locality lets the next in turn ask when the first does not, and in the end all", () => {
  const rack = ["a1", "a2", "a3", "a4", "a5", "a6"];
  const places = rack.map((hostId) => placeOf(hostId, { rack }));
  const count = (nowMs: number) => places.filter((place) => place.mayAsk("far", 7, false, nowMs)).length;
  assertEquals([0, 999, 1_000, 1_999, 2_000, 3_000].map(count), [1, 1, 2, 2, 3, 6]);
});

Deno.test("Locality waits longer where pieces from elsewhere take long, up to a bound", () => {
  const piece = Array.from({ length: 64 }, (_, it) => it).find((it) => !placeOf("a1").mayAsk("far", it, false, 0))!;
  const waitAfter = (ms: number) => {
    const place = placeOf("a1");
    place.took("far", ms);
    place.took("a2", 1);
    for (let nowMs = 0;; nowMs += 500) if (place.mayAsk("far", piece, false, nowMs)) return nowMs;
  };
  assert(waitAfter(100) < waitAfter(2_000));
  assertEquals(waitAfter(60_000), waitAfter(3_600_000));
});

Deno.test("Locality takes over the pieces of a host that is gone", () => {
  const place = placeOf("a1", { rack: ["a1", "a2"] });
  const left = Array.from({ length: 64 }, (_, it) => it).filter((it) => !place.mayAsk("far", it, false, 0));
  assert(left.length > 0);
  place.remove("a2");
  assert(left.every((piece) => place.mayAsk("far", piece, false, 0)));
});

Deno.test("Locality lets a host that starves ask anybody once", () => {
  const place = placeOf("a1");
  assertEquals([place.starves(), place.starves()], [true, false]);
  assert(place.mayAsk("far", 0, true, 0));
  place.asked();
  assert(!place.mayAsk("far", 0, true, 0));
});

Deno.test("Locality has carriers alone bring a piece over, each piece by one of them, also where few know each other", () => {
  const rack = Array.from({ length: 40 }, (_, index) => `host-${index}`);
  const carriers = rack.slice(0, 8);
  // Each knows two others of its idc; the scheduler tells who carries.
  const places = rack.map((hostId, index) =>
    placeOf(hostId, { rack: [rack[(index + 1) % 40]!, rack[(index + 7) % 40]!] })
  );
  for (const place of places) place.setCarriers(carriers);
  const askers = (piece: number, nowMs: number) =>
    places.flatMap((place, index) => place.mayAsk("far", piece, false, nowMs) ? [index] : []);
  for (let piece = 0; piece < 64; piece++) {
    const [first, ...others] = askers(piece, 0);
    assert(first !== undefined && first < 8 && others.length === 0, `${first} and ${others}`);
    assertEquals(askers(piece, 1_000).length, 2);
  }
  // When none of three comes to it, all others may.
  assertEquals(askers(3, 3_000).length, 40);
  for (const place of places) place.setCarriers(null);
  assert(askers(3, 0).length > 8);
});

Deno.test("Locality lets the next carrier take over from one that is none any more", () => {
  const place = placeOf("a1", { rack: [] });
  place.add("a9", "a");
  place.setCarriers(["a1", "a2"]);
  const left = Array.from({ length: 64 }, (_, it) => it).filter((it) => !place.mayAsk("far", it, false, 0));
  assert(left.length > 0 && left.length < 64);
  place.setCarriers(["a1"]);
  assert(left.every((piece) => place.mayAsk("far", piece, false, 0)));
  place.setCarriers([]);
  assert(left.every((piece) => !place.mayAsk("far", piece, false, 0)));
});

Deno.test("Locality says from whom pieces are brought over", () => {
  const place = placeOf("a1");
  assertEquals([place.isBetween, place.crosses("far"), place.crosses("a2"), place.crosses("nobody")], [
    true,
    true,
    false,
    false,
  ]);
  place.remove("far");
  assertEquals([place.isBetween, place.crosses("far")], [false, false]);
  place.add("far", "a");
  assertEquals([place.isBetween, place.crosses("far"), place.isNear("far")], [false, false, true]);
  const alone = placeOf("a1", { rack: [] });
  assertEquals([alone.isBetween, alone.crosses("far")], [false, false]);
});
