import { assertEquals, assertRejects } from "@std/assert";
import { dateFile, isCurrent, lookBelow, makeFolders } from "../../../../cli/recursive/local_file.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

const LOCAL = { size: 5, modifiedMs: 1_700_000_000_900 };
const ROWS: [claim: string, size: number | null, modifiedMs: number | null, expected: boolean | null][] = [
  ["the same length and second", 5, 1_700_000_000_000, true],
  ["another length", 6, 1_700_000_000_000, false],
  ["a later time", 5, 1_700_000_001_000, false],
  ["an earlier time", 5, 1_699_999_999_000, false],
  ["another length, no time", 6, null, false],
  ["another time, no length", null, 1, false],
  ["the same length, no time", 5, null, null],
  ["the same time, no length", null, 1_700_000_000_000, null],
  ["nothing", null, null, null],
];
for (const [claim, size, modifiedMs, expected] of ROWS) {
  Deno.test(`isCurrent() of ${claim} is ${expected}`, () => {
    assertEquals(isCurrent(LOCAL, { size, modifiedMs }), expected);
  });
}

class Folder implements AsyncDisposable {
  readonly path = Deno.makeTempDirSync({ prefix: "lacewing-test-" });
  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}

Deno.test("lookBelow() finds a plain file, and nothing where none is", async () => {
  await using folder = new Folder();
  await Deno.mkdir(`${folder.path}/d`);
  await Deno.writeTextFile(`${folder.path}/d/f`, "12345");
  await dateFile(`${folder.path}/d/f`, 1_700_000_000_000);
  assertEquals(await lookBelow(folder.path, ["d", "f"]), { size: 5, modifiedMs: 1_700_000_000_000 });
  for (const path of [["d", "g"], ["e", "f"], ["e", "f", "g"], ["h"]]) {
    assertEquals(await lookBelow(folder.path, path), null);
  }
});

Deno.test("lookBelow() takes a link in the file's place for no file: it is replaced itself", async () => {
  await using folder = new Folder();
  await Deno.writeTextFile(`${folder.path}/real`, "12345");
  await Deno.symlink("real", `${folder.path}/link`);
  assertEquals(await lookBelow(folder.path, ["link"]), null);
});

async function refused(run: () => Promise<unknown>, word: string): Promise<void> {
  const error = await assertRejects(run, LacewingError);
  assertEquals([error.code, error.message.includes(word)], ["file", true], error.message);
}

Deno.test("nothing below the folder is written through a symbolic link", async () => {
  await using folder = new Folder();
  await using outside = new Folder();
  await Deno.mkdir(`${folder.path}/d`);
  await Deno.symlink(outside.path, `${folder.path}/d/link`);
  await refused(() => lookBelow(folder.path, ["d", "link", "f"]), "symbolic link");
  await refused(() => lookBelow(folder.path, ["d", "link", "e", "f"]), "symbolic link");
  await refused(() => makeFolders(folder.path, ["d", "link"]), "symbolic link");
  await refused(() => makeFolders(folder.path, ["d", "link", "e"]), "symbolic link");
  assertEquals([...Deno.readDirSync(outside.path)], []);
});

Deno.test("a file where a folder is needed, and a folder where a file is, are said", async () => {
  await using folder = new Folder();
  await Deno.writeTextFile(`${folder.path}/f`, "");
  await Deno.mkdir(`${folder.path}/d`);
  await refused(() => lookBelow(folder.path, ["f", "g"]), "a file is in its place");
  await refused(() => makeFolders(folder.path, ["f"]), "a file is in its place");
  await refused(() => lookBelow(folder.path, ["d"]), "a folder is in its place");
});

Deno.test("makeFolders() makes all, and what is there already does not matter", async () => {
  await using folder = new Folder();
  for (let times = 0; times < 2; times++) await makeFolders(`${folder.path}/new`, ["a", "b"]);
  assertEquals((await Deno.stat(`${folder.path}/new/a/b`)).isDirectory, true);
});

Deno.test("dateFile() of a file that is gone is no failure", async () => {
  await dateFile("/nonexistent/lacewing", 0);
});
