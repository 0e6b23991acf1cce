/** Plans carried out on a real folder: whole or not at all, with backups. */
import { assertEquals, assertRejects } from "@std/assert";
import { MachineFiles } from "../../../../cli/setup/config_files.ts";
import type { FileChange } from "../../../../cli/setup/plan.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

async function withRoot(run: (root: string, files: MachineFiles) => Promise<void>): Promise<void> {
  const root = await Deno.makeTempDir();
  try {
    await run(root, new MachineFiles(root));
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

const change = (path: string, before: string | null, after: string | null, keepsBackup = false): FileChange => ({
  path,
  before,
  after,
  keepsBackup,
});

async function tree(root: string, folder = ""): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(`${root}${folder}`)) {
    found.push(`${folder}/${name}${isDirectory ? "/" : ""}`);
    if (isDirectory) found.push(...await tree(root, `${folder}/${name}`));
  }
  return found.sort();
}

Deno.test("new files come with their folders, readable for all", () =>
  withRoot(async (root, files) => {
    assertEquals(await files.apply([change("/etc/a/b.toml", null, "x")]), [
      { what: "created", path: `${root}/etc/a/b.toml` },
    ]);
    assertEquals(await files.read("/etc/a/b.toml"), "x");
    assertEquals((await Deno.stat(`${root}/etc/a/b.toml`)).mode! & 0o777, 0o644);
    assertEquals(await files.list("/etc"), ["a"]);
    assertEquals([await files.read("/none"), await files.list("/none"), await files.read("/etc/a/b.toml/c")], [
      null,
      [],
      null,
    ]);
  }));

Deno.test("a changed file keeps its rights, and its first text stands beside it until it is back", () =>
  withRoot(async (root, files) => {
    await Deno.writeTextFile(`${root}/f`, "old");
    await Deno.chmod(`${root}/f`, 0o600);
    assertEquals((await files.apply([change("/f", "old", "new", true)])).map(({ what }) => what), ["changed", "kept"]);
    assertEquals([await files.read("/f"), await files.read("/f.lacewing-backup")], ["new", "old"]);
    for (const name of ["f", "f.lacewing-backup"]) {
      assertEquals((await Deno.stat(`${root}/${name}`)).mode! & 0o777, 0o600);
    }
    assertEquals(await files.apply([change("/f", "new", "new")]), [{ what: "unchanged", path: `${root}/f` }]);
    await files.apply([change("/f", "new", "old")]);
    assertEquals(await tree(root), ["/f"]);
  }));

Deno.test("a symbolic link stays one, and what it leads to is changed", () =>
  withRoot(async (root, files) => {
    await Deno.writeTextFile(`${root}/real`, "old");
    await Deno.symlink(`${root}/real`, `${root}/f`);
    await files.apply([change("/f", "old", "new")]);
    assertEquals([(await Deno.lstat(`${root}/f`)).isSymlink, await files.read("/real")], [true, "new"]);
  }));

Deno.test("the folder of a registry goes with its last file", () =>
  withRoot(async (root, files) => {
    await files.apply([
      change("/etc/certs.d/r.test/hosts.toml", null, "x"),
      change("/etc/certs.d/s.test/hosts.toml", null, "x"),
    ]);
    await Deno.writeTextFile(`${root}/etc/certs.d/s.test/ca.crt`, "");
    await files.apply([
      change("/etc/certs.d/r.test/hosts.toml", "x", null),
      change("/etc/certs.d/s.test/hosts.toml", "x", null),
    ]);
    assertEquals(await tree(root), ["/etc/", "/etc/certs.d/", "/etc/certs.d/s.test/", "/etc/certs.d/s.test/ca.crt"]);
  }));

Deno.test("one file that cannot be written leaves all as they were", () =>
  withRoot(async (root, files) => {
    await Deno.writeTextFile(`${root}/f`, "old");
    await Deno.writeTextFile(`${root}/file`, "");
    const changes = [change("/f", "old", "new"), change("/new/g", null, "x"), change("/file/below/h", null, "x")];
    const error = await assertRejects(() => files.apply(changes), LacewingError, `${root}/file/below`);
    assertEquals(error.code, "file");
    assertEquals([await tree(root), await files.read("/f")], [["/f", "/file"], "old"]);
  }));

Deno.test("a path that is a folder is an error of the file", () =>
  withRoot(async (root, files) => {
    await Deno.mkdir(`${root}/f`);
    const error = await assertRejects(() => files.read("/f"), LacewingError, "Cannot read");
    assertEquals(error.code, "file");
  }));

Deno.test("a link that leads nowhere is an error, and stays", () =>
  withRoot(async (root, files) => {
    await Deno.symlink(`${root}/kept-elsewhere`, `${root}/f`);
    const error = await assertRejects(() => files.read("/f"), LacewingError, "leads nowhere");
    assertEquals([error.code, await tree(root)], ["file", ["/f"]]);
  }));

for (
  const [what, bytes, words] of [
    ["Latin-1", [0x22, 0xe9, 0x22], "want text in UTF-8"],
    ["a byte order mark", [0xef, 0xbb, 0xbf, 0x7b, 0x7d], "byte order mark"],
  ] as const
) {
  Deno.test(`a file with ${what}, which would not come back as it was, is an error`, () =>
    withRoot(async (root, files) => {
      await Deno.writeFile(`${root}/f`, Uint8Array.from(bytes));
      const error = await assertRejects(() => files.read("/f"), LacewingError, words);
      assertEquals(error.code, "config_invalid");
    }));
}
