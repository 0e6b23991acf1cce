/** The client as a process: its small commands, and what it says to wrong use. */
// covers: cli/main.ts, cli/commands/arguments.ts, cli/commands/completion.ts, cli/commands/daemon.ts
// covers: cli/commands/doc.ts, cli/commands/help.ts, cli/commands/plugin.ts, cli/commands/version.ts
import { assert, assertEquals } from "@std/assert";
import { manualFiles } from "../../cli/manual.ts";
import { VERSION } from "../../peer/core/version.ts";
import { Child } from "../testutil/child.ts";
import { denoRun, runClient } from "../testutil/process.ts";

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("version says version, Deno and platform, for people and for programs", async () => {
  const text = await runClient(["version"]);
  assertEquals([text.code, text.stderr], [0, ""]);
  assert(text.stdout.startsWith(`lacewing ${VERSION} (commit `) && text.stdout.includes(`Deno ${Deno.version.deno}`));
  const json = JSON.parse((await runClient(["version", "--json"])).stdout);
  assertEquals([json.version, json.deno, json.platform], [
    VERSION,
    Deno.version.deno,
    `${Deno.build.os}/${Deno.build.arch}`,
  ]);
  assert(json.commit === null || /^[0-9a-f]{40}$/.test(json.commit));
});

Deno.test("plugin lists what can be downloaded from", async () => {
  assertEquals(await runClient(["plugin", "--workhome", "/none"]), {
    code: 0,
    stdout: "http   built in\nhttps  built in\n",
    stderr: "",
  });
});

const HELPS: string[][] = [["--help"], ["-h"], ["help"], ["http://a/b", "-O", "/x", "--help"]];
Deno.test("help comes by every way, on stdout", async () => {
  const results = await Promise.all(HELPS.map((args) => runClient(args)));
  for (const result of results) assertEquals(result, { ...results[0]!, code: 0, stderr: "" });
  assert(results[0]!.stdout.includes("lacewing <url> -O <path> [options]"));
  const daemons = await Promise.all(
    [["daemon", "--help"], ["daemon", "-h"], ["help", "daemon"]].map((args) => runClient(args)),
  );
  for (const result of daemons) assertEquals(result, { ...daemons[0]!, code: 0, stderr: "" });
  assert(daemons[0]!.stdout.includes("--limit"));
});

Deno.test("completion prints a script for each shell", async () => {
  for (const shell of ["bash", "zsh", "fish", "powershell"]) {
    const { code, stdout, stderr } = await runClient(["completion", shell]);
    assertEquals([code, stderr, stdout.includes("lacewing")], [0, "", true]);
  }
});

Deno.test("daemon takes the flags of a download, and says that they have no effect", () =>
  withFolder(async (folder) => {
    const config = `${folder}/client.yaml`;
    await Deno.writeTextFile(config, "upload: { tcpListen: { port: 0 } }\nhealth: { tcpListen: { port: 0 } }\n");
    const own = ["--config", config, "--workhome", folder, "--daemon-sock", `${folder}/d.sock`, "--logdir", folder];
    const daemon = new Child([...denoRun("cli/main.ts"), "daemon", "-O", "/x", "--tag", "t", ...own]);
    await daemon.line((line) => line.startsWith("ready "));
    daemon.kill("SIGTERM");
    const { code, stderr } = await daemon.ended;
    assertEquals([code, stderr], [
      0,
      "lacewing: --output, --tag have no effect on a daemon: give them to a download\n",
    ]);
  }));

Deno.test("doc writes the manual into a new folder", () =>
  withFolder(async (folder) => {
    assertEquals(await runClient(["doc", "--path", "a/b"], { cwd: folder }), { code: 0, stdout: "", stderr: "" });
    for (const { name, text } of manualFiles(VERSION)) {
      assertEquals(await Deno.readTextFile(`${folder}/a/b/${name}`), text);
    }
    await Deno.writeTextFile(`${folder}/file`, "");
    const failed = await runClient(["doc", "--path", "file/x"], { cwd: folder });
    assertEquals([failed.code, failed.stderr.startsWith("lacewing: Cannot make folder ")], [11, true]);
  }));

const WRONG: [string[], string[]][] = [
  [[], ["no URL", "lacewing help"]],
  [["--nothing-like-it"], ["--nothing-like-it"]],
  [["--outptu", "/x", "http://a/b"], ["--outptu", "did you mean --output?"]],
  [["-Q"], ["-Q"]],
  [["dameon"], ["dameon", "did you mean daemon?"]],
  [["http://a/b", "http://c/d"], ["http://a/b", "http://c/d"]],
  [["http://a/b", "-O"], ["-O", "missing"]],
  [["http://a/b", "--timeout", "soon"], ["--timeout", "soon"]],
  [["http://a/b", "--show-progress", "--console"], ["--show-progress", "--console"]],
  [["http://a/b", "--tag", "x", "--digest", "y"], ["--tag", "--digest"]],
  [["http://a/b", "--recursive", "--range", "0-9"], ["--recursive", "--range"]],
  [["http://a/b", "-r", "--digest", `sha256:${"0".repeat(64)}`], ["--recursive", "--digest"]],
  [["http://a/b", "--list"], ["--list", "--recursive"]],
  [["http://a/b", "--original-offset"], ["--original-offset without --range"]],
  [["ftp://a/b"], ["ftp", "http, https"]],
  [["http://a/b", "--config", "/none.yaml"], ["/none.yaml", "no such file"]],
  [["http://a/\x1b[31m\x07 b c", "x\x1b[2J"], ["two URLs", "\\u001b"]],
  [["help", "dameon"], ["dameon", "did you mean daemon?"]],
  [["help", "daemon", "doc"], ["doc", "one argument"]],
  [["version", "now"], ["now", "no argument"]],
  [["plugin", "--json"], ["--json"]],
  [["completion"], ["bash, zsh, fish, powershell"]],
  [["completion", "tcsh"], ["tcsh", "bash"]],
  [["doc", "--path", ""], ["--path", "empty"]],
  [["daemon", "--ratelimit", "5"], ["--ratelimit", "daemon"]],
  [["daemon", "--tag", "t", "--digest", "md5:0"], ["--tag", "--digest"]],
  [["daemon", "--list"], ["--list", "--recursive"]],
  [["daemon", "now"], ["now", "no argument"]],
];
for (const [args, words] of WRONG) {
  Deno.test(`wrong use is exit code 2 and one line: lacewing ${args.join(" ").replace(/[^ -~]/g, "?")}`, async () => {
    const { code, stdout, stderr } = await runClient(args);
    assertEquals([code, stdout], [2, ""]);
    assert(/^lacewing: [\x20-\x7e]+\n$/.test(stderr), stderr);
    for (const word of words) assert(stderr.includes(word), `${word} in ${stderr}`);
  });
}
