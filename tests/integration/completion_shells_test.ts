/** The completion scripts loaded into the real shells, and asked as a user asks them. Shells that are not installed are left out. */
import { assertEquals } from "@std/assert";
import { renderCompletion, type Shell } from "../../cli/completion.ts";

const ZSH = new URL("../testutil/complete.zsh", import.meta.url).pathname;
const FISH =
  "source $argv[1]; cd $argv[2]; for line in $argv[3..]; echo (complete -C $line | string split -f1 \\t); end";

/** What each shell makes of a line: zsh completes it, fish lists what may follow. */
const LINES: [line: string, zsh: string, fish: string][] = [
  ["lacewing comp", "lacewing completion ", "completion"],
  ["lacewing completion z", "lacewing completion zsh ", "zsh"],
  ["lacewing --rat", "lacewing --ratelimit=", "--ratelimit"],
  ["lacewing --show", "lacewing --show-progress ", "--show-progress"],
  ["lacewing http://h/f -H x --jae", "lacewing http://h/f -H x --jaeger=", "--jaeger"],
  ["lacewing daemon --lim", "lacewing daemon --limit=", "--limit"],
  ["lacewing daemon --rat", "lacewing daemon --rat", ""],
  ["lacewing -O onlyf", "lacewing -O onlyfile.bin ", "onlyfile.bin"],
  ["lacewing --workhome only", "lacewing --workhome onlydir/", "onlydir/"],
  ["lacewing doc --pa", "lacewing doc --path=", "--path"],
];

async function ask(shell: Shell, command: string, before: string[]): Promise<string[] | null> {
  const folder = await Deno.makeTempDir();
  try {
    const script = `${folder}/completion`;
    await Deno.writeTextFile(script, renderCompletion(shell));
    await Deno.mkdir(`${folder}/place/onlydir`, { recursive: true });
    await Deno.writeTextFile(`${folder}/place/onlyfile.bin`, "");
    const args = [...before, script, `${folder}/place`, ...LINES.map(([line]) => line)];
    const signal = AbortSignal.timeout(30_000);
    const env = { HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder, TERM: "xterm" };
    const { stdout, stderr } = await new Deno.Command(command, { args, env, signal, stdin: "null" }).output();
    assertEquals(new TextDecoder().decode(stderr), "");
    return new TextDecoder().decode(stdout).trimEnd().split("\n").map((line) => line.replace(/\r$/, ""));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("zsh completes commands, options, shells, files and folders", async () => {
  const lines = await ask("zsh", "zsh", ["-f", ZSH]);
  if (lines !== null) assertEquals(lines.map((line) => line.trimEnd()), LINES.map(([, zsh]) => zsh.trimEnd()));
});

Deno.test("fish offers commands, options, shells, files and folders", async () => {
  const lines = await ask("fish", "fish", ["--no-config", "-c", FISH]);
  if (lines !== null) assertEquals(lines, LINES.map(([, , fish]) => fish));
});
