import { assertEquals, assertRejects } from "@std/assert";
import { LentMemory } from "../../bench/lent_memory.ts";

const KIB = 1024;

Deno.test("LentMemory holds a file that gets shorter as the download goes on, some bytes ahead, and goes", async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/memory`;
  const sizeNow = async () => (await Deno.stat(path)).size / KIB;
  try {
    const memory = await LentMemory.of(path, { size: 258 * KIB, ahead: 256 * KIB });
    const sizes = [await sizeNow()];
    for (const done of [0, 1.5, 1, 2, 258]) {
      memory.release(done * KIB);
      sizes.push(await sizeNow());
    }
    assertEquals(sizes, [258, 2, 0.5, 0.5, 0, 0]);
    memory[Symbol.dispose]();
    await assertRejects(() => Deno.stat(path), Deno.errors.NotFound);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
