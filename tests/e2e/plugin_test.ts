/** A source plug-in over real processes: listed, downloaded with and without daemons, and through a swarm. */
import { assert, assertEquals } from "@std/assert";
import { startCluster } from "../testutil/cluster.ts";
import { Place } from "../testutil/place.ts";
import { type DaemonProcess, runClient, spawnDaemon } from "../testutil/process.ts";

const ECHO = new URL("../testutil/echo_plugin.ts", import.meta.url);
const BIG = "echo://0123456789?times=300000";

/** A folder of plug-ins: one that works, and bad ones. */
async function pluginsIn(place: Place): Promise<Record<string, string>> {
  await Deno.mkdir(place.path("plugins"), { mode: 0o755 });
  await Deno.copyFile(ECHO, place.path("plugins/echo.ts"));
  await Deno.chmod(place.path("plugins/echo.ts"), 0o644);
  await Deno.writeTextFile(place.path("plugins/bad.ts"), "export function {", { mode: 0o644 });
  await Deno.writeTextFile(place.path("plugins/empty.js"), "export {};", { mode: 0o644 });
  return { LACEWING_PLUGIN_DIR: place.path("plugins") };
}

Deno.test("plugin lists what is built in, plug-ins with their files, and bad ones with the reason", async () => {
  await using place = new Place();
  const env = await pluginsIn(place);
  const { code, stdout, stderr } = await runClient(["plugin"], { env });
  const lines = stdout.trimEnd().split("\n");
  assertEquals([code, stderr, lines.slice(0, 2)], [0, "", ["http   built in", "https  built in"]]);
  assert(lines[2]!.startsWith(`bad    not usable: Cannot use plug-in ${place.path("plugins/bad.ts")}: `), lines[2]);
  assertEquals(lines[3], `echo   ${place.path("plugins/echo.ts")}`);
  assert(lines[4]!.startsWith("empty  not usable: ") && lines[4]!.includes("createSource"), lines[4]);
  // By default they are in the work home.
  await Deno.mkdir(place.path("home/plugins"), { recursive: true });
  await Deno.copyFile(ECHO, place.path("home/plugins/mine.ts"));
  const own = await runClient(["plugin", "--workhome", place.path("home")]);
  assert(own.stdout.includes(`mine   ${place.path("home/plugins/mine.ts")}`), own.stdout);
});

Deno.test("a plug-in's content comes with and without a daemon, with range, digest and exit codes", async () => {
  await using place = new Place();
  const env = await pluginsIn(place);
  await using daemon = await spawnDaemon({ env });
  const direct = [...place.withoutDaemon()];
  const ways = [["--daemon-sock", daemon.socket, "--logdir", place.path("log")], direct];
  for (const [index, flags] of ways.entries()) {
    const run = (...args: string[]) => runClient([...flags, ...args], { env, cwd: place.path("out") });
    const hello = await run(`echo://hello${index}`, "-O", "x", "--range", "1-");
    assertEquals([hello.code, await Deno.readTextFile(place.path("out/x"))], [0, `ello${index}`], hello.stderr);
    const named = await run("echo://hello", "-O", "y", "--digest", "md5:5d41402abc4b2a76b9719d911017c592");
    assert(named.code === 0 && named.stderr.includes("verified md5:5d41402abc4b"), named.stderr);
    const failures: [string, number, string][] = [
      ["echo://missing", 3, "no echo"],
      ["echo://broken", 8, "the wall is gone"],
      ["bad://x", 2, "bad.ts"],
      ["empty://x", 2, "createSource"],
      ["ehco://x", 2, "http, https, bad, echo, empty"],
    ];
    for (const [url, code, word] of failures) {
      const failed = await run(url, "-O", "z");
      assertEquals([failed.code, failed.stderr.includes(word)], [code, true], `${url}: ${failed.stderr}`);
    }
  }
  // The daemon has survived all of it.
  const { code, stderr } = await daemon.client("echo://here", "-O", daemon.out());
  assertEquals(code, 0, stderr);
});

Deno.test("a plug-in's content goes from host to host: only the first one reads it", async () => {
  await using place = new Place();
  const env = await pluginsIn(place);
  await using cluster = await startCluster({ daemons: 2, daemon: { env } });
  const [first, second] = cluster.daemons as [DaemonProcess, DaemonProcess];
  const one = await first.client(BIG, "-O", first.out());
  assertEquals(one.code, 0, one.stderr);
  const two = await second.client(BIG, "-O", second.out(), "--disable-back-source");
  assertEquals(two.code, 0, two.stderr);
  assert(two.stderr.includes("100% from 1 peer"), two.stderr);
  assertEquals(await Deno.readTextFile(second.out()), "0123456789".repeat(300_000));
});
