// covers: mod.ts, cli/library/download.ts, cli/library/preheat.ts
/** Runs every example of the library's documentation as a program of its own, and holds it to what its comment promises. */
import { assert, assertEquals } from "@std/assert";
import { denoFlags, mapInUse, projectRoot } from "../../.ci/deno.ts";

const FILES = ["mod.ts", "cli/library/download.ts", "cli/library/preheat.ts", "peer/core/task_id.ts"];

interface Example {
  readonly name: string;
  readonly code: string;
  /** What its `console.log(…); // promise` lines print. */
  readonly promises: string[];
}

function examples(file: string): Example[] {
  const text = Deno.readTextFileSync(`${projectRoot()}/${file}`);
  return [...text.matchAll(/\* ```ts\n([\s\S]*?)\* ```/g)].map(([, block = ""], index) => {
    const code = block.replace(/^ ?\* ?/gm, "");
    const promises = [...code.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, promise = ""]) => promise);
    return { name: `example ${index + 1} of ${file}`, code, promises };
  });
}

const ALL = FILES.flatMap(examples);

Deno.test("the library's documentation has an example for each thing to call", () => {
  const code = ALL.map((example) => example.code).join("\n");
  for (const name of ["startManager", "startPeer", "download", "preheat", "taskId"]) {
    assert(code.includes(`${name}(`), `no example calls ${name}`);
  }
});

/** Runs `deno` on programs in a folder of their own. */
async function withPrograms(
  programs: readonly string[],
  run: (paths: string[], folder: string) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const paths = programs.map((_, index) => `${folder}/example_${index}.ts`);
    const library = JSON.stringify(`file://${projectRoot()}/mod.ts`);
    for (const [index, code] of programs.entries()) {
      await Deno.writeTextFile(paths[index]!, code.replaceAll('"./mod.ts"', library));
    }
    await run(paths, folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function deno(args: string[], folder: string): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, env: { TMPDIR: folder } }).output();
  assertEquals(code, 0, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

Deno.test("every example of the library type-checks", async () => {
  const programs = ALL.map(({ code }) => code);
  await withPrograms(
    programs,
    async (paths, folder) => void await deno(["check", ...denoFlags(mapInUse()), ...paths], folder),
  );
});

for (const { name, code, promises } of ALL) {
  Deno.test(`${name} does what its comments say`, async () => {
    await withPrograms([code], async ([path], folder) => {
      const output = await deno(["run", "-A", "--no-check", ...denoFlags(mapInUse()), path!], folder);
      assertEquals(output.trim().split("\n"), promises);
    });
  });
}
