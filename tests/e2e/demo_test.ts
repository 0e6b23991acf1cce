/** The demo as a process, small: its exit code, its key lines, and what it leaves behind. */
// covers: tests/demo/main.ts
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { type ChildResult, runToEnd } from "../testutil/child.ts";
import { denoRun } from "../testutil/process.ts";

async function demo(...args: string[]): Promise<ChildResult & { left: string[]; folder: string }> {
  const folder = await Deno.makeTempDir({ prefix: "lacewing-test-" });
  const result = await runToEnd([...denoRun("tests/demo/main.ts"), ...args], { env: { TMPDIR: folder } });
  return { ...result, folder, left: [...Deno.readDirSync(folder)].map(({ name }) => name) };
}

Deno.test("the demo preheats, switches the origin off, and downloads a file and an image everywhere", async () => {
  const { code, stdout, stderr, left, folder } = await demo("--hosts", "2", "--size", "4MiB", "--keep");
  assertEquals([code, stderr], [0, ""], stdout);
  for (const line of ["POST /api/v1/jobs {", "job 1: PENDING", "jobs/1: SUCCESS, 1 of 1 content, 4.0 MiB of 4.0 MiB"]) {
    assertStringIncludes(stdout, line);
  }
  assertMatch(stdout, /The origin sent 4\.0 MiB, 1\.000 times the content\. It is switched off now\./);
  assertMatch(stdout, /host-0 .* 100% +0% +0% +1 right\n +host-1 .* 100% +0% +0% +1 right\n/);
  assertMatch(stdout, /MiB from \\ to +host-0 +host-1 +sum\n/);
  assertMatch(stdout, /seed-0( +[\d.]+){3}\n/);
  assertMatch(stdout, /4\.0 MiB in .* from this host, verified sha256:[0-9a-f]{12}/);
  assertStringIncludes(stdout, "exit code 0, ");
  assertMatch(stdout, /jobs\/2: SUCCESS, 14 of 14 contents/);
  assertMatch(stdout, /host-0 .* 14 right\n +host-1 .* 14 right\n/);
  const [kept = ""] = left;
  assert(stdout.trimEnd().endsWith(`Kept in ${folder}/${kept}: a folder and a log for each process.`), stdout);
  const names = [...Deno.readDirSync(`${folder}/${kept}`)].map(({ name }) => name).sort();
  assertEquals(
    names,
    ["host-0", "host-0.log", "host-1", "host-1.log", "manager", "manager.log", "seed-0", "seed-0.log"],
  );
  assertStringIncludes(await Deno.readTextFile(`${folder}/${kept}/seed-0.log`), "joined a scheduler");
  await Deno.remove(folder, { recursive: true });
});

Deno.test("the demo takes an empty file and leaves nothing behind", async () => {
  const { code, stdout, stderr, left, folder } = await demo("--hosts", "1", "--size", "0");
  assertEquals([code, stderr, left], [0, "", []], stdout);
  assertMatch(stdout, /Done: every byte is right\.\n$/);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("wrong use of the demo is exit code 2, and help is 0", async () => {
  for (const args of [["--hosts", "0"], ["--size", "lots"], ["--fast"]]) {
    const { code, stdout, stderr, left, folder } = await demo(...args);
    assertEquals([code, stdout, left], [2, "", []]);
    assertStringIncludes(stderr, args.at(-1)!);
    await Deno.remove(folder, { recursive: true });
  }
  const { code, stdout, folder } = await demo("--help");
  assertEquals(code, 0);
  assertStringIncludes(stdout, "--hosts N");
  await Deno.remove(folder, { recursive: true });
});
