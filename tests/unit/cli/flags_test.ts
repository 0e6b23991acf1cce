/**
 * Every flag of the client, one row each: its default, good values, bad ones,
 * and what it cannot stand beside; with exit code and message. A flag without a
 * row fails.
 */
// covers: cli/settings.ts, cli/parse.ts, cli/failure.ts
import { assert, assertEquals } from "@std/assert";
import { explain } from "../../../cli/failure.ts";
import { OPTIONS, optionsOf } from "../../../cli/options.ts";
import { parseCommand } from "../../../cli/parse.ts";
import { type DownloadSettings, readDownloadSettings } from "../../../cli/settings.ts";

const URL_TEXT = "http://origin.test/a";
const HEX = "0".repeat(64);

interface Row {
  /** What the flag sets. */
  read: (settings: DownloadSettings) => unknown;
  default: unknown;
  /** Arguments besides the URL, and what comes of them. */
  good: [string[], unknown][];
  /** Arguments, and words of the message. */
  bad: [string[], ...string[]][];
}

const path = (name: keyof DownloadSettings, flag: string, fallback: unknown = null): Row => ({
  read: (settings) => settings[name],
  default: fallback,
  good: [[[flag, "/a b"], "/a b"], [[`${flag}=x/y`], "x/y"], [[flag, "/a", flag, "/b"], "/b"]],
  bad: [[[flag, ""], flag, "empty"], [[flag], flag, "missing"]],
});
const toggle = (name: keyof DownloadSettings, flag: string, more: Partial<Row> = {}): Row => ({
  read: (settings) => settings[name],
  default: false,
  good: [[[flag], true], [[`${flag}=true`], true], [[`${flag}=false`], false]],
  bad: [[[`${flag}=1`], flag, "true or false"]],
  ...more,
});
const inTree = (key: "level" | "list" | "accept" | "reject") => ({ recursive }: DownloadSettings) => recursive?.[key];

const ROWS: Record<string, Row> = {
  "output": {
    ...path("output", "--output"),
    good: [[["-O", "/a"], "/a"], [["-O-"], "-"], [["--output=b/"], "b/"]],
    bad: [
      [["-O", ""], "--output", "empty"],
      [["-O"], "-O", "missing"],
      [["-O", "-", "--console"], "--output -", "--console"],
      [["-O", "-", "--recursive"], "--output -", "--recursive"],
    ],
  },
  "range": {
    read: ({ range }) => range,
    default: null,
    good: [
      [["--range", "0-9"], { kind: "closed", first: 0, last: 9 }],
      [["--range", "150-"], { kind: "open", first: 150 }],
      [["--range", "-50"], { kind: "suffix", length: 50 }],
    ],
    bad: [
      [["--range", "9-0"], "--range", "before"],
      [["--range", "a-b"], "--range"],
      [["--range", "0-1,4-5"], "--range"],
      [["--range", ""], "--range"],
      [["--range", "0-9", "--recursive"], "--range", "--recursive"],
    ],
  },
  "original-offset": toggle("originalOffset", "--original-offset", {
    good: [[["--original-offset", "--range", "0-1"], true], [["--original-offset=false"], false]],
    bad: [
      [["--original-offset"], "--original-offset", "--range"],
      [["--original-offset", "--range", "0-1", "-O", "-"], "--original-offset", "--output -"],
    ],
  }),
  "digest": {
    read: ({ digest }) => digest,
    default: null,
    good: [
      [["--digest", `sha256:${HEX}`], { algorithm: "sha256", hex: HEX }],
      [["--digest", `md5:${"AF".repeat(16)}`], { algorithm: "md5", hex: "af".repeat(16) }],
    ],
    bad: [
      [["--digest", HEX], "--digest"],
      [["--digest", "sha256:00"], "--digest", "64 hex digits"],
      [["--digest", `sha3:${HEX}`], "--digest", "sha3"],
      [["--digest", `sha256:${HEX}`, "--tag", "a"], "--digest", "--tag"],
      [["--digest", `sha256:${HEX}`, "-r"], "--digest", "--recursive"],
    ],
  },
  "show-progress": toggle("showProgress", "--show-progress", {
    bad: [[["-b", "--console"], "--show-progress", "--console"], [["--show-progress=x"], "true or false"]],
  }),
  "url": {
    read: ({ url }) => url,
    default: URL_TEXT,
    good: [[["-u", URL_TEXT], URL_TEXT], [["--url", URL_TEXT, "-u", URL_TEXT], URL_TEXT]],
    bad: [
      [["-u", "http://other.test/"], "two URLs", "http://other.test/"],
      [["-u"], "-u", "missing"],
    ],
  },
  "header": {
    read: ({ headers }) => headers,
    default: [],
    good: [[["-H", "A: b, c", "--header", "B:"], [["A", "b, c"], ["B", ""]]]],
    bad: [
      [["-H", "no colon"], "--header", "colon"],
      [["-H", "a b: c"], "--header", "a b"],
      [["-H", "A: b\nC: d"], "--header A"],
      [["-H", "Range: bytes=0-1"], "--range"],
    ],
  },
  "timeout": {
    read: ({ timeoutMs }) => timeoutMs,
    default: 0,
    good: [[["--timeout", "1h30m"], 5_400_000], [["--timeout", "30s"], 30_000], [["--timeout", "0"], 0]],
    bad: [[["--timeout", "30"], "--timeout", "30s"], [["--timeout", "-1s"], "--timeout"], [
      ["--timeout="],
      "--timeout",
    ]],
  },
  "ratelimit": {
    read: ({ rateLimitBytesPerSecond }) => rateLimitBytesPerSecond,
    default: 100 * 2 ** 20,
    good: [[["--ratelimit", "1.5M"], 1.5 * 2 ** 20], [["--ratelimit", "10kB"], 10_240], [["--ratelimit", "0"], 0]],
    bad: [[["--ratelimit", "fast"], "--ratelimit"], [["--ratelimit", "-1"], "--ratelimit"]],
  },
  "filter": {
    read: ({ filter }) => filter,
    default: "",
    good: [[["--filter", "a&b"], "a&b"]],
    bad: [[["--filter", "x".repeat(1025)], "--filter", "1024"]],
  },
  "tag": {
    read: ({ tag }) => tag,
    default: "",
    good: [[["--tag", "v2"], "v2"], [["--tag=--verbose"], "--verbose"]],
    bad: [[["--tag", "x".repeat(257)], "--tag", "256"], [
      ["--tag", "a", "--digest", `md5:${HEX}`],
      "--tag",
      "--digest",
    ]],
  },
  "disable-back-source": toggle("disableBackSource", "--disable-back-source"),
  "recursive": {
    read: ({ recursive }) => recursive !== null,
    default: false,
    good: [[["-r", "-O", "x"], true], [["--recursive=false"], false]],
    bad: [[["-r", "--range", "0-1"], "--recursive", "--range"], [["--recursive=2"], "true or false"]],
  },
  "level": {
    read: inTree("level"),
    default: undefined,
    good: [[["-r", "-O", "x"], 5], [["-r", "-O", "x", "--level", "2"], 2]],
    bad: [
      [["--level", "2"], "--level", "--recursive"],
      [["-r", "-O", "x", "--level", "-1"], "--level"],
      [["-r", "-O", "x", "--level", "deep"], "--level"],
    ],
  },
  "list": {
    read: inTree("list"),
    default: undefined,
    good: [[["-r", "-l"], true], [["-r", "-O", "x"], false]],
    bad: [[["-l"], "--list", "--recursive"], [["-r", "-l", "--console"], "--list", "--console"]],
  },
  "accept-regex": {
    read: (settings) => inTree("accept")(settings)?.toString(),
    default: undefined,
    good: [[["-r", "-O", "x", "--accept-regex", "a+$"], "/a+$/"]],
    bad: [
      [["--accept-regex", "a"], "--accept-regex", "--recursive"],
      [["-r", "-O", "x", "--accept-regex", "("], "--accept-regex", "regular expression"],
    ],
  },
  "reject-regex": {
    read: (settings) => inTree("reject")(settings)?.toString(),
    default: undefined,
    good: [[["-r", "-O", "x", "--reject-regex", "b"], "/b/"]],
    bad: [
      [["--reject-regex", "a"], "--reject-regex", "--recursive"],
      [["-r", "-O", "x", "--reject-regex", "["], "--reject-regex", "regular expression"],
    ],
  },
  "daemon-sock": path("socket", "--daemon-sock"),
  "config": path("config", "--config"),
  "workhome": path("workHome", "--workhome"),
  "logdir": path("logDir", "--logdir"),
  "console": toggle("console", "--console", {
    bad: [[["--console", "-b"], "--console", "--show-progress"], [["--console=x"], "true or false"]],
  }),
  "verbose": toggle("verbose", "--verbose"),
  "jaeger": {
    read: ({ jaeger }) => jaeger,
    default: null,
    good: [[["--jaeger", "http://127.0.0.1:4318"], "http://127.0.0.1:4318"]],
    bad: [[["--jaeger", "somewhere"], "--jaeger"], [["--jaeger"], "--jaeger", "missing"]],
  },
  "service-name": {
    read: ({ serviceName }) => serviceName,
    default: "lacewing-client",
    good: [[["--service-name", "ci"], "ci"]],
    bad: [[["--service-name", "x".repeat(300)], "--service-name", "256"]],
  },
  "pprof-port": {
    read: ({ pprofPort }) => pprofPort,
    default: null,
    good: [[["--pprof-port", "0"], 0], [["--pprof-port", "-1"], null], [["--pprof-port", "6060"], 6060]],
    bad: [[["--pprof-port", "65536"], "--pprof-port"], [["--pprof-port", "x"], "--pprof-port"]],
  },
  "help": {
    read: () => null,
    default: null,
    good: [[["-h"], null], [["--help"], null]],
    bad: [[["--help=yes"], "--help", "true or false"], [["--hlep"], "--hlep", "did you mean --help?"]],
  },
};

function settingsOf(args: readonly string[]): DownloadSettings {
  return readDownloadSettings(parseCommand([URL_TEXT, ...args]), () => undefined);
}

/** As the process ends: its exit code, and its line on stderr. */
async function failureOf(args: readonly string[]) {
  try {
    settingsOf(args);
  } catch (error) {
    return await explain(error);
  }
  return null;
}

Deno.test("every flag of the client has a row, and none is of a flag that is not there", () => {
  assertEquals(Object.keys(ROWS).sort(), optionsOf("download").map(({ name }) => name).sort());
});

for (const [name, row] of Object.entries(ROWS)) {
  Deno.test(`--${name} has its default and takes its good values`, () => {
    assertEquals(row.read(settingsOf([])), row.default);
    for (const [args, expected] of row.good) assertEquals(row.read(settingsOf(args)), expected, args.join(" "));
  });
  Deno.test(`--${name} refuses what is wrong with exit code 2 and one line that names it`, async () => {
    assert(row.bad.length > 0);
    for (const [args, ...words] of row.bad) {
      const failure = await failureOf(args);
      assertEquals(failure?.exitCode, 2, args.join(" "));
      const line = failure?.line ?? "";
      assert(/^lacewing: [\x20-\x7e]+$/.test(line), line);
      for (const word of words) assert(line.includes(word), `${word} in ${line}`);
    }
  });
}

Deno.test("every conflict and need of the table is refused with exit code 2, naming both", async () => {
  const sample = (name: string): string[] => {
    const option = OPTIONS.find((candidate) => candidate.name === name)!;
    if (option.type === "bool") return [`--${name}`];
    return [`--${name}`, option.type === "integer" ? "1" : option.type === "list" ? "A: b" : "x"];
  };
  for (const { name, conflicts = [], needs = [] } of optionsOf("download")) {
    const needed = needs.flatMap(sample);
    for (const other of conflicts) {
      for (
        const args of [[...needed, ...sample(name), ...sample(other)], [...sample(other), ...needed, ...sample(name)]]
      ) {
        const failure = await failureOf(args);
        assertEquals(failure?.exitCode, 2, args.join(" "));
        for (const word of [`--${name}`, `--${other}`]) assert(failure?.line?.includes(word), failure?.line ?? "");
      }
    }
    for (const other of needs) {
      const failure = await failureOf(sample(name));
      assertEquals(failure?.exitCode, 2, name);
      for (const word of [`--${name}`, `--${other}`]) assert(failure?.line?.includes(word), failure?.line ?? "");
    }
  }
});
