/** Markdown and man pages of every command. */
import { assert, assertEquals } from "@std/assert";
import { manualFiles, renderManPage, renderMarkdown } from "../../../cli/manual.ts";
import { COMMANDS, optionsOf } from "../../../cli/options.ts";

Deno.test("the manual has a Markdown and a man page for every command", () => {
  const names = manualFiles("1.2.3").map(({ name }) => name);
  assertEquals(names.length, 2 * COMMANDS.length);
  for (const name of ["lacewing.md", "lacewing.1", "lacewing-daemon.md", "lacewing-daemon.1"]) {
    assert(names.includes(name), name);
  }
});

for (const command of COMMANDS) {
  Deno.test(`the manual of ${command} names every option`, () => {
    const page = renderManPage(command, "1.2.3").replaceAll("\\-", "-");
    for (const { name } of optionsOf(command)) {
      assert(renderMarkdown(command).includes(`--${name}`), name);
      assert(page.includes(`--${name}`), name);
    }
  });

  Deno.test(`the man page of ${command} is accepted by groff, where it is installed`, async () => {
    const child = (() => {
      try {
        return new Deno.Command("groff", {
          args: ["-man", "-ww", "-Tutf8"],
          stdin: "piped",
          stdout: "piped",
          stderr: "piped",
        }).spawn();
      } catch {
        return null;
      }
    })();
    if (child === null) return;
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(renderManPage(command, "1.2.3")));
    await writer.close();
    const { code, stdout, stderr } = await child.output();
    assertEquals([code, new TextDecoder().decode(stderr)], [0, ""]);
    assert(new TextDecoder().decode(stdout).includes("lacewing"));
  });
}

Deno.test("links between Markdown pages lead to pages", () => {
  const files = manualFiles("1.2.3");
  for (const { text } of files) {
    for (const [, target] of text.matchAll(/\]\(([^)]+)\)/g)) {
      assert(files.some(({ name }) => name === target), target);
    }
  }
});
