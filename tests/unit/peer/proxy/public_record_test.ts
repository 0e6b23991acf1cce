import { assertEquals } from "@std/assert";
import { openPublicRecord } from "../../../../peer/proxy/public_record.ts";

const [A, B, C] = ["a", "b", "c"].map((letter) => letter.repeat(64)) as [string, string, string];
const HOUR_MS = 3_600_000;

async function withFile(run: (path: string, clock: { nowMs: number; now: () => number }) => void): Promise<void> {
  const folder = await Deno.makeTempDir();
  const clock = { nowMs: 1_800_000_000_000, now: () => clock.nowMs };
  try {
    run(`${folder}/public`, clock);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("what is public is known after a restart, for a day, and what was taken back is not", async () => {
  await withFile((path, clock) => {
    const record = openPublicRecord(path, clock);
    assertEquals(record.isPublic(A), false);
    for (const key of [A, B]) record.note(key, true);
    record.note(B, false);
    record.note(C, false);
    for (const it of [record, openPublicRecord(path, clock)]) {
      assertEquals([A, B, C].map((key) => it.isPublic(key)), [true, false, false]);
    }
    clock.nowMs += 24 * HOUR_MS;
    for (const it of [record, openPublicRecord(path, clock)]) assertEquals(it.isPublic(A), false);
    assertEquals(Deno.readTextFileSync(path), "", "forgotten in the file, too");
  });
});

Deno.test("a fact that is said again and again is written once an hour", async () => {
  await withFile((path, clock) => {
    const record = openPublicRecord(path, clock);
    for (let minute = 0; minute < 120; minute++) {
      record.note(A, true);
      clock.nowMs += 60_000;
    }
    assertEquals(Deno.readTextFileSync(path).split("\n").length - 1, 2);
    assertEquals(Deno.statSync(path).mode! & 0o777, 0o600);
  });
});

Deno.test("a file never grows beyond its bound", async () => {
  await withFile((path, clock) => {
    const record = openPublicRecord(path, clock);
    const key = (index: number) => index.toString(16).padStart(64, "0");
    for (let index = 0; index < 25_000; index++) record.note(key(index), true);
    assertEquals(Deno.readTextFileSync(path).split("\n").length < 20_001, true);
    const again = openPublicRecord(path, clock);
    assertEquals([again.isPublic(key(0)), again.isPublic(key(24_999))], [false, true]);
  });
});

for (
  const [what, text] of [
    ["rubbish", "\u0000\u0001 rubbish\n"],
    ["a torn line", `1800000000000 ${"a".repeat(30)}`],
    ["a time to come", `1900000000000 ${A}\n`],
    ["a time of another kind", `-1 ${A}\n1e12 ${A}\n`],
  ] as const
) {
  Deno.test(`${what} in the file makes nothing public, and hurts nothing beside it`, async () => {
    await withFile((path, clock) => {
      Deno.writeTextFileSync(path, `1799999999999 ${B}\n${text}`);
      const record = openPublicRecord(path, clock);
      assertEquals([record.isPublic(A), record.isPublic(B)], [false, true]);
      record.note(C, true);
      assertEquals(openPublicRecord(path, clock).isPublic(C), true);
    });
  });
}

Deno.test("a file that cannot be written only makes it forget", async () => {
  await withFile((path, clock) => {
    Deno.mkdirSync(path);
    const warnings: string[] = [];
    const log = { warn: (text: string) => warnings.push(text) } as unknown as Parameters<typeof openPublicRecord>[1];
    const record = openPublicRecord(path, { ...clock, log: log as never });
    record.note(A, true);
    record.note(B, true);
    assertEquals([record.isPublic(A), warnings], [true, ["cannot remember what is public"]]);
    assertEquals(openPublicRecord(path, clock).isPublic(A), false);
  });
});
