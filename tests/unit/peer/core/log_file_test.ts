/** The bounded log file, on a real file system. */
import { assertEquals, assertThrows } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { openLogFile } from "../../../../peer/core/log_file.ts";

async function withFolder(run: (folder: string) => void | Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function names(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

Deno.test("openLogFile() makes the folder and appends to what is there", () =>
  withFolder((folder) => {
    for (const line of ["one", "two"]) {
      using file = openLogFile(`${folder}/a/b/core.log`);
      file.write(line);
    }
    assertEquals(Deno.readTextFileSync(`${folder}/a/b/core.log`), "one\ntwo\n");
  }));

Deno.test("a full log file moves on, and only so many older ones stay", () =>
  withFolder((folder) => {
    using file = openLogFile(`${folder}/core.log`, { lengthMax: 10, countMax: 3 });
    for (let number = 1; number <= 9; number++) file.write(`line${number}`);
    assertEquals(names(folder), ["core.log", "core.log.1", "core.log.2"]);
    assertEquals(Deno.readTextFileSync(`${folder}/core.log`), "line9\n");
    assertEquals(Deno.readTextFileSync(`${folder}/core.log.2`), "line7\n");
  }));

Deno.test("a line longer than the bound is kept whole in a file of its own", () =>
  withFolder((folder) => {
    using file = openLogFile(`${folder}/core.log`, { lengthMax: 10 });
    file.write("short");
    file.write("much longer than the bound");
    assertEquals(Deno.readTextFileSync(`${folder}/core.log`), "much longer than the bound\n");
  }));

Deno.test("a line after the end is dropped, not an error", () =>
  withFolder((folder) => {
    const file = openLogFile(`${folder}/core.log`);
    file[Symbol.dispose]();
    file.write("late");
    assertEquals(Deno.readTextFileSync(`${folder}/core.log`), "");
  }));

Deno.test("openLogFile() says which file it cannot open, and what to do", () =>
  withFolder((folder) => {
    Deno.writeTextFileSync(`${folder}/file`, "");
    const error = assertThrows(() => openLogFile(`${folder}/file/core.log`), LacewingError, "--logdir");
    assertEquals(error.code, "file");
  }));
