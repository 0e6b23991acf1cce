/** The client with a daemon: one that runs, one that it starts, one that dies. */
import { assert, assertEquals } from "@std/assert";
import { Child, type ChildResult } from "../testutil/child.ts";
import { fileDigest } from "../testutil/content.ts";
import { type OriginContent, startOrigin } from "../testutil/origin.ts";
import { Place } from "../testutil/place.ts";
import { denoRun, runClient, spawnDaemon } from "../testutil/process.ts";

const SIZE = 1_000_003;

/** Flags of a place where a daemon can be started; its ports are free ones. */
function ownDaemon(place: Place): string[] {
  const config =
    "upload: { tcpListen: { port: 0 } }\nhealth: { tcpListen: { port: 0 } }\nhost: { listenIP: 127.0.0.1 }\n";
  Deno.writeTextFileSync(place.path("client.yaml"), config);
  return [
    ...["--daemon-sock", place.path("run/daemon.sock"), "--config", place.path("client.yaml")],
    ...["--workhome", place.path("home"), "--logdir", place.path("log"), "--verbose"],
  ];
}

/** A place whose daemons are ended with it: every one that a client has told of, also those that came too late. */
class DaemonPlace extends Place {
  readonly #pids = new Set<number>();

  /** Runs the client, which may start a daemon. */
  async client(...args: string[]): Promise<ChildResult> {
    const result = await runClient([...args, ...ownDaemon(this)]);
    const [, pid] = /started as process (\d+)\n/.exec(result.stderr) ?? [];
    if (pid !== undefined) this.#pids.add(Number(pid));
    return result;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.#pids) await end(pid);
    await super[Symbol.asyncDispose]();
  }
}

async function end(pid: number): Promise<void> {
  try {
    Deno.kill(pid, "SIGTERM");
    while (!(await Deno.readTextFile(`/proc/${pid}/stat`)).includes(") Z ")) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  } catch {
    // It is gone.
  }
}

Deno.test("client starts a daemon where none runs, and the next client finds it with the content", async () => {
  await using origin = startOrigin();
  await using place = new DaemonPlace();
  const url = origin.put("/f", { size: SIZE });
  const first = await place.client(url, "-O", place.path("out/1"));
  assertEquals(first.code, 0, first.stderr);
  const [, pid] = /started as process (\d+)\n/.exec(first.stderr) ?? [];
  const session = (await Deno.readTextFile(`/proc/${pid}/stat`)).split(") ")[1]!.split(" ")[3];
  assertEquals(session, pid, "the daemon has its own session");
  const second = await place.client(url, "-O", place.path("out/2"));
  assert(second.stderr.includes("976.6 KiB from this host") && !second.stderr.includes("started"), second.stderr);
  for (const name of ["out/1", "out/2"]) assertEquals(await fileDigest(place.path(name)), origin.digest("/f"));
  assertEquals(origin.bytesSent("/f"), SIZE);
  assert((await Deno.readTextFile(place.path("log/core.log"))).includes('"room":"client"'));
});

Deno.test("clients that come at once share the one daemon that comes up", async () => {
  await using origin = startOrigin();
  await using place = new DaemonPlace();
  const url = origin.put("/f", { size: SIZE });
  const results = await Promise.all([1, 2, 3].map((n) => place.client(url, "-O", place.path(`out/${n}`))));
  for (const { code, stderr } of results) {
    assertEquals([code, stderr.includes("without a daemon")], [0, false], stderr);
  }
  assertEquals(origin.bytesSent("/f"), SIZE);
});

const FAULTS: [string, OriginContent, string[], number][] = [
  ["404", { status: 404 }, [], 3],
  ["401", { status: 401 }, [], 4],
  ["500 for ever", { status: 500 }, [], 8],
  ["a wrong digest", { size: 10 }, ["--digest", `md5:${"0".repeat(32)}`], 12],
  ["a range that is not there", { size: 10 }, ["--range", "10-"], 13],
  ["a timeout", { size: 10, gate: { after: 0, open: new Promise(() => {}) } }, ["--timeout", "500ms"], 6],
  ["no holder", { size: 10 }, ["--disable-back-source"], 5],
];
Deno.test("exit codes are the same through a daemon, and no failure is tried again behind its back", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  await using place = new Place();
  for (const [claim, content, args, expected] of FAULTS) {
    const url = origin.put(`/${claim.replaceAll(" ", "-")}`, content);
    const { code, stdout, stderr } = await daemon.client(url, "-O", place.path("out/x"), ...args);
    assertEquals([code, stdout, place.outputs()], [expected, "", []], `${claim}: ${stderr}`);
    assert(/^lacewing: [\x20-\x7e]+\n$/.test(stderr) && !stderr.includes("origin itself"), `${claim}: ${stderr}`);
  }
});

Deno.test("flags reach the daemon: headers, digest, filter, tag, range, rate", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  const url = origin.put("/f", { size: SIZE, authorization: "Bearer t" });
  const header = ["-H", "Authorization: Bearer t"];
  const whole = await daemon.client(
    `${url}?sig=1`,
    "-O",
    daemon.out("a"),
    ...header,
    "--filter",
    "sig",
    "--digest",
    origin.digest("/f"),
  );
  assert(whole.stderr.includes("verified sha256:"), whole.stderr);
  const again = await daemon.client(`${url}?sig=2`, "-O", daemon.out("b"), ...header, "--filter", "sig");
  assert(again.stderr.includes("from this host"), again.stderr);
  const part = await daemon.client(
    `${url}?sig=3`,
    "-O",
    daemon.out("c"),
    ...header,
    "--filter",
    "sig",
    "--range",
    "-100",
  );
  assertEquals(part.code, 0, part.stderr);
  assertEquals(await Deno.readFile(daemon.out("c")), origin.bytes("/f", { offset: SIZE - 100, length: 100 }));
  assertEquals(origin.bytesSent("/f"), SIZE);
  const startedMs = performance.now();
  const other = await daemon.client(url, "-O", daemon.out("d"), ...header, "--tag", "other", "--ratelimit", "500K");
  assertEquals([other.code, origin.bytesSent("/f")], [0, 2 * SIZE], other.stderr);
  assert(performance.now() - startedMs > 1500);
});

Deno.test("client goes to the origin itself when its daemon dies in the middle", async () => {
  await using origin = startOrigin();
  await using daemon = await spawnDaemon();
  await using place = new Place();
  const gate = Promise.withResolvers<void>();
  const url = origin.put("/f", { size: SIZE, gate: { after: 500_000, open: gate.promise } });
  const child = new Child([
    ...denoRun("cli/main.ts"),
    "--daemon-sock",
    daemon.socket,
    "--logdir",
    place.path("log"),
    url,
    "-O",
    place.path("out/x"),
  ]);
  await origin.sent(500_000, "/f");
  await daemon.kill("SIGKILL");
  gate.resolve();
  const { code, stderr } = await child.ended;
  assertEquals([code, place.outputs()], [0, ["x"]], stderr);
  assert(/the daemon failed \(.*went away.*\); downloading from the origin itself/.test(stderr), stderr);
  assertEquals(await fileDigest(place.path("out/x")), origin.digest("/f"));
});

Deno.test("a daemon that dies is exit code 14 with --disable-back-source", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  // What answers here is no daemon: it takes the question and hangs up.
  using listener = Deno.listen({ transport: "unix", path: place.path("s") });
  const served = listener.accept().then((conn) => conn.close());
  const args = ["--daemon-sock", place.path("s"), "--logdir", place.path("log"), "--disable-back-source"];
  const { code, stderr } = await runClient([origin.url("/f?size=10"), "-O", place.path("out/x"), ...args]);
  await served;
  assertEquals([code, origin.requests, place.outputs()], [14, [], []], stderr);
});
