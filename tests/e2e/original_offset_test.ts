/** `--original-offset`: ranges of one content that fill one output, which is the daemon's own file. */
import { assert, assertEquals } from "@std/assert";
import { runBytes } from "../testutil/child.ts";
import { fileDigest } from "../testutil/content.ts";
import { startOrigin } from "../testutil/origin.ts";
import { Place } from "../testutil/place.ts";
import { type DaemonProcess, spawnDaemon } from "../testutil/process.ts";

const MIB = 1024 * 1024;
const SIZE = 8 * MIB + 7;

function ranged(daemon: DaemonProcess, url: string, range: string, output = daemon.out()) {
  return daemon.client(url, "-O", output, "--range", range, "--original-offset");
}

async function inodeOf(path: string): Promise<number | null> {
  return (await Deno.lstat(path)).ino;
}

Deno.test("four ranges by four clients at once fill one output, and then it is the whole content", async () => {
  await using origin = startOrigin({ bytesPerSecond: 16 * MIB });
  await using daemon = await spawnDaemon();
  const url = origin.put("/f", { size: SIZE });
  // Odd borders: pieces are shared between the ranges.
  const borders = [0, 1_999_999, 4_100_003, 6_000_000, SIZE];
  const ranges = [3, 0, 2, 1].map((index) => `${borders[index]}-${borders[index + 1]! - 1}`);
  const results = await Promise.all(ranges.map((range) => ranged(daemon, url, range)));
  for (const { code, stdout, stderr } of results) assertEquals([code, stdout], [0, ""], stderr);
  assertEquals(await fileDigest(daemon.out()), origin.digest("/f"));
  assert(origin.bytesSent("/f") <= SIZE * 1.02, `the origin sent ${origin.bytesSent("/f")} B`);
  // The whole content is there now: nothing more is asked for, and nothing is thrown away because of the link.
  origin.put("/f", { status: 500 });
  const whole = await daemon.client(url, "-O", daemon.out("whole"));
  assert(whole.stderr.includes("8.0 MiB from this host"), whole.stderr);
});

Deno.test("ranges one after the other grow the same sparse output, over restarts of the daemon", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  const url = origin.put("/f", { size: SIZE });
  assertEquals((await ranged(daemon, url, "-100")).code, 0);
  const inode = await inodeOf(daemon.out());
  const { size, blocks } = await Deno.lstat(daemon.out());
  assertEquals(size, SIZE);
  assert(blocks! * 512 < SIZE / 2, `${blocks} blocks are no sparse file`);
  const sent = origin.bytesSent("/f");
  await daemon.restart();
  assertEquals((await ranged(daemon, url, "-100")).code, 0);
  assertEquals(origin.bytesSent("/f"), sent, "the pieces that were there were read again");
  assertEquals((await ranged(daemon, url, "10-19")).code, 0);
  await daemon.kill("SIGKILL");
  await daemon.start();
  assertEquals((await ranged(daemon, url, "0-")).code, 0);
  assertEquals([await inodeOf(daemon.out()), await fileDigest(daemon.out())], [inode, origin.digest("/f")]);
  // A plain download over it is the whole content, too, and leaves nothing beside it.
  assertEquals((await daemon.client(url, "-O", daemon.out())).code, 0);
  assertEquals([...Deno.readDirSync(daemon.folder)].filter(({ name }) => name.startsWith(".out")), []);
});

Deno.test("an output outlives the daemon's copy, and a later version does not go into it", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  const url = origin.put("/f", { size: SIZE, seed: 1 });
  const before = origin.digest("/f");
  assertEquals((await ranged(daemon, url, "0-")).code, 0);
  origin.put("/f", { size: SIZE, seed: 2 });
  await daemon.restart();
  await Deno.remove(`${daemon.folder}/data`, { recursive: true });
  await daemon.restart();
  assertEquals(await fileDigest(daemon.out()), before);
  const { code, stderr } = await ranged(daemon, url, "0-9");
  assertEquals([code, stderr.includes(daemon.out()), stderr.includes("another file")], [11, true, true], stderr);
  assertEquals(await fileDigest(daemon.out()), before);
});

Deno.test("the digest with --original-offset is that of the range", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  const url = origin.put("/f", { size: 10, bytes: new TextEncoder().encode("0123456789") });
  const args = [url, "-O", daemon.out(), "--range", "2-4", "--original-offset", "--digest"];
  const wrong = await daemon.client(...args, `md5:${"0".repeat(32)}`);
  assertEquals([wrong.code, await Deno.lstat(daemon.out()).catch(() => null)], [12, null], wrong.stderr);
  const right = await daemon.client(...args, "md5:289dff07669d7a23de0ef88d2f7129e7");
  assert(right.code === 0 && right.stderr.includes("verified md5:289dff07669d"), right.stderr);
});

Deno.test("what is in the way of a linked output is exit code 11, and stays as it is", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  const url = origin.put("/f", { size: 10 });
  await Deno.writeTextFile(daemon.out("mine"), "mine");
  await Deno.mkdir(daemon.out("folder/f"), { recursive: true });
  await Deno.symlink(daemon.out("mine"), daemon.out("symlink"));
  for (const name of ["mine", "folder", "symlink"]) {
    const { code, stderr } = await ranged(daemon, url, "0-1", daemon.out(name));
    assertEquals([code, stderr.includes(daemon.out(name))], [11, true], stderr);
  }
  assertEquals(await Deno.readTextFile(daemon.out("mine")), "mine");
});

Deno.test("a linked output needs a daemon: exit code 14, and the origin is asked nothing", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const { code, stderr } = await place.direct(
    origin.url("/f?size=10"),
    "-O",
    "x",
    "--range",
    "0-1",
    "--original-offset",
  );
  assertEquals([code, origin.requests, place.outputs()], [14, [], []], stderr);
});

Deno.test("a linked output on another or a read-only file system is exit code 11", async (test) => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  await using place = new Place();
  await Deno.mkdir(place.path("other"));
  const tmpfs = (options: string) =>
    runBytes("mount", { args: ["-t", "tmpfs", "-o", options, "tmpfs", place.path("other")] }).catch(() => null);
  if ((await tmpfs("size=1m"))?.code !== 0) return void await test.step("skipped: no tmpfs can be mounted", () => {});
  try {
    const other = await ranged(daemon, origin.url("/f?size=10"), "0-1", place.path("other/x"));
    assertEquals(other.code, 11, other.stderr);
    for (const path of [place.path("other/x"), `${daemon.folder}/data`]) assert(other.stderr.includes(path));
    assertEquals((await tmpfs("remount,ro"))?.code, 0);
    const readOnly = await ranged(daemon, origin.url("/f?size=10"), "0-1", place.path("other/x"));
    assertEquals([readOnly.code, readOnly.stderr.includes("read-only")], [11, true], readOnly.stderr);
    assertEquals([...Deno.readDirSync(place.path("other"))], []);
  } finally {
    await runBytes("umount", { args: [place.path("other")] });
  }
});
