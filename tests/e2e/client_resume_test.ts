/** A download without a daemon that is interrupted, and what the next run does with what it left. */
// covers: cli/fetch_content.ts
import { assert, assertEquals } from "@std/assert";
import { Child } from "../testutil/child.ts";
import { fileDigest } from "../testutil/content.ts";
import { type Origin, type OriginContent, startOrigin } from "../testutil/origin.ts";
import { Place } from "../testutil/place.ts";
import { denoRun, spawnDaemon } from "../testutil/process.ts";

const SIZE = 3_000_000;
const HALF = 1_500_000;
const LEFT = [".x.lacewing-part", ".x.lacewing-part.json"];

/** Runs until half of the content was sent, then ends it. */
async function interrupt(
  place: Place,
  origin: Origin,
  content: OriginContent,
  { signal = "SIGINT" as Deno.Signal, args = [] as string[] } = {},
) {
  const url = origin.put("/f", { size: SIZE, ...content, gate: { after: HALF, open: new Promise(() => {}) } });
  const child = new Child([
    ...denoRun("cli/main.ts"),
    ...place.withoutDaemon(),
    url,
    "-O",
    place.path("out/x"),
    ...args,
  ]);
  const part = place.path(`out/${LEFT[0]}`);
  while ((await Deno.lstat(part).catch(() => null))?.size !== HALF) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  child.kill(signal);
  const result = await child.ended;
  origin.put("/f", { size: SIZE, ...content });
  origin.resetCounts();
  return { url, ...result };
}

const CONTENTS: [string, OriginContent][] = [
  ["an ETag", {}],
  ["a modification time", { etag: false, lastModified: "Mon, 01 Jan 2024 00:00:00 GMT" }],
];
for (const [claim, content] of CONTENTS) {
  Deno.test(`after Ctrl-C the same command goes on where it stopped, by ${claim}`, async () => {
    await using origin = startOrigin();
    await using place = new Place();
    const { url, code, stderr } = await interrupt(place, origin, content);
    assertEquals([code, place.outputs(), stderr.includes("goes on from there")], [130, LEFT, true], stderr);
    const again = await place.direct(url, "-O", "x", "--digest", origin.digest("/f"));
    assertEquals([again.code, place.outputs()], [0, ["x"]], again.stderr);
    assert(again.stderr.includes("going on at 1.4 MiB"), again.stderr);
    assertEquals([await fileDigest(place.path("out/x")), origin.bytesSent()], [origin.digest("/f"), SIZE - HALF]);
  });
}

Deno.test("a killed run is gone on with, too, and a range as well as the whole", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const args = ["--range", "5-"];
  const part = origin.put("/f", { size: SIZE });
  await using slow = startOrigin();
  assertEquals((await place.direct(part, "-O", "x", ...args, "--timeout", "0")).code, 0);
  const { url, code } = await interruptRange(place, slow, args);
  assertEquals([code, place.outputs()], [137, [...LEFT, "x"]]);
  const again = await place.direct(url, "-O", "x", ...args);
  assertEquals([again.code, place.outputs()], [0, ["x"]], again.stderr);
  assertEquals(await Deno.readFile(place.path("out/x")), slow.bytes("/f", { offset: 5, length: SIZE - 5 }));
  assert(slow.bytesSent() < SIZE - HALF + 10, String(slow.bytesSent()));
});

async function interruptRange(place: Place, origin: Origin, args: string[]) {
  const url = origin.put("/f", { size: SIZE, gate: { after: HALF + 5, open: new Promise(() => {}) } });
  const child = new Child([
    ...denoRun("cli/main.ts"),
    ...place.withoutDaemon(),
    url,
    "-O",
    place.path("out/x"),
    ...args,
  ]);
  const part = place.path(`out/${LEFT[0]}`);
  while ((await Deno.lstat(part).catch(() => null))?.size !== HALF) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  child.kill("SIGKILL");
  const { code } = await child.ended;
  origin.put("/f", { size: SIZE });
  origin.resetCounts();
  return { url, code };
}

const CHANGED: [string, OriginContent, string[]][] = [
  ["has another version", { seed: 2 }, []],
  ["has another length", { size: SIZE + 1, etag: '"1-3000000"' }, []],
  ["has become shorter than what is there", { size: 10, etag: '"1-3000000"' }, []],
  ["gives no validator any more", { etag: false }, []],
  ["is asked for another range", {}, ["--range", "1-"]],
  ["is asked for under another tag", {}, ["--tag", "b"]],
];
for (const [claim, later, args] of CHANGED) {
  Deno.test(`what is left is thrown away when the origin ${claim}`, async () => {
    await using origin = startOrigin();
    await using place = new Place();
    const { url } = await interrupt(place, origin, {});
    origin.put("/f", { size: SIZE, ...later });
    const { code, stderr } = await place.direct(url, "-O", "x", ...args);
    assertEquals([code, place.outputs(), stderr.includes("going on")], [0, ["x"], false], stderr);
    const { length } = origin.bytes("/f");
    const expected = args[0] === "--range" ? origin.bytes("/f", { offset: 1, length: length - 1 }) : origin.bytes("/f");
    assertEquals(await Deno.readFile(place.path("out/x")), expected);
  });
}

Deno.test("an origin without ranges is read again, and only what is missing is written", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const { url } = await interrupt(place, origin, { ranges: false });
  const { code, stderr } = await place.direct(url, "-O", "x");
  assertEquals([code, stderr.includes("going on"), origin.bytesSent()], [0, true, SIZE], stderr);
  assertEquals(await fileDigest(place.path("out/x")), origin.digest("/f"));
});

Deno.test("a content without a validator leaves nothing", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const url = origin.put("/f", { size: SIZE, etag: false, gate: { after: HALF, open: new Promise(() => {}) } });
  const { code } = await place.direct(url, "-O", "x", "--timeout", "2s");
  assertEquals([code, place.outputs()], [6, []]);
});

Deno.test("a wrong digest leaves nothing, also of what was gone on with", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const { url } = await interrupt(place, origin, {});
  const { code, stderr } = await place.direct(url, "-O", "x", "--digest", `md5:${"0".repeat(32)}`);
  assertEquals([code, place.outputs()], [12, []], stderr);
});

Deno.test("an origin that breaks off for good leaves what it gave for the next run", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const gate = Promise.withResolvers<void>();
  const url = origin.put("/f", { size: SIZE, cutAfter: 200_000, gate: { after: 100_000, open: gate.promise } });
  const broken = new Child([...denoRun("cli/main.ts"), ...place.withoutDaemon(), url, "-O", place.path("out/x")]);
  await origin.sent(100_000, "/f");
  origin.put("/f", { status: 503 });
  gate.resolve();
  const { code, stderr } = await broken.ended;
  assertEquals([code, place.outputs()], [8, LEFT], stderr);
  origin.put("/f", { size: SIZE });
  assertEquals((await place.direct(url, "-O", "x")).code, 0);
  assertEquals([await fileDigest(place.path("out/x")), place.outputs()], [origin.digest("/f"), ["x"]]);
});

Deno.test("a daemon that downloads later clears away what was left without it", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const { url } = await interrupt(place, origin, {});
  assertEquals(place.outputs(), LEFT);
  await using daemon = await spawnDaemon();
  const { code, stderr } = await daemon.client(url, "-O", place.path("out/x"));
  assertEquals([code, place.outputs()], [0, ["x"]], stderr);
});

Deno.test("two runs for one output at once do not hinder each other", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const url = origin.put("/f", { size: SIZE });
  const results = await Promise.all([1, 2, 3].map(() => place.direct(url, "-O", "x")));
  for (const { code, stderr } of results) assertEquals(code, 0, stderr);
  assertEquals([await fileDigest(place.path("out/x")), place.outputs()], [origin.digest("/f"), ["x"]]);
});
