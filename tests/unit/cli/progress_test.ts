/** What the bar shows at every width, and how it is drawn. */
import { assert, assertEquals } from "@std/assert";
import { ProgressDisplay, RateMeter, renderProgress } from "../../../cli/progress.ts";
import type { Terminal } from "../../../cli/terminal.ts";

const MIB = 2 ** 20;
const HALF = { name: "model.bin", total: 64 * MIB, done: 32 * MIB, fromPeers: 16 * MIB, bytesPerSecond: 8 * MIB };

Deno.test("renderProgress() shows name, bar, percent, amounts, rate, time left and share", () => {
  assertEquals(
    renderProgress(HALF, 120),
    "model.bin  [===============               ]   50%  32.0 MiB/64.0 MiB  8.0 MiB/s  ETA 4.0 s  50% from peers",
  );
});

Deno.test("renderProgress() fits every width, and keeps the percentage longest", () => {
  for (let columns = 8; columns <= 200; columns++) {
    for (const name of ["a", "a-very-long-name-of-a-file.tar.gz", "\u4e2d".repeat(40), "\x1b[31m\n"]) {
      const line = renderProgress({ ...HALF, name }, columns);
      const wide = [...line].reduce((sum, character) => sum + (character >= "\u2e80" ? 2 : 1), 0);
      assert(wide < columns, `${columns}: ${line}`);
      assert(line.includes("50%"), line);
      // deno-lint-ignore no-control-regex
      assert(!/[\x00-\x1f]/.test(line));
    }
  }
});

Deno.test("renderProgress() of a folder shows how many files are done, and whether more may be found", () => {
  const files = { done: 3, total: 12, isComplete: false };
  assertEquals(
    renderProgress({ name: "set", total: null, done: MIB, fromPeers: 0, bytesPerSecond: MIB, files }, 80),
    "set  3/12+ files  1.0 MiB  1.0 MiB/s",
  );
  assertEquals(
    renderProgress({ name: "s", total: null, atLeast: 3 * MIB, done: MIB, fromPeers: 0, bytesPerSecond: 0, files }, 80),
    "s  3/12+ files  1.0 MiB/3.0+ MiB  0 B/s",
  );
  const known = renderProgress({ ...HALF, files: { ...files, isComplete: true } }, 80);
  assert(known.includes("3/12 files") && known.includes("50%"), known);
});

Deno.test("renderProgress() without a length shows what has come", () => {
  assertEquals(
    renderProgress({ name: "x.bin", total: null, done: MIB, fromPeers: 0, bytesPerSecond: MIB }, 80),
    "x.bin  1.0 MiB  1.0 MiB/s",
  );
});

Deno.test("renderProgress() of an empty content and of a stall divides by nothing", () => {
  assertEquals(
    renderProgress({ name: "", total: 0, done: 0, fromPeers: 0, bytesPerSecond: 0 }, 40).includes("NaN"),
    false,
  );
  assert(renderProgress({ ...HALF, bytesPerSecond: 0 }, 120).includes("ETA -"));
});

Deno.test("RateMeter tells the rate of the last seconds", () => {
  const meter = new RateMeter();
  assertEquals(meter.see(0, 0), 0);
  for (let second = 1; second <= 10; second++) assertEquals(meter.see(second * 100, second * 1000), 100);
  let rate = 0;
  for (let second = 11; second <= 17; second++) rate = meter.see(1000, second * 1000);
  assertEquals(rate, 0);
});

/** A clock whose sleeps end when the test says so. */
function steppedClock() {
  let nowMs = 0;
  let wake: (() => void) | null = null;
  return {
    sleeps: [] as number[],
    nowMs: () => nowMs,
    sleep(ms: number, signal?: AbortSignal): Promise<void> {
      this.sleeps.push(ms);
      return new Promise((resolve, reject) => {
        wake = () => {
          nowMs += ms;
          resolve();
        };
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    },
    async tick() {
      wake?.();
      for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    },
  };
}

function screen(columns: number | null, plain = false): Terminal & { text: string } {
  return {
    text: "",
    plain,
    columns: () => columns,
    write(text) {
      this.text += text;
    },
  };
}

Deno.test("ProgressDisplay redraws one line of a terminal and clears it at the end", async () => {
  const [clock, terminal] = [steppedClock(), screen(80)];
  {
    using display = new ProgressDisplay(terminal, { name: "f", clock });
    display.update({ total: 100, done: 50, fromPeers: 0 });
    await clock.tick();
    display.update({ total: 100, done: 100, fromPeers: 0 });
    await clock.tick();
  }
  assert(terminal.text.includes("50%") && terminal.text.includes("100%"));
  assert(!terminal.text.includes("\n"));
  assert(terminal.text.endsWith("\r\x1b[2K"));
  assertEquals(clock.sleeps[0], 100);
});

Deno.test("ProgressDisplay counts what was there before in the bytes, and not in the rate", async () => {
  const [clock, terminal] = [steppedClock(), screen(80)];
  using display = new ProgressDisplay(terminal, { name: "f", clock });
  await clock.tick();
  display.update({ total: 100 * MIB, done: 50 * MIB, fromPeers: 0 });
  await clock.tick();
  assert(terminal.text.endsWith("50.0 MiB/100.0 MiB  0 B/s  ETA -"), JSON.stringify(terminal.text));
  display.update({ total: 100 * MIB, done: 51 * MIB, fromPeers: 0 });
  await clock.tick();
  assert(terminal.text.includes("  5.0 MiB/s  "), JSON.stringify(terminal.text));
});

Deno.test("ProgressDisplay says a line apart from the bar", () => {
  const [onTerminal, without] = [screen(80), screen(null)];
  for (const terminal of [onTerminal, without]) {
    using display = new ProgressDisplay(terminal, { name: "f", clock: steppedClock() });
    display.say("news");
  }
  assertEquals([onTerminal.text, without.text], ["\r\x1b[2Knews\n\r\x1b[2K", "news\n"]);
});

for (const [claim, terminal] of [["no terminal", screen(null)], ["a dumb terminal", screen(80, true)]] as const) {
  Deno.test(`ProgressDisplay writes whole lines every 10 s with ${claim}`, async () => {
    const clock = steppedClock();
    {
      using display = new ProgressDisplay(terminal, { name: "f", clock });
      display.update({ total: 100, done: 50, fromPeers: 0 });
      await clock.tick();
    }
    assertEquals(clock.sleeps[0], 10_000);
    assert(terminal.text.endsWith("\n") && terminal.text.includes("50%"));
    assert(!terminal.text.includes("\x1b"));
  });
}

Deno.test("ProgressDisplay takes away what a terminal that became narrower has broken into several lines", async () => {
  const clock = steppedClock();
  let columns = 80;
  const terminal = { ...screen(80), columns: () => columns };
  using display = new ProgressDisplay(terminal, { name: "name.bin", clock });
  display.update({ total: 1000, done: 10, fromPeers: 0 });
  const draw = async () => {
    terminal.text = "";
    await clock.tick();
    return terminal.text;
  };
  const width = (await draw()).length - "\r\x1b[2K".length;
  assert(width > 60 && width < 80, String(width));
  columns = 30;
  const narrow = await draw();
  assert(narrow.startsWith("\x1b[2A\r\x1b[J") && narrow.length < 30 + 9, JSON.stringify(narrow));
  assert((await draw()).startsWith("\r\x1b[2K"));
});
