/** The client on a terminal: its bar, its cursor, and what it never lets through. */
// covers: cli/progress.ts, cli/terminal.ts
import { assert, assertEquals } from "@std/assert";
import { hasTmux, Screen } from "../testutil/screen.ts";
import { startOrigin } from "../testutil/origin.ts";
import { Place } from "../testutil/place.ts";
import { denoRun } from "../testutil/process.ts";

const MIB = 1024 * 1024;
const canShow = await hasTmux();

/** A command line of the client for a shell. */
function shellCommand(place: Place, ...args: string[]): string {
  const words = [Deno.execPath(), ...denoRun("cli/main.ts"), ...place.withoutDaemon(), ...args];
  const script = place.path("run.sh");
  Deno.writeTextFileSync(script, `exec ${words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ")}\n`);
  return `clear; bash ${script}; echo "code $?"`;
}

const SIZES: [number, RegExp][] = [
  [80, /^name\.bin {2}\[=* *\] +\d+% {2}[\d.]+ [KM]iB\/20\.0 MiB {2}[\d.]+ [KM]iB\/s/m],
  [40, /^ *\d+% {2}[\d.]+ [KM]iB\/20\.0 MiB/m],
];
for (const [columns, bar] of SIZES) {
  Deno.test({
    name: `the bar keeps to one line of ${columns} columns, follows a resize, and Ctrl-C leaves a clean line`,
    ignore: !canShow,
    fn: async () => {
      await using origin = startOrigin({ bytesPerSecond: 2 * MIB });
      await using place = new Place();
      await using screen = await Screen.open({ columns, rows: 20 });
      const url = origin.put("/name.bin", { size: 20 * MIB });
      await screen.type(shellCommand(place, url, "-O", place.path("out/name.bin"), "--show-progress"));
      const drawn = await screen.until((text) => bar.test(text));
      assertEquals(drawn.split("\n").filter((line) => line.includes("B/20.0 MiB")).length, 1, drawn);
      await screen.resize({ columns: columns - 10, rows: 20 });
      const done = (text: string) => Number(/([\d.]+) MiB\/20\.0/.exec(text)?.[1] ?? 0);
      const before = done(await screen.text());
      // Drawn anew at the new width: no line is wider, and none is left over.
      const resized = await screen.until((text) => done(text) > before + 1);
      const lines = resized.split("\n").filter((line) => line.includes("/20.0 MiB"));
      assert(lines.length === 1 && lines[0]!.length < columns - 10, resized);
      await screen.press("C-c");
      const ended = await screen.until((text) => text.includes("code 130"));
      assert(!/\d%|\[=/.test(ended.slice(ended.indexOf("are kept"))), ended);
      const { column, isVisible } = await screen.state();
      assertEquals([column, isVisible], [2, true], "the cursor stands behind the prompt");
    },
  });
}

Deno.test({
  name: "without --show-progress, and with TERM=dumb, nothing is drawn over",
  ignore: !canShow,
  fn: async () => {
    await using origin = startOrigin({ bytesPerSecond: 8 * MIB });
    await using place = new Place();
    await using screen = await Screen.open({ columns: 100, rows: 20 });
    const url = origin.put("/name.bin", { size: 4 * MIB });
    await screen.type(`export TERM=dumb; ${shellCommand(place, url, "-O", place.path("out/x"), "--show-progress")}`);
    const text = await screen.until((text) => text.includes("code 0"));
    assert(text.includes("4.0 MiB in") && !text.includes("[="), text);
  },
});

/** What a hostile name or server would like the terminal to see: a title, a colour, a cleared screen, turned text. */
const HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x1b[2J\x9b5m\u202etxt.exe";

Deno.test({
  name: "control characters of URLs, file names, headers and servers never reach the terminal",
  ignore: !canShow,
  fn: async () => {
    await using place = new Place();
    await using screen = await Screen.open({ columns: 200, rows: 50 });
    using server = serveRaw(
      `HTTP/1.1 206 Partial Content\r\nContent-Range: bytes ${HOSTILE}\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx`,
    );
    const encoded = encodeURIComponent(HOSTILE.replaceAll("\x9b", ""));
    await using origin = startOrigin();
    const rows: string[][] = [
      [`http://127.0.0.1:${server.port}/${HOSTILE}`, "-O", place.path("out/a"), "--range", "0-0"],
      [origin.put(`/${encoded}`, { size: 10 }), "-O", place.path("out"), "--show-progress"],
      [origin.url("/none"), "-O", place.path(`out/${HOSTILE}`)],
      [origin.url("/none"), "-O", place.path(`no-folder/${HOSTILE}`)],
      [HOSTILE],
      ["http://a/b", `--${HOSTILE}`],
      ["http://a/b", "-H", `${HOSTILE}: x`],
      ["http://a/b", "--digest", HOSTILE],
      ["http://a/b", "--config", `/none/${HOSTILE}`],
      ["help", HOSTILE],
    ];
    for (const args of rows) {
      await screen.type(shellCommand(place, ...args));
      const text = await screen.until((text) => /code \d+/.test(text));
      const raw = await screen.raw();
      const { title } = await screen.state();
      assert(!title.includes("owned"), `the title was set by ${JSON.stringify(args)}`);
      // deno-lint-ignore no-control-regex
      assert(!/\x1b\[[0-9;]*m/.test(raw), `a colour came through from ${JSON.stringify(args)}: ${text}`);
      assert(!/[\u202a-\u202e\u2066-\u2069\x80-\x9f]/.test(raw), `turned text from ${JSON.stringify(args)}: ${text}`);
      assert(/lacewing|MiB|10 B/.test(text), `the screen was cleared by ${JSON.stringify(args)}: ${text}`);
    }
  },
});

/** A server that answers every request with these bytes. */
function serveRaw(answer: string): Disposable & { port: number } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serve = async () => {
    for await (const conn of listener) {
      await conn.read(new Uint8Array(4096)).catch(() => null);
      await conn.write(new TextEncoder().encode(answer)).catch(() => 0);
      conn.close();
    }
  };
  serve();
  return { port: listener.addr.port, [Symbol.dispose]: () => listener.close() };
}
