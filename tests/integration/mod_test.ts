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

for (const { name, code, promises } of ALL) {
  Deno.test(`${name} does what its comments say`, async () => {
    const folder = await Deno.makeTempDir();
    try {
      const program = `${folder}/example.ts`;
      await Deno.writeTextFile(
        program,
        code.replaceAll('"./mod.ts"', JSON.stringify(`file://${projectRoot()}/mod.ts`)),
      );
      const { code: exitCode, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
        args: ["run", "-A", "--check", ...denoFlags(mapInUse()), program],
        env: { TMPDIR: folder },
      }).output();
      assertEquals(exitCode, 0, new TextDecoder().decode(stderr));
      if (promises.length > 0) assertEquals(new TextDecoder().decode(stdout).trim().split("\n"), promises);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
