import { assertEquals } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { Access, type Claim } from "../../../../peer/proxy/access.ts";
import type { PublicRecord } from "../../../../peer/proxy/public_record.ts";
import { FakeClock } from "../core/fake_clock.ts";

const SIGNAL = new AbortController().signal;

function claim(authorization?: string, scope = "https://h app"): Claim {
  const fields = authorization === undefined ? [] : [["Authorization", authorization] as const];
  return { scope, url: new URL("https://h/v2/app/blobs/x"), fields };
}

/** An origin that answers these, the last one again and again. */
function setUp(...answers: (number | LacewingError)[]) {
  return setUpWith({ isPublic: () => false, note: () => {} }, answers);
}

function setUpWith(publics: PublicRecord, answers: (number | LacewingError)[]) {
  const clock = new FakeClock();
  const asked: string[] = [];
  let probe: LacewingError | null = null;
  const access = new Access({
    clock: { nowMs: () => clock.nowMs(), sleep: () => Promise.resolve() },
    publics,
    head: ({ fields }) => {
      asked.push(`HEAD ${fields.map(([, value]) => value)}`);
      const answer = (answers.length > 1 ? answers.shift() : answers[0])!;
      return typeof answer === "number" ? Promise.resolve(answer) : Promise.reject(answer);
    },
    probe: () => {
      asked.push("GET");
      return probe === null ? Promise.resolve() : Promise.reject(probe);
    },
  });
  return { clock, asked, access, failProbe: (error: LacewingError) => probe = error };
}

const network = new LacewingError("network", "down");

Deno.test("an accepted client is not asked about for a minute, another one is", async () => {
  const { access, asked, clock } = setUp(200);
  assertEquals(await access.isAccepted(claim("a"), SIGNAL), true);
  await clock.advance(59_000);
  assertEquals(await access.isAccepted(claim("a"), SIGNAL), true);
  assertEquals(asked, ["HEAD a"]);
  await access.isAccepted(claim("b"), SIGNAL);
  await access.isAccepted(claim(), SIGNAL);
  await access.isAccepted(claim("a", "https://h other"), SIGNAL);
  assertEquals(asked, ["HEAD a", "HEAD b", "HEAD ", "HEAD a"]);
  await clock.advance(2_000);
  await access.isAccepted(claim("a"), SIGNAL);
  assertEquals(asked.length, 5);
});

for (
  const [answers, accepted, asked] of [
    [[200], true, 1],
    [[401], false, 1],
    [[403], false, 1],
    [[404], false, 1],
    [[429], false, 1],
    [[503, 200], true, 2],
    [[network, 200], true, 2],
    [[503], false, 3],
    [[network], false, 3],
    [[new LacewingError("tls", "bad")], false, 1],
    // A redirect and a refused HEAD are asked again as what they stand for.
    [[307], true, 2],
    [[405], true, 2],
    [[501], true, 2],
  ] as [(number | LacewingError)[], boolean, number][]
) {
  Deno.test(`an origin that answers ${answers.map((one) => typeof one === "number" ? one : one.code)} means ${accepted}`, async () => {
    const made = setUp(...answers);
    assertEquals(await made.access.isAccepted(claim("a"), SIGNAL), accepted);
    assertEquals(made.asked.length, asked);
  });
}

Deno.test("a redirect that leads to a refusal is no acceptance", async () => {
  const made = setUp(307);
  made.failProbe(new LacewingError("source_refused", "403"));
  assertEquals(await made.access.isAccepted(claim(), SIGNAL), false);
});

Deno.test("answers that pass through teach it, good and bad ones", async () => {
  const { access, asked } = setUp(401);
  access.learn(claim("a"), 200);
  assertEquals(await access.isAccepted(claim("a"), SIGNAL), true);
  access.learn(claim("a"), 304);
  access.learn(claim("a"), 404);
  assertEquals(asked, []);
  access.learn(claim("a"), 401);
  assertEquals(await access.isAccepted(claim("a"), SIGNAL), false);
  access.learn(claim("b"), 307);
  assertEquals(await access.isAccepted(claim("b"), SIGNAL), false);
});

Deno.test("while the origin is away, what is public stays so, and credentials hold for their minute only", async () => {
  const { access, clock } = setUp(200, 200, network);
  await access.isAccepted(claim(), SIGNAL);
  await access.isAccepted(claim("a"), SIGNAL);
  await clock.advance(30_000);
  assertEquals([access.isKnown(claim()), access.isKnown(claim("a"))], [true, true]);
  await clock.advance(60_000);
  assertEquals([access.isKnown(claim()), access.isKnown(claim("a"))], [true, false]);
  assertEquals(await access.isAccepted(claim(), SIGNAL), true);
  assertEquals(await access.isAccepted(claim("a"), SIGNAL), false);
});

Deno.test("requests at once ask the origin once, and each for itself when that was refused", async () => {
  const good = setUp(200);
  assertEquals(await Promise.all([1, 2, 3].map(() => good.access.isAccepted(claim("a"), SIGNAL))), [true, true, true]);
  assertEquals(good.asked.length, 1);
  const bad = setUp(404);
  assertEquals(await Promise.all([1, 2].map(() => bad.access.isAccepted(claim("a"), SIGNAL))), [false, false]);
  assertEquals(bad.asked.length, 2);
});

Deno.test("what was public before a restart stays so while the origin is away; credentials are never kept", async () => {
  const kept = new Set<string>();
  const publics: PublicRecord = {
    isPublic: (key) => kept.has(key),
    note: (key, isPublic) => void (isPublic ? kept.add(key) : kept.delete(key)),
  };
  const before = setUpWith(publics, [200, 200, 401]);
  await before.access.isAccepted(claim(), SIGNAL);
  await before.access.isAccepted(claim("a"), SIGNAL);
  await before.access.isAccepted(claim(undefined, "https://h private"), SIGNAL);
  assertEquals(kept.size, 1);
  const away = setUpWith(publics, [network]);
  for (
    const [one, accepted] of [[claim(), true], [claim("a"), false], [
      claim(undefined, "https://h private"),
      false,
    ]] as const
  ) {
    assertEquals([away.access.isKnown(one), await away.access.isAccepted(one, SIGNAL)], [accepted, accepted]);
  }
  const turned = setUpWith(publics, [401, network]);
  assertEquals(await turned.access.isAccepted(claim(), SIGNAL), false);
  assertEquals([await turned.access.isAccepted(claim(), SIGNAL), kept.size], [false, 0]);
});
