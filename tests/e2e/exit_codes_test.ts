/**
 * The exit codes that need more than an answer of the origin: certificates,
 * names, policy, full disks, a content that changes. With a daemon and without.
 * (Others: client_direct_test.ts, client_output_test.ts, client_daemon_test.ts.)
 */
import { assert, assertEquals } from "@std/assert";
import { makeCertificates } from "../testutil/certificates.ts";
import { Child, type ChildResult, runBytes } from "../testutil/child.ts";
import { type OriginContent, startOrigin } from "../testutil/origin.ts";
import { Place } from "../testutil/place.ts";
import { type DaemonProcess, denoRun, spawnDaemon } from "../testutil/process.ts";

/** A failure is one line, without anything a terminal would act on, and leaves no output. */
function assertFailure(result: ChildResult, code: number, words: string[]): void {
  const { stderr } = result;
  assertEquals(result.code, code, stderr);
  const line = stderr.trimEnd().split("\n").at(-1)!;
  assert(/^lacewing: [\x20-\x7e]+$/.test(line), stderr);
  for (const word of words) assert(line.includes(word), `${word} in ${stderr}`);
}

async function withConfig(place: Place, text: string): Promise<string[]> {
  await Deno.writeTextFile(place.path("client.yaml"), text);
  return ["--config", place.path("client.yaml")];
}

Deno.test("a certificate of an unknown authority is exit code 7, and a known one is none", async () => {
  await using place = new Place();
  const { cert, key, caPath } = await makeCertificates(place.path("tls"));
  await using origin = Deno.serve(
    { port: 0, hostname: "127.0.0.1", cert, key, onListen() {} },
    () => new Response("secret"),
  );
  const url = `https://127.0.0.1:${origin.addr.port}/f`;
  const source = { caCerts: [caPath] };
  await using strict = await spawnDaemon();
  await using trusting = await spawnDaemon({ config: { download: { source } } });
  assertFailure(await place.direct(url, "-O", "x"), 7, ["127.0.0.1", "caCerts"]);
  assertFailure(await strict.client(url, "-O", strict.out()), 7, ["127.0.0.1", "caCerts"]);
  assertEquals(place.outputs(), []);
  assertEquals((await trusting.client(url, "-O", trusting.out())).code, 0);
  const config = await withConfig(place, `download: { source: { caCerts: ["${caPath}"] } }\n`);
  assertEquals((await place.direct(url, "-O", "x", ...config)).code, 0);
  assertEquals(await Deno.readTextFile(place.path("out/x")), "secret");
});

Deno.test("a name that does not resolve, and a port where nobody answers, are exit code 5", async () => {
  await using place = new Place();
  await using daemon = await spawnDaemon();
  const unused = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = unused.addr;
  unused.close();
  for (const host of ["no-such-host.invalid", `127.0.0.1:${port}`]) {
    assertFailure(await place.direct(`http://${host}/f`, "-O", "x"), 5, [host]);
    assertFailure(await daemon.client(`http://${host}/f`, "-O", daemon.out()), 5, [host]);
  }
  assertEquals(place.outputs(), []);
});

Deno.test("an address that the configuration does not allow is exit code 15, and is not asked", async () => {
  await using origin = startOrigin();
  await using place = new Place();
  const url = origin.url("/f?size=10");
  await using daemon = await spawnDaemon({ config: { download: { source: { allowPrivateNetworks: false } } } });
  const config = await withConfig(place, "download: { source: { allowPrivateNetworks: false } }\n");
  assertFailure(await daemon.client(url, "-O", daemon.out()), 15, ["127.0.0.1"]);
  assertFailure(await place.direct(url, "-O", "x", ...config), 15, ["127.0.0.1"]);
  // Link-local addresses, where clouds keep credentials, are never asked.
  await using open = await spawnDaemon();
  assertFailure(await open.client("http://169.254.169.254/latest", "-O", open.out()), 15, ["169.254.169.254"]);
  assertEquals([origin.requests, place.outputs()], [[], []]);
});

Deno.test("a full disk of the daemon is exit code 9 where only the daemon can do it, else the client does it", async (test) => {
  await using origin = startOrigin();
  await using place = new Place();
  await Deno.mkdir(place.path("small"));
  const mount = await runBytes("mount", { args: ["-t", "tmpfs", "-o", "size=2m", "tmpfs", place.path("small")] })
    .catch(() => null);
  if (mount?.code !== 0) return void await test.step("skipped: no tmpfs can be mounted here", () => {});
  try {
    await using daemon = await spawnDaemon({ config: { dataDir: place.path("small/data") } });
    const url = origin.url("/f?size=8000000");
    const inPlace = await daemon.client(
      ...[url, "-O", place.path("small/x"), "--range", "0-", "--original-offset"],
    );
    assertFailure(inPlace, 9, ["no space left", place.path("small/data")]);
    const own = await daemon.client(url, "-O", place.path("out/x"));
    assert(own.code === 0 && own.stderr.includes("the daemon failed"), own.stderr);
    assertEquals(await Deno.readFile(place.path("out/x")), origin.bytes("/f?size=8000000"));
  } finally {
    await runBytes("umount", { args: [place.path("small")] });
  }
});

const SIZE = 6_000_000;

/** Begins a download, changes the content when a part was sent, and lets it go on. */
async function changeMeanwhile(first: OriginContent, flags: (url: string) => string[]): Promise<ChildResult> {
  await using origin = startOrigin();
  const gate = Promise.withResolvers<void>();
  const url = origin.put("/f", { size: SIZE, seed: 1, ...first, gate: { after: 1_500_000, open: gate.promise } });
  const child = new Child([...denoRun("cli/main.ts"), ...flags(url)]);
  await origin.sent(1_500_000, "/f");
  origin.put("/f", { size: SIZE, seed: 2 });
  gate.resolve();
  return await child.ended;
}

Deno.test("a content that changes after a part of it is given away is exit code 13", async () => {
  await using place = new Place();
  const direct = await changeMeanwhile({ cutAfter: 2_000_000 }, (url) => [
    ...place.withoutDaemon(),
    ...[url, "-O", place.path("out/x")],
  ]);
  assertFailure(direct, 13, ["changed", "run the command again"]);
  await using daemon = await spawnDaemon();
  const flags = (daemon: DaemonProcess) => ["--daemon-sock", daemon.socket, "--logdir", place.path("log")];
  const streamed = await changeMeanwhile(
    { cutAfter: 400_000 },
    (url) => [...flags(daemon), url, "-O", "-", "--ratelimit", "4M"],
  );
  assertFailure(streamed, 13, ["changed"]);
  assertEquals(place.outputs(), []);
});
