/** Outputs on a real file system: atomic, private until finished, gone when they fail. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { LacewingError } from "../../../peer/core/errors.ts";
import { OutputFile } from "../../../cli/output_file.ts";

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function chunks(...texts: string[]): () => Promise<Uint8Array | null> {
  const rest = texts.map((text) => new TextEncoder().encode(text));
  return () => Promise.resolve(rest.shift() ?? null);
}

function names(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

async function failure(action: () => Promise<unknown>): Promise<[string, string]> {
  const error = await assertRejects(action, LacewingError);
  return [error.code, error.message];
}

Deno.test("an output has its name only when it is finished", () =>
  withFolder(async (folder) => {
    using output = await OutputFile.prepare(`${folder}/new/deep/out`);
    assertEquals(await output.write(chunks("ab", "c")), 3);
    assertEquals(names(`${folder}/new/deep`).length, 1);
    assert(names(`${folder}/new/deep`)[0]!.startsWith(".out.lacewing-"));
    await output.commit(3);
    assertEquals(names(`${folder}/new/deep`), ["out"]);
    assertEquals(await Deno.readTextFile(`${folder}/new/deep/out`), "abc");
    assertEquals((await Deno.lstat(`${folder}/new/deep/out`)).mode! & 0o777, 0o666 & ~Deno.umask());
  }));

Deno.test("an output that fails leaves the old file and nothing else", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/out`, "old");
    {
      using output = await OutputFile.prepare(`${folder}/out`);
      await output.write(chunks("half"));
      assertEquals(names(folder).length, 2);
    }
    assertEquals([names(folder), await Deno.readTextFile(`${folder}/out`)], [["out"], "old"]);
    using output = await OutputFile.prepare(`${folder}/out`);
    await output.write(chunks("half"));
    const [code, message] = await failure(() => output.commit(5));
    assertEquals([code, message.includes("5 B are wanted")], ["file", true]);
    output.discard();
    assertEquals([names(folder), await Deno.readTextFile(`${folder}/out`)], [["out"], "old"]);
  }));

Deno.test("an output begins anew after discard()", () =>
  withFolder(async (folder) => {
    using output = await OutputFile.prepare(`${folder}/out`);
    await output.write(chunks("first"));
    output.discard();
    await output.write(chunks("second"));
    await output.commit(6);
    assertEquals(await Deno.readTextFile(`${folder}/out`), "second");
  }));

Deno.test("a finished file is taken by hard link, even onto a name that is a link of it already", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/store`, "content");
    for (const _round of [1, 2]) {
      using output = await OutputFile.prepare(`${folder}/out`);
      assertEquals(await output.takeFile(`${folder}/store`), true);
      await output.commit(7);
    }
    assertEquals((await Deno.stat(`${folder}/store`)).ino, (await Deno.stat(`${folder}/out`)).ino);
    assertEquals(names(folder), ["out", "store"]);
  }));

Deno.test("a finished file on another file system is copied, with the mode of a new file", async () => {
  const other = await Deno.makeTempDir({ dir: "/dev/shm" }).catch(() => null);
  if (other === null || (await Deno.stat("/dev/shm")).dev === (await Deno.stat("/tmp")).dev) return;
  try {
    await Deno.writeTextFile(`${other}/store`, "content", { mode: 0o600 });
    await withFolder(async (folder) => {
      using output = await OutputFile.prepare(`${folder}/out`);
      assertEquals(await output.takeFile(`${other}/store`), true);
      await output.commit(7);
      assertEquals((await Deno.lstat(`${folder}/out`)).mode! & 0o777, 0o666 & ~Deno.umask());
    });
  } finally {
    await Deno.remove(other, { recursive: true });
  }
});

Deno.test("a part of a finished file is copied and followed", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/store`, "0123456789");
    const { signal } = new AbortController();
    using output = await OutputFile.prepare(`${folder}/out`);
    let seen = "";
    const follow = (bytes: Uint8Array) => void (seen += new TextDecoder().decode(bytes));
    assert(await output.takeRange(`${folder}/store`, { range: { offset: 3, length: 4 }, follow, signal }));
    await output.commit(4);
    assertEquals([await Deno.readTextFile(`${folder}/out`), seen], ["3456", "3456"]);
    using tooLong = await OutputFile.prepare(`${folder}/more`);
    const [code] = await failure(() =>
      tooLong.takeRange(`${folder}/store`, { range: { offset: 8, length: 4 }, signal })
    );
    assertEquals(code, "file");
  }));

Deno.test("a file that cannot be read is not taken", () =>
  withFolder(async (folder) => {
    using output = await OutputFile.prepare(`${folder}/out`);
    assertEquals(await output.takeFile(`${folder}/none`), false);
    const { signal } = new AbortController();
    assertEquals(await output.takeRange(`${folder}/none`, { range: { offset: 0, length: 1 }, signal }), false);
  }));

Deno.test("a symbolic link at the output's place is replaced, its target is not touched", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/target`, "old");
    await Deno.symlink(`${folder}/target`, `${folder}/out`);
    using output = await OutputFile.prepare(`${folder}/out`);
    await output.write(chunks("new"));
    await output.commit(3);
    assertEquals(await Deno.readTextFile(`${folder}/target`), "old");
    assert((await Deno.lstat(`${folder}/out`)).isFile);
  }));

Deno.test("what cannot be an output is refused before anything is downloaded", () =>
  withFolder(async (folder) => {
    await Deno.mkdir(`${folder}/dir`);
    await Deno.writeTextFile(`${folder}/file`, "");
    await new Deno.Command("mkfifo", { args: [`${folder}/fifo`] }).output();
    // As /dev/stdout, which root could replace for everybody.
    await Deno.symlink(`${folder}/fifo`, `${folder}/to-fifo`);
    await Deno.symlink("/proc/self/fd/1", `${folder}/to-stdout`);
    const rows: [string, string][] = [
      [`${folder}/dir`, "it is a folder"],
      [`${folder}/fifo`, "device, pipe or socket"],
      ["/dev/null", "device, pipe or socket"],
      [`${folder}/to-fifo`, "device, pipe or socket"],
      [`${folder}/to-stdout`, "device, pipe or socket"],
      [`${folder}/file/out`, "no folder"],
      [`${folder}/${"x".repeat(300)}`, "too long"],
    ];
    for (const [path, words] of rows) {
      const [code, message] = await failure(() => OutputFile.prepare(path));
      assertEquals([code, message.includes(words)], ["file", true], message);
      assert(message.includes(folder) || path === "/dev/null");
    }
  }));

Deno.test({
  name: "an output in a folder that is not this user's is refused",
  // Root may write everywhere.
  ignore: Deno.uid() === 0,
  fn: () => failure(() => OutputFile.prepare("/out")).then(([code]) => assertEquals(code, "file")),
});
