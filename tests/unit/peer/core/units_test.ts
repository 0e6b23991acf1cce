import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { formatBytes, formatDuration, parseByteSize, parseDuration } from "../../../../peer/core/units.ts";

const SIZES: [string, number][] = [
  ["0", 0],
  ["1", 1],
  ["1024", 1024],
  ["1B", 1],
  ["1k", 1024],
  ["1K", 1024],
  ["1KB", 1024],
  ["1kB", 1024],
  ["1Ki", 1024],
  ["1KiB", 1024],
  ["1m", 2 ** 20],
  ["1M", 2 ** 20],
  ["100MB", 100 * 2 ** 20],
  ["100Mi", 100 * 2 ** 20],
  ["1g", 2 ** 30],
  ["1G", 2 ** 30],
  ["1GB", 2 ** 30],
  ["50Gi", 50 * 2 ** 30],
  ["2T", 2 * 2 ** 40],
  ["1.5G", 1.5 * 2 ** 30],
  [".5k", 512],
  ["0.3", 0],
  ["1.9", 1],
  [" 10 MB ", 10 * 2 ** 20],
  ["9007199254740991", Number.MAX_SAFE_INTEGER],
];
for (const [text, bytes] of SIZES) {
  Deno.test(`parseByteSize() reads ${JSON.stringify(text)} as ${bytes}`, () =>
    assertEquals(parseByteSize(text), bytes));
}

const BAD_SIZES = [
  "",
  " ",
  "B",
  "K",
  "-1",
  "+1",
  "1e3",
  "1i",
  "1iB",
  "1Kb",
  "1Mib",
  "1MBB",
  "1P",
  "1 0",
  "1.",
  "1..5",
  "1,5G",
  "0x10",
  "NaN",
  "Infinity",
  "1M/s",
  "9007199254740992",
  "8192T",
  "9".repeat(400),
];
for (const text of BAD_SIZES) {
  Deno.test(`parseByteSize() refuses ${JSON.stringify(text.slice(0, 20))} as usage`, () => {
    const error = assertThrows(() => parseByteSize(text), LacewingError, "want a number with an optional unit");
    assertEquals(error.code, "usage");
  });
}

const DURATIONS: [string, number][] = [
  ["0", 0],
  ["000", 0],
  ["0s", 0],
  ["250ms", 250],
  ["30s", 30_000],
  ["5m", 300_000],
  ["1h30m", 5_400_000],
  ["1h30m15s250ms", 5_415_250],
  ["1.5h", 5_400_000],
  ["0.5ms", 1],
  ["7d", 604_800_000],
  [" 1s ", 1000],
];
for (const [text, ms] of DURATIONS) {
  Deno.test(`parseDuration() reads ${JSON.stringify(text)} as ${ms} ms`, () => assertEquals(parseDuration(text), ms));
}

const BAD_DURATIONS = [
  "",
  "30",
  "s",
  "-1s",
  "+1s",
  "1 s",
  "1s 2m",
  "1sec",
  "1w",
  "1M",
  "1S",
  "1us",
  ".5s",
  "1.s",
  "1,5s",
  "1e3s",
  "0.0",
  "99999999999999999d",
  `${"9".repeat(400)}s`,
];
for (const text of BAD_DURATIONS) {
  Deno.test(`parseDuration() refuses ${JSON.stringify(text.slice(0, 20))} as usage`, () => {
    const error = assertThrows(() => parseDuration(text), LacewingError, "want for example 30s, 5m, 1h30m or 0");
    assertEquals(error.code, "usage");
  });
}

const SHOWN_BYTES: [number, string][] = [
  [0, "0 B"],
  [1, "1 B"],
  [1023, "1023 B"],
  [1024, "1.0 KiB"],
  [1536, "1.5 KiB"],
  [2 ** 20 - 1, "1.0 MiB"],
  [67_108_864, "64.0 MiB"],
  [2 ** 30 - 1, "1.0 GiB"],
  [2 ** 40, "1.0 TiB"],
  [5000 * 2 ** 40, "5000.0 TiB"],
];
for (const [bytes, text] of SHOWN_BYTES) {
  Deno.test(`formatBytes() shows ${bytes} as ${text}`, () => assertEquals(formatBytes(bytes), text));
}

const SHOWN_DURATIONS: [number, string][] = [
  [0, "0 ms"],
  [0.4, "0 ms"],
  [999, "999 ms"],
  [999.6, "1.0 s"],
  [1900, "1.9 s"],
  [99_900, "99.9 s"],
  [99_990, "1 min 40 s"],
  [100_000, "1 min 40 s"],
  [119_600, "2 min 0 s"],
  [3_599_900, "1 h 0 min"],
  [3_600_000, "1 h 0 min"],
  [9_000_000, "2 h 30 min"],
];
for (const [ms, text] of SHOWN_DURATIONS) {
  Deno.test(`formatDuration() shows ${ms} ms as ${text}`, () => assertEquals(formatDuration(ms), text));
}

Deno.test("formatDuration() never shows 60 seconds or 60 minutes", () => {
  fc.assert(fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), (ms) => {
    const text = formatDuration(ms);
    assert(!/\b60 (s|min)\b/.test(text) && !text.startsWith("1000 ms"), text);
  }));
});

Deno.test("parseByteSize() reads back what formatBytes() shows, within its rounding", () => {
  fc.assert(fc.property(fc.nat({ max: 2 ** 45 }), (bytes) => {
    const back = parseByteSize(formatBytes(bytes).replace(" ", ""));
    assert(Math.abs(back - bytes) <= bytes * 0.05 + 1, `${bytes} → ${back}`);
  }));
});
