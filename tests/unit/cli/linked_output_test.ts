/** The output that is a second name of the daemon's file: what may be in its way, and what must stay as it is. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { sha256Hex } from "../../../peer/core/digest.ts";
import { LacewingError } from "../../../peer/core/errors.ts";
import { LinkedOutput } from "../../../cli/linked_output.ts";
import { OutputError } from "../../../cli/output_file.ts";

const TEXT = "0123456789";
const { signal } = new AbortController();

async function withStore(run: (folder: string, store: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/store`, TEXT);
    await run(folder, `${folder}/store`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function inodeOf(path: string): Promise<number | null> {
  return (await Deno.lstat(path)).ino;
}

Deno.test("takeFile() gives the daemon's file its second name, in folders that are made", () =>
  withStore(async (folder, store) => {
    const output = await LinkedOutput.prepare(`${folder}/a/b/out`, { digest: null, signal });
    assertEquals([...Deno.readDirSync(`${folder}/a/b`)], []);
    assertEquals(await output.takeFile(store, { offset: 2, length: 3 }), true);
    await output.finish();
    assertEquals(await inodeOf(`${folder}/a/b/out`), await inodeOf(store));
  }));

Deno.test("takeFile() is content with an output that is the daemon's file already", () =>
  withStore(async (folder, store) => {
    await Deno.link(store, `${folder}/out`);
    const output = await LinkedOutput.prepare(`${folder}/out`, { digest: null, signal });
    assertEquals(await output.takeFile(store, { offset: 0, length: 1 }), true);
  }));

Deno.test("takeFile() leaves another file in the way as it is, one that came meanwhile too", () =>
  withStore(async (folder, store) => {
    const output = await LinkedOutput.prepare(`${folder}/out`, { digest: null, signal });
    await Deno.writeTextFile(`${folder}/out`, "mine");
    const error = await assertRejects(() => output.takeFile(store, { offset: 0, length: 1 }), OutputError);
    assertEquals(error.code, "file");
    assert(error.message.includes(`${folder}/out`) && error.message.includes(store), error.message);
    assertEquals(await Deno.readTextFile(`${folder}/out`), "mine");
  }));

Deno.test("takeFile() names the daemon's file that is gone", () =>
  withStore(async (folder) => {
    const output = await LinkedOutput.prepare(`${folder}/out`, { digest: null, signal });
    const error = await assertRejects(() => output.takeFile(`${folder}/gone`, null), OutputError);
    assert(error.message.includes(`${folder}/gone`), error.message);
  }));

Deno.test("takeFile() checks the digest of the ranged bytes alone", () =>
  withStore(async (folder, store) => {
    const part = { offset: 2, length: 3 };
    const digestOf = (text: string) => ({ algorithm: "sha256" as const, hex: sha256Hex(text) });
    const right = await LinkedOutput.prepare(`${folder}/right`, { digest: digestOf("234"), signal });
    assertEquals(await right.takeFile(store, part), true);
    const wrong = await LinkedOutput.prepare(`${folder}/wrong`, { digest: digestOf(TEXT), signal });
    const error = await assertRejects(() => wrong.takeFile(store, part), LacewingError);
    assertEquals(error.code, "digest_mismatch");
    assertEquals(await Deno.lstat(`${folder}/wrong`).catch(() => null), null);
  }));

Deno.test("prepare() refuses folders and symbolic links in the place of the output", () =>
  withStore(async (folder, store) => {
    await Deno.mkdir(`${folder}/folder`);
    await Deno.symlink(store, `${folder}/symlink`);
    for (const name of ["folder", "symlink", "store/below"]) {
      const error = await assertRejects(
        () => LinkedOutput.prepare(`${folder}/${name}`, { digest: null, signal }),
        OutputError,
      );
      assertEquals([error.code, error.message.includes(`${folder}/`)], ["file", true]);
    }
  }));

Deno.test("checkDaemon() refuses a daemon on another file system, and one that does not say passes", () =>
  withStore(async (folder) => {
    const output = await LinkedOutput.prepare(`${folder}/out`, { digest: null, signal });
    await output.checkDaemon(null);
    await output.checkDaemon(folder);
    await output.checkDaemon(`${folder}/not-there`);
    const error = await assertRejects(() => output.checkDaemon("/proc"), OutputError);
    assert(error.message.includes(`${folder}/out`) && error.message.includes("/proc"), error.message);
  }));

Deno.test("writeAll() is never a way", () =>
  withStore(async (folder) => {
    const output = await LinkedOutput.prepare(`${folder}/out`, { digest: null, signal });
    await assertRejects(() => output.writeAll(), TypeError);
  }));
