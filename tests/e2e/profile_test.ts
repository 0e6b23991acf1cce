/** Profiles of a daemon and a client while they download. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { Child } from "../testutil/child.ts";
import { startOrigin } from "../testutil/origin.ts";
import { pprofTop } from "../testutil/pprof.ts";
import { denoRun, spawnDaemon } from "../testutil/process.ts";

const MIB = 1024 * 1024;

async function profileOf(url: string, path: string): Promise<string | null> {
  const response = await fetch(url + path);
  assertEquals(response.status, 200);
  return await pprofTop(new Uint8Array(await response.arrayBuffer()));
}

async function statusOf(url: string): Promise<number> {
  const response = await fetch(url);
  await response.body?.cancel();
  return response.status;
}

Deno.test("a daemon's CPU and heap profiles are read by pprof while a download runs", async () => {
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 512 * MIB, bytesPerSecond: 64 * MIB });
  await using daemon = await spawnDaemon({ args: ["--pprof-port", "0"] });
  const { pprof } = JSON.parse((await daemon.logged(/^ready /)).slice("ready ".length));
  assertMatch(pprof, /^http:\/\/127\.0\.0\.1:\d+\/debug\/pprof\/$/);
  const stop = new AbortController();
  const download = new Child([...denoRun("cli/main.ts"), "--daemon-sock", daemon.socket, url, "-O", daemon.out()]);
  stop.signal.addEventListener("abort", () => download.kill("SIGKILL"));
  await origin.sent(MIB, "/f");
  const cpu = await profileOf(pprof, "profile?seconds=2");
  const heap = await profileOf(pprof, "heap");
  stop.abort();
  await download.ended;
  if (cpu === null || heap === null) return;
  // Hashing what arrives is most of a daemon's work.
  assertMatch(cpu, /Type: cpu[\s\S]*\b(update|digest|write|readRun)\b/);
  assertMatch(heap, /Type: inuse_space/);
});

Deno.test("a client says where its profiles are, and sends a profile that runs when it ends", async () => {
  await using origin = startOrigin();
  const gate = Promise.withResolvers<void>();
  const url = origin.put("/f", { size: MIB, gate: { after: 1000, open: gate.promise } });
  await using daemon = await spawnDaemon();
  const args = ["--daemon-sock", daemon.socket, "--logdir", `${daemon.folder}/log`, "--pprof-port", "0"];
  const client = new Child([...denoRun("cli/main.ts"), ...args, url, "-O", daemon.out()]);
  const line = await client.line((text) => text.includes("profiles at"));
  const pprof = line.slice(line.indexOf("http"));
  const profile = fetch(`${pprof}profile?seconds=120`);
  // Once it runs, another one is refused.
  while (await statusOf(`${pprof}profile?seconds=1`) !== 409);
  gate.resolve();
  const response = await profile;
  assertEquals(response.status, 200);
  assert((await response.arrayBuffer()).byteLength > 0);
  assertEquals((await client.ended).code, 0);
});

for (const [claim, value, code] of [["no number", "abc", 2], ["too high", "65536", 2]] as const) {
  Deno.test(`a daemon refuses a --pprof-port that is ${claim}`, async () => {
    const { ended } = new Child([...denoRun("peer/main.ts"), "--console", "--pprof-port", value]);
    const result = await ended;
    assertEquals(result.code, code);
    assertMatch(result.stderr, /--pprof-port.*65535/);
  });
}

Deno.test("a daemon takes --pprof-port -1 for off", async () => {
  await using daemon = await spawnDaemon({ args: ["--pprof-port", "-1"] });
  assert(!(await daemon.logged(/^ready /)).includes("pprof"));
});
