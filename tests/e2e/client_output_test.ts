/** Where the client puts things, and what is left when it is stopped. */
import { assert, assertEquals } from "@std/assert";
import { runBytes } from "../testutil/child.ts";
import { Child } from "../testutil/child.ts";
import { fileDigest } from "../testutil/content.ts";
import { type Origin, startOrigin } from "../testutil/origin.ts";
import { Place } from "../testutil/place.ts";
import { denoRun, spawnDaemon } from "../testutil/process.ts";

const PLACES: [string, string[], string][] = [
  ["without -O under the URL's name in the working folder", [], "out/name.bin"],
  ["at a relative path", ["-O", "x"], "out/x"],
  ["in missing folders", ["-O", "a/b/x"], "out/a/b/x"],
  ["in an existing folder", ["-O", "."], "out/name.bin"],
  ["in a new folder", ["-O", "new/"], "out/new/name.bin"],
  ["over an existing file", ["-O", "../no-folder"], "no-folder"],
];
Deno.test("the output stands where -O says", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  for (const [claim, args, path] of PLACES) {
    await using place = new Place();
    const url = origin.put("/d/name.bin", { size: 70_000 });
    const { code, stderr } = await runIn(place, daemon.socket, [url, ...args]);
    assertEquals(code, 0, `${claim}: ${stderr}`);
    assertEquals(await fileDigest(place.path(path)), origin.digest("/d/name.bin"), claim);
  }
});

Deno.test("the output's name cannot leave the folder, whatever the URL holds", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  await using place = new Place();
  const rows: [string, string][] = [
    ["/..%2f..%2fescape", ".._.._escape"],
    ["/%2fetc%2fpasswd", "_etc_passwd"],
    ["/a%0a%1b%5b31m", "a__[31m"],
    ["/folder/", "index.html"],
  ];
  for (const [path, name] of rows) {
    const { code, stderr } = await runIn(place, daemon.socket, [origin.put(path, { size: 10 })]);
    assertEquals([code, place.outputs().includes(name)], [0, true], `${path}: ${place.outputs()} ${stderr}`);
    assert(/^[\x20-\x7e\n]*$/.test(stderr));
  }
  assertEquals([...Deno.readDirSync(place.folder)].map(({ name }) => name).sort(), ["log", "no-folder", "out"]);
});

Deno.test("what cannot be an output is exit code 11, before anything is asked", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  await Deno.mkdir(place.path("out/name.bin"));
  const url = origin.put("/name.bin", { size: 10 });
  for (const args of [["-O", "/dev/null"], ["-O", place.path("no-folder/x")], ["-O", place.path("out")]]) {
    const { code, stderr } = await place.direct(url, ...args);
    assertEquals([code, stderr.startsWith("lacewing: Cannot write ")], [11, true], stderr);
  }
  const name = await place.direct(url, "-O", `${place.path("out")}/${"x".repeat(300)}`);
  assertEquals(name.code, 11);
  assertEquals([origin.requests, place.outputs()], [[], ["name.bin"]]);
});

Deno.test("-O - streams exactly the bytes to stdout, whole and in part, with and without a daemon", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  await using place = new Place();
  const path = "/f?size=1000003&seed=4";
  const bytes = origin.bytes(path);
  const rows: [string[], Uint8Array][] = [
    [[], bytes],
    [["--range", "500000-500099"], bytes.slice(500_000, 500_100)],
    [["--digest", origin.digest(path)], bytes],
  ];
  for (const before of [["--daemon-sock", daemon.socket, "--logdir", place.path("log")], place.withoutDaemon()]) {
    for (const [args, expected] of rows) {
      const { code, stdout, stderr } = await runBytes(Deno.execPath(), {
        args: [...denoRun("cli/main.ts"), ...before, origin.url(path), "-O", "-", ...args],
      });
      assertEquals(code, 0, stderr);
      assertEquals(stdout, expected);
    }
  }
});

Deno.test("a reader of stdout that leaves ends the client quietly", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const client = [Deno.execPath(), ...denoRun("cli/main.ts"), ...place.withoutDaemon()].map((word) => `'${word}'`).join(
    " ",
  );
  const script = `${client} '${origin.url("/f?size=20000000")}' -O - | head -c 5 >/dev/null; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await runBytes("bash", { args: ["-c", script] });
  assertEquals(new TextDecoder().decode(stdout).trim(), "141");
  assertEquals(stderr.trim().split("\n").length, 1, stderr);
});

for (const [signal, expected] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
  for (const kind of ["with a daemon", "without a daemon"]) {
    Deno.test(`${signal} ${kind} is exit code ${expected}, leaves the old output and no half one under its name`, async () => {
      await using origin = startOrigin();
      await using place = new Place();
      await using daemon = kind === "with a daemon" ? await spawnDaemon() : null;
      await Deno.writeTextFile(place.path("out/x"), "old");
      const url = origin.put("/f", { size: 3_000_000, gate: { after: 1_000_000, open: new Promise(() => {}) } });
      const flags = daemon === null
        ? place.withoutDaemon()
        : ["--daemon-sock", daemon.socket, "--logdir", place.path("log")];
      const child = new Child([...denoRun("cli/main.ts"), ...flags, url, "-O", place.path("out/x")]);
      await until(() => origin.bytesSent("/f") >= 1_000_000);
      child.kill(signal);
      const { code, stdout } = await child.ended;
      assertEquals([code, stdout], [expected, ""]);
      // Without a daemon nobody else has what was received so far.
      const left = daemon === null ? [".x.lacewing-part", ".x.lacewing-part.json"] : [];
      assertEquals([place.outputs(), await Deno.readTextFile(place.path("out/x"))], [[...left, "x"], "old"]);
    });
  }
}

Deno.test("a full disk is exit code 9, and leaves nothing", async (test) => {
  await using origin = startOrigin();
  await using place = new Place();
  await Deno.mkdir(place.path("small"));
  const mount = await runBytes("mount", { args: ["-t", "tmpfs", "-o", "size=512k", "tmpfs", place.path("small")] })
    .catch(() => null);
  if (mount?.code !== 0) return void await test.step("skipped: no tmpfs can be mounted here", () => {});
  try {
    const { code, stderr } = await place.direct(origin.url("/f?size=3000000"), "-O", place.path("small/x"));
    assertEquals([code, stderr.includes("disk is full")], [9, true], stderr);
    assertEquals([...Deno.readDirSync(place.path("small"))], []);
    await using daemon = await spawnDaemon();
    const copied = await runIn(place, daemon.socket, [origin.url("/f?size=3000000"), "-O", place.path("small/x")]);
    assertEquals([copied.code, [...Deno.readDirSync(place.path("small"))]], [9, []], copied.stderr);
    assert(!copied.stderr.includes("downloading from the origin itself"), copied.stderr);
  } finally {
    await runBytes("umount", { args: [place.path("small")] });
  }
});

Deno.test("--show-progress draws a bar on a terminal, and clears it", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const url = await slow(origin);
  const words = [
    Deno.execPath(),
    ...denoRun("cli/main.ts"),
    ...place.withoutDaemon(),
    url,
    "-O",
    place.path("out/x"),
    "-b",
  ];
  const command = words.map((word) => `'${word}'`).join(" ");
  const result = await runBytes("script", { args: ["-qec", `stty cols 70; ${command}`, "/dev/null"] }).catch(() =>
    null
  );
  if (result === null) return;
  const screen = new TextDecoder().decode(result.stdout);
  assertEquals(result.code, 0, screen);
  const frames = screen.split("\r\x1b[2K");
  assert(frames.length > 3, screen);
  assert(frames.some((frame) => /^x {2}\[=* *\] {3}\d+%/.test(frame)), screen);
  for (const frame of frames.slice(1, -1)) assert(frame.length < 70 || frame.startsWith("lacewing: no daemon"), frame);
  assert(frames.at(-1)!.includes("from the origin, without a daemon"));
});

function slow(origin: Origin): Promise<string> {
  return Promise.resolve(origin.put("/slow", { size: 400_000, bytesPerSecond: 400_000 }));
}

async function runIn(place: Place, socket: string, args: string[]) {
  const flags = ["--daemon-sock", socket, "--logdir", place.path("log")];
  return await new Child([...denoRun("cli/main.ts"), ...flags, ...args], { cwd: place.path("out") }).ended;
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error("it never happened");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
