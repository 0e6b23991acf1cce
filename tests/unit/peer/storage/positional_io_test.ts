import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { closeSync, openSync } from "node:fs";
import { PositionalIo } from "../../../../peer/storage/positional_io.ts";

const CONTENT = new TextEncoder().encode("0123456789");

/** A file with CONTENT, and a clock on which every read takes `readMs()`. */
async function withFile(
  act: (it: { io: PositionalIo; clock: { nowMs: number; readMs: number } }) => Promise<void>,
  mode = "r+",
): Promise<void> {
  const path = await Deno.makeTempFile();
  await Deno.writeFile(path, CONTENT);
  const descriptor = openSync(path, mode);
  const clock = { nowMs: 0, readMs: 0 };
  let isBegin = true;
  const io = new PositionalIo(descriptor, () => {
    if (!isBegin) clock.nowMs += clock.readMs;
    isBegin = !isBegin;
    return clock.nowMs;
  });
  try {
    await act({ io, clock });
  } finally {
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
    clock.readMs = 1.9;
    for (let count = 0; count < 5; count++) assertEquals(io.read(new Uint8Array(2), 0), 2);
    return Promise.resolve();
  }));

Deno.test("after a slow read other threads read for a while, with the same bytes", () =>
  withFile(async ({ io, clock }) => {
    clock.readMs = 2;
    assertEquals(io.read(new Uint8Array(4), 0), 4);
    clock.readMs = 0;
    const buffer = new Uint8Array(4);
    const reading = io.read(buffer, 6);
    assert(reading instanceof Promise);
    assertEquals(await reading, 4);
    assertEquals(textOf(buffer), "6789");
  }));

Deno.test("a disk that stays slow is tried on this thread ever more rarely, a quick one at once again", async () => {
  const path = await Deno.makeTempFile();
  await Deno.writeFile(path, CONTENT);
  const descriptor = openSync(path, "r");
  try {
    let nowMs = 0;
    let readMs = 20;
    const times: number[] = [];
    // The first of two questions for the time begins a read on this thread, the second ends it.
    const io = new PositionalIo(descriptor, () => times.shift() ?? nowMs);
    const tries: number[] = [];
    for (; nowMs < 20_000; nowMs += 50) {
      times.push(nowMs, nowMs + readMs);
      const read = io.read(new Uint8Array(1), 0);
      times.length = 0;
      if (typeof read === "number") tries.push(nowMs);
      else assertEquals(await read, 1);
    }
    const gaps = tries.slice(1).map((at, index) => at - tries[index]!);
    assertEquals(gaps, gaps.toSorted((a, b) => a - b));
    assert(tries.length < 8 && gaps.at(-1)! >= 8_000 && gaps.at(-1)! < 8_200, `${gaps}`);
    readMs = 0;
    nowMs += 20_000;
    for (let count = 0; count < 3; count++) assertEquals(io.read(new Uint8Array(1), 0), 1);
  } finally {
    closeSync(descriptor);
    await Deno.remove(path);
  }
});

Deno.test("a file that cannot be written or read says why", async () => {
  await withFile(({ io }) => {
    assertEquals(codeOf(() => io.write(CONTENT, 0)), "EBADF");
    return Promise.resolve();
  }, "r");
  const folder = await Deno.makeTempDir();
  const descriptor = openSync(folder, "r");
  try {
    assertEquals(codeOf(() => new PositionalIo(descriptor).read(new Uint8Array(1), 0)), "EISDIR");
  } finally {
    closeSync(descriptor);
    await Deno.remove(folder);
  }
});

Deno.test("another thread's failure rejects", () =>
  withFile(async ({ io, clock }) => {
    clock.readMs = 5;
    assertEquals(io.read(new Uint8Array(1), 0), 1);
    clock.readMs = 0;
    await assertRejects(async () => void await io.read(new Uint8Array(1), -2));
  }));

function codeOf(act: () => unknown): unknown {
  return (assertThrows(act, Error) as Error & { code?: unknown }).code;
}
