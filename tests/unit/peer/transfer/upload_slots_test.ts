import { assert, assertEquals, assertRejects } from "@std/assert";
import { SLOTS_MIN } from "../../../../peer/transfer/slot_count.ts";
import { type Claim, lastToYield, nextClaim, UploadSlots, waitingMax } from "../../../../peer/transfer/upload_slots.ts";
import { FakeClock } from "../core/fake_clock.ts";

const NEVER = new AbortController().signal;

function slotsOf(countMax: number, clock = new FakeClock()): UploadSlots {
  return new UploadSlots(clock, { countMax, waitMs: 2000, bufferLength: 16 });
}

/** Claims as text: `host:need`, with `x` after one whose piece was sent before, and `!` after one that brings it over. */
function claims(text: string): Claim[] {
  return text.split(" ").filter((word) => word !== "").map((word) => {
    const [hostId = "", need] = word.split(":");
    return {
      hostId,
      need: parseInt(need!),
      ...(word.includes("x") ? { mark: { isSent: true } } : {}),
      ...(word.endsWith("!") ? { crosses: true } : {}),
    };
  });
}

for (
  const { waiting, active, next } of [
    { waiting: "", active: {}, next: -1 },
    { waiting: "a:5", active: {}, next: 0 },
    { waiting: "a:5 b:9 c:7", active: {}, next: 1 },
    { waiting: "a:5 b:5", active: {}, next: 0 },
    { waiting: "a:9 b:1", active: { a: 1 }, next: 1 },
    { waiting: "a:9 b:1 c:2", active: { a: 3, b: 1, c: 1 }, next: 2 },
    { waiting: "a:9 b:1! c:2", active: { b: 3 }, next: 1 },
    { waiting: "a:9! b:1! c:2!", active: { a: 1 }, next: 2 },
    { waiting: "a:9x b:1 c:5x", active: { b: 3 }, next: 1 },
    { waiting: "a:1x b:9x", active: {}, next: 1 },
    { waiting: "a:1x! b:1", active: {}, next: 0 },
  ]
) {
  Deno.test(`nextClaim() of "${waiting}" with slots ${JSON.stringify(active)} is ${next}`, () => {
    assertEquals(nextClaim(claims(waiting), new Map(Object.entries(active))), next);
  });
}

for (
  const { waiting, claim, at } of [
    { waiting: "a:1 b:1", claim: "c:9", at: -1 },
    { waiting: "a:1x b:1x c:1 d:1", claim: "e:1", at: 1 },
    { waiting: "a:1x b:1x", claim: "c:9x", at: -1 },
    { waiting: "a:1x! b:1", claim: "c:1", at: -1 },
    { waiting: "a:1x! b:1 c:1", claim: "d:1x!", at: 2 },
    { waiting: "a:1! b:1x c:1", claim: "d:1!", at: 1 },
    { waiting: "a:1! b:1!", claim: "c:1!", at: -1 },
  ]
) {
  Deno.test(`lastToYield() of "${waiting}" for "${claim}" is ${at}`, () => {
    assertEquals(lastToYield(claims(waiting), claims(claim)[0]!), at);
  });
}

Deno.test("UploadSlots sends what it alone has before a second copy of anything", async () => {
  const slots = slotsOf(1);
  const marks = [{ isSent: false }, { isSent: false }];
  const first = await slots.acquire({ hostId: "a", need: 9, mark: marks[0]! }, NEVER);
  const order: string[] = [];
  const waiting = [["b", 0], ["c", 1]].map(async ([hostId, piece]) => {
    using _slot = await slots.acquire({ hostId: String(hostId), need: 1, mark: marks[Number(piece)]! }, NEVER);
    order.push(String(hostId));
  });
  first?.[Symbol.dispose]();
  await Promise.all(waiting);
  assertEquals(order, ["c", "b"]);
  assertEquals(marks, [{ isSent: true }, { isSent: true }]);
});

Deno.test("UploadSlots gives at most its count, and a waiting one the slot that comes back", async () => {
  const slots = slotsOf(1);
  const first = await slots.acquire({ hostId: "a", need: 1 }, NEVER);
  const second = slots.acquire({ hostId: "b", need: 1 }, NEVER);
  assertEquals(slots.active, 1);
  first?.[Symbol.dispose]();
  first?.[Symbol.dispose]();
  using granted = await second;
  assert(granted !== null && granted.buffer === first?.buffer, "the buffer is used again");
  assertEquals(slots.active, 1);
});

Deno.test("UploadSlots serves the neediest first", async () => {
  const slots = slotsOf(2);
  const held = [
    await slots.acquire({ hostId: "a", need: 1 }, NEVER),
    await slots.acquire({ hostId: "e", need: 1 }, NEVER),
  ];
  const order: string[] = [];
  const waiting = claims("b:3 c:9 d:5").map(async (claim) => {
    using _slot = await slots.acquire(claim, NEVER);
    order.push(claim.hostId);
  });
  for (const slot of held) slot?.[Symbol.dispose]();
  await Promise.all(waiting);
  assertEquals(order, ["c", "d", "b"]);
  assertEquals(slots.active, 0);
});

Deno.test("UploadSlots makes way in a full line for a piece that is brought over, as long as others wait there", async () => {
  const slots = slotsOf(1);
  using _first = await slots.acquire({ hostId: "a", need: 1 }, NEVER);
  const settled: string[] = [];
  const ask = async (claim: Claim) => {
    using slot = await slots.acquire(claim, NEVER);
    settled.push(`${claim.hostId} ${slot === null ? "refused" : "served"}`);
  };
  const waiting = claims("b:5 c:9 d:1! e:1 f:1! g:1!").map(ask);
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  assertEquals(
    settled,
    ["c refused", "e refused", "b refused", "g refused"].toSorted((a, b) => settled.indexOf(a) - settled.indexOf(b)),
  );
  _first?.[Symbol.dispose]();
  await Promise.all(waiting);
  assertEquals(settled.slice(4), ["d served", "f served"]);
});

Deno.test("UploadSlots opens further slots when they send more", async () => {
  const clock = new FakeClock();
  const slots = slotsOf(8, clock);
  // Children that take 40 ms for 1,000 bytes each, however many are served.
  const going = new Set<Disposable & { sentBytes: number }>();
  const waiting = new Set<Promise<void>>();
  let most = 0;
  for (let round = 0; round < 100; round++) {
    while (waiting.size < waitingMax(SLOTS_MIN)) {
      const claim = slots.acquire({ hostId: `h${round % 20}`, need: 1 }, NEVER).then((slot) => {
        waiting.delete(claim);
        if (slot !== null) going.add(slot);
      });
      waiting.add(claim);
    }
    await clock.advance(40);
    most = Math.max(most, slots.active);
    for (const slot of [...going]) {
      slot.sentBytes = 1000;
      going.delete(slot);
      slot[Symbol.dispose]();
    }
    await clock.advance(0);
  }
  assert(most > SLOTS_MIN, `${most} at most`);
  for (let round = 0; going.size + waiting.size > 0; round++) {
    for (const slot of [...going]) {
      going.delete(slot);
      slot[Symbol.dispose]();
    }
    await clock.advance(2000);
  }
  assertEquals(slots.active, 0);
});

Deno.test("UploadSlots lets no request wait longer than its bound", async () => {
  const clock = new FakeClock();
  const slots = slotsOf(1, clock);
  using _first = await slots.acquire({ hostId: "a", need: 1 }, NEVER);
  const second = slots.acquire({ hostId: "b", need: 1 }, NEVER);
  await clock.advance(2000);
  assertEquals(await second, null);
});

Deno.test("UploadSlots turns away at once when more wait than there are slots and one", async () => {
  const clock = new FakeClock();
  const slots = slotsOf(1, clock);
  using _first = await slots.acquire({ hostId: "a", need: 1 }, NEVER);
  const waiting = claims("b:1 c:1").map((claim) => slots.acquire(claim, NEVER));
  assertEquals(await slots.acquire({ hostId: "d", need: 99 }, NEVER), null);
  await clock.advance(2000);
  assertEquals(await Promise.all(waiting), [null, null]);
});

Deno.test("UploadSlots forgets a waiting request that is aborted", async () => {
  const slots = slotsOf(1);
  const first = await slots.acquire({ hostId: "a", need: 1 }, NEVER);
  const controller = new AbortController();
  const second = slots.acquire({ hostId: "b", need: 1 }, controller.signal);
  controller.abort(new Error("no more"));
  await assertRejects(() => second, Error, "no more");
  first?.[Symbol.dispose]();
  assertEquals(slots.active, 0);
  await assertRejects(() => slots.acquire({ hostId: "b", need: 1 }, controller.signal), Error, "no more");
});
