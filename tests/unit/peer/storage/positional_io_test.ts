import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { closeSync, openSync } from "node:fs";
import { PositionalIo } from "../../../../peer/storage/positional_io.ts";

const CONTENT = new TextEncoder().encode("0123456789");

interface It {
  io: PositionalIo;
  path: string;
  /** Each call on this thread takes `callMs` on it. */
  clock: { nowMs: number; callMs: number };
}

/** A file with CONTENT. */
async function withFile(
  act: (it: It) => Promise<void>,
  mode = "r+",
): Promise<void> {
  const path = await Deno.makeTempFile();
  await Deno.writeFile(path, CONTENT);
  const descriptor = openSync(path, mode);
  const clock = { nowMs: 0, callMs: 0 };
  // Each question for the time is a call later.
  const io = new PositionalIo({ path, descriptor }, () => clock.nowMs += clock.callMs);
  try {
    await act({ io, path, clock });
  } finally {
    io.close();
    closeSync(descriptor);
    await Deno.remove(path);
  }
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

Deno.test("what was written at a position is read there, and nothing else is touched", () =>
  withFile(async ({ io }) => {
    assertEquals(io.write(new TextEncoder().encode("ab"), 4), 2);
    const buffer = new Uint8Array(10);
    assertEquals(await io.read(buffer, 0), 10);
    assertEquals(textOf(buffer), "0123ab6789");
    assertEquals(await io.read(buffer.subarray(0, 3), 3), 3);
    assertEquals(textOf(buffer), "3ab3ab6789");
  }));

Deno.test("a read at or over the end gets what is there", () =>
  withFile(async ({ io }) => {
    const buffer = new Uint8Array(8);
    assertEquals(await io.read(buffer, 10), 0);
    assertEquals(await io.read(buffer, 7), 3);
    assertEquals(textOf(buffer.subarray(0, 3)), "789");
  }));

Deno.test("quick reads stay on this thread", () =>
  withFile(({ io, clock }) => {
    clock.callMs = 1.9;
    for (let count = 0; count < 5; count++) assertEquals(io.read(new Uint8Array(2), 0), 2);
    return Promise.resolve();
  }));

Deno.test("after two slow reads other threads read for a while, with the same bytes", () =>
  withFile(async ({ io, clock }) => {
    clock.callMs = 2;
    for (let count = 0; count < 2; count++) assertEquals(io.read(new Uint8Array(4), 0), 4);
    clock.callMs = 0;
    const buffer = new Uint8Array(4);
    const reading = io.read(buffer, 6);
    assert(reading instanceof Promise);
    assertEquals(await reading, 4);
    assertEquals(textOf(buffer), "6789");
  }));

Deno.test("after a slow write other threads write for a while, each at its own position", () =>
  withFile(async ({ io, path, clock }) => {
    clock.callMs = 10;
    assertEquals(io.write(CONTENT.subarray(0, 1), 9), 1);
    clock.callMs = 0;
    const writes = [..."abcd"].map((letter, index) => io.write(new TextEncoder().encode(letter), 2 * index));
    for (const write of writes) {
      assert(write instanceof Promise);
      assertEquals(await write, 1);
    }
    assertEquals(await Deno.readTextFile(path), "a1b3c5d780");
    clock.nowMs += 10_000;
    assertEquals(io.write(new TextEncoder().encode("e"), 0), 1);
    assertEquals(await Deno.readTextFile(path), "e1b3c5d780");
  }));

Deno.test("quick writes stay on this thread", () =>
  withFile(({ io, clock }) => {
    clock.callMs = 9;
    for (let count = 0; count < 5; count++) assertEquals(io.write(CONTENT, 0), 10);
    return Promise.resolve();
  }));

for (const becomes of ["removed", "another file"]) {
  Deno.test(`a slow disk's writes reach a file whose name is ${becomes}`, () =>
    withFile(async ({ io, path, clock }) => {
      clock.callMs = 10;
      io.write(CONTENT, 0);
      clock.callMs = 0;
      await Deno.remove(path);
      if (becomes === "another file") await Deno.writeTextFile(path, "not ours");
      assertEquals(await io.write(new TextEncoder().encode("ab"), 4), 2);
      const buffer = new Uint8Array(10);
      await io.read(buffer, 0);
      assertEquals(textOf(buffer), "0123ab6789");
      // For the end of the test too.
      await Deno.writeTextFile(path, "not ours", { create: becomes === "removed" });
      assertEquals(await Deno.readTextFile(path), "not ours");
    }));
}

Deno.test("a file that cannot be written or read says why", async () => {
  await withFile(({ io }) => {
    assertEquals(codeOf(() => io.write(CONTENT, 0)), "EBADF");
    return Promise.resolve();
  }, "r");
  const folder = await Deno.makeTempDir();
  const descriptor = openSync(folder, "r");
  try {
    const io = new PositionalIo({ path: folder, descriptor });
    assertEquals(codeOf(() => io.read(new Uint8Array(1), 0)), "EISDIR");
  } finally {
    closeSync(descriptor);
    await Deno.remove(folder);
  }
});

Deno.test("another thread's failure rejects", () =>
  withFile(async ({ io, clock }) => {
    clock.callMs = 10;
    for (let count = 0; count < 2; count++) assertEquals(io.read(new Uint8Array(1), 0), 1);
    assertEquals(io.write(new Uint8Array(1), 0), 1);
    clock.callMs = 0;
    await assertRejects(async () => void await io.read(new Uint8Array(1), -2));
    await assertRejects(async () => void await io.write(new Uint8Array(1), -2));
  }));

function codeOf(act: () => unknown): unknown {
  return (assertThrows(act, Error) as Error & { code?: unknown }).code;
}
