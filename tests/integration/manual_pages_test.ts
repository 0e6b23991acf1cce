/** The documents of `lacewing doc`, read by the real `man` where it is installed. */
import { assert, assertEquals } from "@std/assert";
import { COMMANDS } from "../../cli/options.ts";
import { main } from "../../cli/main.ts";

async function man(page: string): Promise<string | null> {
  try {
    const { code, stdout, stderr } = await new Deno.Command("man", {
      args: ["--warnings", "-E", "ascii", "-P", "cat", "-l", page],
      env: { MANWIDTH: "80", LC_ALL: "C", MANROFFOPT: "-c" },
      stdin: "null",
    }).output();
    assertEquals([code, new TextDecoder().decode(stderr)], [0, ""], page);
    // Overstriking is how bold letters are printed on paper.
    return new TextDecoder().decode(stdout).replace(/.[\b]/g, "");
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

Deno.test("doc --path writes pages that man shows without a warning, within 80 columns", async () => {
  const parent = await Deno.makeTempDir();
  try {
    const folder = `${parent}/made/on the way`;
    assertEquals(await main(["doc", "--path", folder]), 0);
    const names = [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
    assertEquals(names.filter((name) => name.endsWith(".1")).length, COMMANDS.length);
    assertEquals(names.filter((name) => name.endsWith(".md")).length, COMMANDS.length);
    for (const name of names.filter((name) => name.endsWith(".1"))) {
      const text = await man(`${folder}/${name}`);
      if (text === null) return;
      assert(text.includes("NAME") && text.includes("lacewing"), name);
      const long = text.split("\n").filter((line) => line.length > 80);
      assertEquals(long, [], name);
    }
    const page = await man(`${folder}/lacewing.1`);
    for (const word of ["--output", "--original-offset", "--jaeger", "--pprof-port", "EXIT"]) {
      assert(page!.includes(word), word);
    }
  } finally {
    await Deno.remove(parent, { recursive: true });
  }
});

Deno.test("doc refuses a folder that cannot be made, and an argument", async () => {
  const file = await Deno.makeTempFile();
  try {
    assertEquals(await main(["doc", "--path", `${file}/below`]), 11);
    assertEquals(await main(["doc", "--path="]), 2);
    assertEquals(await main(["doc", "here"]), 2);
  } finally {
    await Deno.remove(file);
  }
});
