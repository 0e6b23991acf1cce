/** The daemon's command line and its search for a configuration, as real processes. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { VERSION } from "../../../peer/core/version.ts";
import { Child, type ChildResult, runToEnd } from "../../testutil/child.ts";
import { Place } from "../../testutil/place.ts";
import { denoRun } from "../../testutil/process.ts";

const FREE_PORTS = "upload: { tcpListen: { port: 0 } }\nhealth: { tcpListen: { port: 0 } }\n";

function daemon(args: readonly string[], env: Record<string, string> = {}): Promise<ChildResult> {
  return runToEnd([...denoRun("peer/main.ts"), ...args], { env: { CLIENT_CONFIG: "", ...env } });
}

/** Flags that keep all of a daemon within a folder. */
function within(place: Place): string[] {
  return ["--workhome", place.path("home"), "--daemon-sock", place.path("d.sock"), "--logdir", place.path("log")];
}

async function refused(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  await using place = new Place();
  const { code, stdout, stderr } = await daemon([...within(place), ...args], env);
  assertEquals([code, stdout], [2, ""], stderr);
  assert(stderr.startsWith("lacewing-peer: Cannot "), stderr);
  assertEquals(stderr.trimEnd().split("\n").length, 1, stderr);
  assert(!stderr.includes(" at "), "no stack trace");
  assertEquals([...Deno.readDirSync(place.folder)].map(({ name }) => name).sort(), ["no-folder", "out"]);
  return stderr;
}

Deno.test("--help tells every flag, --version the version, whatever else is given", async () => {
  const help = await daemon(["--help", "--config", "/no/such/file"]);
  assertEquals([help.code, help.stderr], [0, ""]);
  for (
    const flag of ["config", "workhome", "daemon-sock", "logdir", "console", "verbose", "limit", "help", "version"]
  ) {
    assertStringIncludes(help.stdout, `--${flag}`);
  }
  assertEquals((await daemon(["-h"])).stdout, help.stdout);
  const version = await daemon(["--version"]);
  assertEquals([version.code, version.stdout], [0, `lacewing-peer ${VERSION}\n`]);
});

const BAD_FLAGS: [args: string[], wanted: string][] = [
  [["--confg", "/x"], 'argument "--confg": the daemon has no such flag; did you mean --config?'],
  [["--quite-another"], 'argument "--quite-another": the daemon has no such flag\n'],
  [["-v"], 'argument "-v"'],
  [["http://origin/file"], 'argument "http://origin/file"'],
  [["--", "http://origin/file"], 'argument "http://origin/file"'],
  [["--config"], "flag --config: it needs a value"],
  [["--workhome="], "flag --workhome: it needs a value"],
  [["--limit", "fast"], 'flag --limit: Cannot read size "fast"'],
  [["--limit=-1"], "flag --limit"],
  [["--limit", "-1"], 'argument "-1"'],
];
for (const [args, wanted] of BAD_FLAGS) {
  Deno.test(`the arguments ${args.join(" ")} are a usage error, and nothing is made`, async () => {
    assertStringIncludes(await refused(args), wanted);
  });
}

Deno.test("a configuration that was named and is missing is an error that names it", async () => {
  assertStringIncludes(await refused(["--config", "/no/such.yaml"]), "/no/such.yaml: no such file");
  assertStringIncludes(await refused([], { CLIENT_CONFIG: "/no/env.yaml" }), "/no/env.yaml: no such file");
});

Deno.test("a wrong configuration is an error that names the file and the path in it", async () => {
  await using place = new Place();
  await Deno.writeTextFile(place.path("c.yaml"), "upload: { concurent: 1 }");
  const stderr = await refused(["--config", place.path("c.yaml")]);
  assertStringIncludes(stderr, `${place.path("c.yaml")}: upload.concurent: unknown key; did you mean "concurrent"?`);
  assertStringIncludes(await refused(["--config", place.folder]), place.folder);
});

Deno.test("--config comes before CLIENT_CONFIG, flags before the file, and the daemon says where it is ready", async () => {
  await using place = new Place();
  await Deno.writeTextFile(place.path("wrong.yaml"), "nonsense: 1");
  await Deno.writeTextFile(
    place.path("c.yaml"),
    `${FREE_PORTS}workHome: ${place.path("not-this")}\nlogDir: ${place.path("not-this")}\n`,
  );
  const args = [...denoRun("peer/main.ts"), ...within(place), "--config", place.path("c.yaml"), "--limit", "1M"];
  const child = new Child(args, { env: { CLIENT_CONFIG: place.path("wrong.yaml") } });
  const ready = await child.line((line) => line.startsWith("ready "));
  const addresses = JSON.parse(ready.slice("ready ".length));
  assertEquals(Object.keys(addresses), ["host_id", "socket", "upload", "proxy", "health"]);
  assertEquals([addresses.socket, addresses.proxy], [place.path("d.sock"), null]);
  assert(addresses.upload.startsWith("0.0.0.0:") && addresses.health.startsWith("127.0.0.1:"), ready);
  const answer = await fetch(`http://${addresses.health}/healthz`);
  assertEquals(await answer.text(), "OK\n");
  child.kill("SIGINT");
  const { code, stdout, stderr } = await child.ended;
  assertEquals([code, stdout, stderr], [0, `${ready}\n`, ""]);
  assertEquals((await Deno.readTextFile(place.path("home/host_id"))).trim(), addresses.host_id);
  const log = (await Deno.readTextFile(place.path("log/core.log"))).trimEnd().split("\n").map((line) =>
    JSON.parse(line)
  );
  assertEquals(log[0].message, "ready");
  assertEquals(log.at(-1).message, "stopping");
  const left = [...Deno.readDirSync(place.folder)].map(({ name }) => name);
  assert(!left.includes("not-this") && !left.includes("d.sock"), left.join(" "));
});

Deno.test("CLIENT_CONFIG is read, and its aliveTime ends a daemon without work with exit code 0", async () => {
  await using place = new Place();
  await Deno.writeTextFile(place.path("c.yaml"), `${FREE_PORTS}aliveTime: 300ms\n`);
  const { code, stdout, stderr } = await daemon([...within(place), "--console"], {
    CLIENT_CONFIG: place.path("c.yaml"),
  });
  assertEquals([code, stderr], [0, ""]);
  const lines = stdout.trimEnd().split("\n");
  assert(lines[0]!.startsWith("ready "), stdout);
  assertStringIncludes(stdout, "leaving after 300 ms without work");
  assertEquals(Deno.statSync(place.path("home")).isDirectory, true);
});

Deno.test("a port that another process holds is one line that names the key, and exit code 5", async () => {
  await using place = new Place();
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  for (const [key, other] of [["upload", "health"], ["health", "upload"]] as const) {
    const config = `host: { listenIP: 127.0.0.1 }
${key}: { tcpListen: { port: ${listener.addr.port} } }
${other}: { tcpListen: { port: 0 } }`;
    await Deno.writeTextFile(place.path("c.yaml"), config);
    const { code, stdout, stderr } = await daemon([...within(place), "--config", place.path("c.yaml")]);
    assertEquals([code, stdout], [5, ""], stderr);
    assertStringIncludes(stderr, `${key}.tcpListen.port`);
    assertEquals(stderr.trimEnd().split("\n").length, 1, stderr);
  }
});
