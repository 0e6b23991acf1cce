/** What is found out about this machine, on its real file system. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { ensurePrivateFolder, machineFacts } from "../../../../peer/core/machine.ts";

Deno.test("writable() holds for a folder that can be made, not for a file", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/file`, "");
    const { writable } = machineFacts();
    assert(writable(folder));
    assert(writable(`${folder}/a/b`));
    assertEquals(writable(`${folder}/file`), false);
    assertEquals(writable(`${folder}/file/below`), false);
    assertEquals(writable("/proc/none/at/all"), false);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("ensurePrivateFolder() makes a folder of mode 0700 and refuses an open one, a link and a file", async () => {
  const folder = await Deno.makeTempDir();
  try {
    ensurePrivateFolder(`${folder}/own`);
    assertEquals((Deno.lstatSync(`${folder}/own`).mode ?? 0) & 0o777, 0o700);
    ensurePrivateFolder(`${folder}/own`);
    Deno.mkdirSync(`${folder}/open`);
    Deno.chmodSync(`${folder}/open`, 0o777);
    Deno.symlinkSync(`${folder}/own`, `${folder}/link`);
    Deno.writeTextFileSync(`${folder}/file`, "");
    for (const name of ["open", "link", "file", "file/below"]) {
      assertEquals(assertThrows(() => ensurePrivateFolder(`${folder}/${name}`), LacewingError).code, "file");
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
