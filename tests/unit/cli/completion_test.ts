/** The completion scripts: bash is asked for real, the others where they are installed. */
import { assert, assertEquals } from "@std/assert";
import { SHELLS } from "../../../cli/commands.ts";
import { renderCompletion } from "../../../cli/completion.ts";
import { COMMANDS, isAvailable, optionsOf } from "../../../cli/options.ts";

async function run(command: string, ...args: string[]): Promise<{ code: number; text: string } | null> {
  try {
    const { code, stdout, stderr } = await new Deno.Command(command, { args, stdin: "null" }).output();
    const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { code, text: decode(stdout) + decode(stderr) };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** What bash would offer for the words, the last of which is unfinished. */
async function offers(...words: string[]): Promise<string[]> {
  const quoted = words.map((word) => `'${word}'`).join(" ");
  const script = `${renderCompletion("bash")}
compopt() { :; }
COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _lacewing; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const result = await run("bash", "-c", script);
  assertEquals(result?.code, 0, result?.text);
  return result!.text.split("\n").filter((line) => line !== "");
}

for (const shell of SHELLS) {
  Deno.test(`completion of ${shell} names every option that works, and none that does not`, () => {
    const script = renderCompletion(shell);
    const written = shell === "fish" ? (name: string) => ` -l ${name} ` : (name: string) => `--${name}`;
    const all = COMMANDS.flatMap((command) =>
      optionsOf(command).map((option) => ({ name: option.name, works: isAvailable(option, command) }))
    );
    const working = new Set(all.filter(({ works }) => works).map(({ name }) => name));
    for (const { name } of all) assertEquals(script.includes(written(name)), working.has(name), name);
  });
}

Deno.test("bash completes commands, options of the command, shells and files", async () => {
  assertEquals(await offers("lacewing", "comp"), ["completion"]);
  assertEquals(await offers("lacewing", "--rat"), ["--ratelimit"]);
  assertEquals(await offers("lacewing", "daemon", "--lim"), ["--limit"]);
  assertEquals(await offers("lacewing", "daemon", "--rat"), []);
  assertEquals(await offers("lacewing", "completion", "z"), ["zsh"]);
  assertEquals(
    await offers("lacewing", "http://a/b", "-O", "/etc/host"),
    await offers("lacewing", "--config", "/etc/host"),
  );
  assert((await offers("lacewing", "-O", "/etc/hos")).includes("/etc/hosts"));
  assertEquals(await offers("lacewing", "--tag", ""), []);
});

const CHECKS: [string, string, string[]][] = [
  ["bash", "bash", ["-n"]],
  ["zsh", "zsh", ["-n"]],
  ["fish", "fish", ["--no-execute"]],
  ["powershell", "pwsh", ["-NoProfile", "-File"]],
];
for (const [shell, command, args] of CHECKS) {
  Deno.test(`${shell} accepts its completion script, where ${command} is installed`, async () => {
    const path = await Deno.makeTempFile({ suffix: shell === "powershell" ? ".ps1" : "" });
    try {
      await Deno.writeTextFile(path, renderCompletion(shell as typeof SHELLS[number]));
      const result = await run(command, ...args, path);
      if (result !== null) assertEquals(result, { code: 0, text: "" });
    } finally {
      await Deno.remove(path);
    }
  });
}
