/** The client alone with an origin: no daemon runs, and none can be started. */
// covers: cli/commands/direct.ts, cli/commands/download.ts, cli/direct/origin_source.ts
import { assert, assertEquals } from "@std/assert";
import { fileDigest } from "../testutil/content.ts";
import { type OriginContent, startOrigin } from "../testutil/origin.ts";
import { Place } from "../testutil/place.ts";

const SIZE = 300_001;

const CONTENTS: [string, OriginContent][] = [
  ["0 bytes", { size: 0 }],
  ["1 byte", { size: 1 }],
  ["many bytes", { size: SIZE }],
  ["0 bytes without a length", { size: 0, chunked: true, ranges: false }],
  ["1 byte without a length", { size: 1, chunked: true, ranges: false }],
  ["many bytes without a length", { size: SIZE, chunked: true, ranges: false }],
  ["many bytes without ranges", { size: SIZE, ranges: false }],
  ["many bytes over a connection that breaks twice", { size: SIZE, cutAfter: 100_000, cuts: 2 }],
];
for (const [claim, content] of CONTENTS) {
  Deno.test(`client without daemon downloads ${claim}`, async () => {
    await using origin = startOrigin();
    await using place = new Place();
    const { code, stdout, stderr } = await place.direct(origin.put("/d/name.bin", content), "-O", place.path("out/x"));
    assertEquals([code, stdout], [0, ""], stderr);
    assertEquals(await fileDigest(place.path("out/x")), origin.digest("/d/name.bin"));
    assertEquals(place.outputs(), ["x"]);
    const [reason, summary, ...more] = stderr.trim().split("\n");
    assert(/^lacewing: no daemon \(.+\); downloading from the origin itself$/.test(reason!), stderr);
    assert(
      / in .* \(.*\/s\), from the origin, without a daemon, not verified: no digest given$/.test(summary!),
      stderr,
    );
    assertEquals(more, []);
  });
}

const RANGES: [string, number, number][] = [
  ["0-0", 0, 1],
  ["10-65545", 10, 65_536],
  ["300000-", 300_000, 1],
  ["299000-999999", 299_000, 1001],
  ["-50", SIZE - 50, 50],
];
Deno.test("client without daemon gives exactly the range, from every kind of origin", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const kinds: [string, OriginContent][] = [
    ["/ranges", { size: SIZE }],
    ["/ignored", { size: SIZE, ranges: false }],
    ["/chunked", { size: SIZE, ranges: false, chunked: true }],
  ];
  for (const [path, content] of kinds) {
    const url = origin.put(path, content);
    await Promise.all(RANGES.map(async ([range, offset, length]) => {
      const out = place.path(`out/${path}-${range}`);
      const { code, stderr } = await place.direct(url, "-O", out, "--range", range);
      assertEquals(code, 0, stderr);
      assertEquals(await Deno.readFile(out), origin.bytes(path, { offset, length }), `${path} ${range}`);
    }));
    for (const range of [`${SIZE}-`, "-0"]) {
      const { code } = await place.direct(url, "-O", place.path("out/none"), "--range", range);
      assertEquals(code, 13);
    }
  }
  assert(!place.outputs().some((name) => name.startsWith(".") || name === "none"));
  assertEquals(origin.bytesSent("/ranges") < SIZE, true);
});

Deno.test("client without daemon checks the digest before the output has its name", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const url = origin.put("/f", { size: SIZE });
  for (const algorithm of ["md5", "sha1", "sha256", "sha512"]) {
    const digest = origin.digest("/f", algorithm);
    const { code, stderr } = await place.direct(url, "-O", place.path("out/x"), "--digest", digest);
    assertEquals([code, stderr.includes(`verified ${digest.slice(0, algorithm.length + 13)}…`)], [0, true], stderr);
  }
  await Deno.writeTextFile(place.path("out/x"), "old");
  const wrong = await place.direct(url, "-O", place.path("out/x"), "--digest", `md5:${"0".repeat(32)}`);
  assertEquals([wrong.code, wrong.stderr.includes(origin.digest("/f", "md5"))], [12, true]);
  assertEquals([place.outputs(), await Deno.readTextFile(place.path("out/x"))], [["x"], "old"]);
});

const FAULTS: [string, OriginContent, number][] = [
  ["404", { status: 404 }, 3],
  ["410", { status: 410 }, 3],
  ["401", { status: 401 }, 4],
  ["403", { status: 403 }, 4],
  ["500 for ever", { status: 500 }, 8],
  ["429 for ever", { status: 429, headers: { "retry-after": "0" } }, 8],
];
for (const [claim, content, expected] of FAULTS) {
  Deno.test(`client without daemon ends with exit code ${expected} when the origin says ${claim}`, async () => {
    await using origin = startOrigin();
    await using place = new Place();
    const { code, stdout, stderr } = await place.direct(origin.put("/f", content), "-O", "x");
    assertEquals([code, stdout, place.outputs()], [expected, "", []], stderr);
    assert(/\nlacewing: [\x20-\x7e]+\n$/.test(stderr), stderr);
  });
}

Deno.test("client without daemon survives an origin that fails once", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const url = origin.put("/f", { size: SIZE, status: 503, failures: 1 });
  assertEquals((await place.direct(url, "-O", "x")).code, 0);
  assertEquals(await fileDigest(place.path("out/x")), origin.digest("/f"));
});

Deno.test("client without daemon ends with exit code 5 where nobody answers", async () => {
  await using place = new Place();
  const unused = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = unused.addr;
  unused.close();
  const results = await Promise.all([
    place.direct(`http://127.0.0.1:${port}/f`, "-O", "x"),
    place.direct("http://no-such-host.invalid/f", "-O", "x"),
  ]);
  for (const { code, stderr } of results) assertEquals(code, 5, stderr);
  assertEquals(place.outputs(), []);
});

Deno.test("--timeout ends the whole command with exit code 6, and leaves the old output", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  await Deno.writeTextFile(place.path("out/x"), "old");
  const url = origin.put("/f", { size: SIZE, gate: { after: 100_000, open: new Promise(() => {}) } });
  const { code, stderr } = await place.direct(url, "-O", "x", "--timeout", "2s");
  assertEquals([code, stderr.includes("2.0 s")], [6, true], stderr);
  // What is there is kept for the next run, under another name.
  assertEquals(place.outputs(), [".x.lacewing-part", ".x.lacewing-part.json", "x"]);
  assertEquals(await Deno.readTextFile(place.path("out/x")), "old");
});

Deno.test("--disable-back-source without a daemon ends with exit code 14, and asks the origin nothing", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const { code, stderr } = await place.direct(origin.url("/f?size=10"), "-O", "x", "--disable-back-source");
  assertEquals([code, origin.requests, place.outputs()], [14, [], []]);
  assert(stderr.includes("without a daemon") && stderr.includes("lacewing daemon"), stderr);
});

Deno.test("headers reach the origin as they are", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const url = origin.put("/f", { size: 5, authorization: "Basic eDp5" });
  const args = ["-O", "x", "-H", "Authorization: Basic eDp5", "-H", "X-List: a, b"];
  assertEquals((await place.direct(url, ...args)).code, 0);
  assertEquals(origin.requests.at(-1)?.headers.get("x-list"), "a, b");
  const log = await Deno.readTextFile(place.path("log/core.log"));
  assert(!log.includes("eDp5"));
});

Deno.test("--ratelimit holds for the client's own download", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const startedMs = performance.now();
  const { code } = await place.direct(origin.url("/f?size=1048576"), "-O", "x", "--ratelimit", "512K");
  assertEquals(code, 0);
  assert(performance.now() - startedMs > 1700);
});

Deno.test("--console writes the log to stdout as JSON lines, --verbose more of them", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const [few, many] = await Promise.all([
    place.direct(origin.url("/f?size=10"), "-O", "x", "--console"),
    place.direct(origin.url("/f?size=10"), "-O", "y", "--console", "--verbose"),
  ]);
  const records = few.stdout.trim().split("\n").map((line) => JSON.parse(line));
  assertEquals([records.at(0).message, records.at(-1).message], ["download", "done"]);
  assert(many.stdout.includes('"level":"debug"') && !few.stdout.includes('"level":"debug"'));
});

Deno.test("a configuration that cannot be used is told, not passed over", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  await Deno.writeTextFile(place.path("c.yaml"), "downlaod: {}\n");
  const { code, stderr } = await place.direct(origin.url("/f?size=10"), "-O", "x", "--config", place.path("c.yaml"));
  assertEquals([code, stderr.includes('did you mean "download"')], [2, true], stderr);
});
