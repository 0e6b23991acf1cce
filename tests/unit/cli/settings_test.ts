/** What each option means, good rows and bad rows. */
import { assertEquals, assertThrows } from "@std/assert";
import { LacewingError } from "../../../peer/core/errors.ts";
import { parseCommand } from "../../../cli/parse.ts";
import { type DownloadSettings, readDownloadSettings } from "../../../cli/settings.ts";

const URL_TEXT = "http://origin.test/a";
const MD5 = "0".repeat(32);

function read(args: string[], env: Record<string, string> = {}): DownloadSettings {
  return readDownloadSettings(parseCommand(args), (name) => env[name]);
}

Deno.test("readDownloadSettings() has the defaults of the specification", () => {
  assertEquals(read([URL_TEXT]), {
    url: URL_TEXT,
    output: null,
    headers: [],
    digest: null,
    filter: "",
    tag: "",
    range: null,
    timeoutMs: 0,
    rateLimitBytesPerSecond: 100 * 1024 * 1024,
    disableBackSource: false,
    originalOffset: false,
    showProgress: false,
    recursive: null,
    socket: null,
    config: null,
    workHome: null,
    logDir: null,
    console: false,
    verbose: false,
    jaeger: null,
    serviceName: "lacewing-client",
    pprofPort: null,
  });
});

const GOOD: [string[], Partial<DownloadSettings>][] = [
  [["-u", URL_TEXT], { url: URL_TEXT }],
  [[URL_TEXT, "-u", URL_TEXT], { url: URL_TEXT }],
  [["-u", URL_TEXT, "--url", URL_TEXT], { url: URL_TEXT }],
  [["HTTPS://origin.test"], { url: "HTTPS://origin.test" }],
  [[URL_TEXT, "-O", "x/y"], { output: "x/y" }],
  [[URL_TEXT, "-H", "A:b", "-H", "Accept:  x, y ", "-H", "C: d:e", "-H", "Empty:"], {
    headers: [["A", "b"], ["Accept", "x, y"], ["C", "d:e"], ["Empty", ""]],
  }],
  [[URL_TEXT, "--digest", `md5:${MD5}`], { digest: { algorithm: "md5", hex: MD5 } }],
  [[URL_TEXT, "--digest", `sha256:${"AB".repeat(32)}`], { digest: { algorithm: "sha256", hex: "ab".repeat(32) } }],
  [[URL_TEXT, "--filter", "Expires&Signature"], { filter: "Expires&Signature" }],
  [[URL_TEXT, "--tag", "blue"], { tag: "blue" }],
  [[URL_TEXT, "--range", "0-9"], { range: { kind: "closed", first: 0, last: 9 } }],
  [[URL_TEXT, "--range", "150-"], { range: { kind: "open", first: 150 } }],
  [[URL_TEXT, "--range", "-50"], { range: { kind: "suffix", length: 50 } }],
  [[URL_TEXT, "--timeout", "1h30m"], { timeoutMs: 5_400_000 }],
  [[URL_TEXT, "--timeout", "0"], { timeoutMs: 0 }],
  [[URL_TEXT, "--timeout", "250ms"], { timeoutMs: 250 }],
  ...["G", "GB", "g"].map((unit) => rate(`2${unit}`, 2 * 2 ** 30)),
  ...["M", "MB", "m"].map((unit) => rate(`1.5${unit}`, 1.5 * 2 ** 20)),
  ...["K", "KB", "k"].map((unit) => rate(`10${unit}`, 10 * 2 ** 10)),
  rate("20B", 20),
  rate("123", 123),
  rate("0", 0),
  rate("0.0B", 0),
  [[URL_TEXT, "--disable-back-source"], { disableBackSource: true }],
  [[URL_TEXT, "--range", "5-", "--original-offset"], { range: { kind: "open", first: 5 }, originalOffset: true }],
  [[URL_TEXT, "-b"], { showProgress: true }],
  [[URL_TEXT, "--jaeger", "http://127.0.0.1:4318"], { jaeger: "http://127.0.0.1:4318" }],
  [[URL_TEXT, "--jaeger", "http://a", "--jaeger", "https://b/x"], { jaeger: "https://b/x" }],
  [[URL_TEXT, "--service-name", "ci"], { serviceName: "ci" }],
  [[URL_TEXT, "--pprof-port", "0"], { pprofPort: 0 }],
  [[URL_TEXT, "--pprof-port", "6060"], { pprofPort: 6060 }],
  [[URL_TEXT, "--pprof-port", "-1"], { pprofPort: null }],
  [[
    URL_TEXT,
    "--daemon-sock",
    "/s",
    "--config",
    "/c.yaml",
    "--workhome",
    "/w",
    "--logdir",
    "/l",
    "--console",
    "--verbose",
  ], {
    socket: "/s",
    config: "/c.yaml",
    workHome: "/w",
    logDir: "/l",
    console: true,
    verbose: true,
  }],
];
function rate(text: string, bytes: number): [string[], Partial<DownloadSettings>] {
  return [[URL_TEXT, "--ratelimit", text], { rateLimitBytesPerSecond: bytes }];
}
for (const [args, expected] of GOOD) {
  Deno.test(`readDownloadSettings() reads ${args.join(" ")}`, () => {
    assertEquals(read(args), { ...read([URL_TEXT]), ...expected });
  });
}

Deno.test("CLIENT_CONFIG names the configuration unless --config does", () => {
  assertEquals(read([URL_TEXT], { CLIENT_CONFIG: "/env.yaml" }).config, "/env.yaml");
  assertEquals(read([URL_TEXT, "--config", "/flag.yaml"], { CLIENT_CONFIG: "/env.yaml" }).config, "/flag.yaml");
  assertEquals(read([URL_TEXT], { CLIENT_CONFIG: "" }).config, null);
});

const RECURSIVE: [string[], Partial<DownloadSettings["recursive"]>][] = [
  [[], {}],
  [["--level", "1"], { level: 1 }],
  [["--level", "100"], { level: 100 }],
  [["--level", "0"], { level: 100, unlimited: true }],
  [["-l"], { list: true }],
  [["--accept-regex", "\\.bin$"], { accept: /\.bin$/ }],
  [["--reject-regex", "a\\-b|c"], { reject: /a\-b|c/ }],
];
for (const [args, expected] of RECURSIVE) {
  Deno.test(`readDownloadSettings() reads -r ${args.join(" ")}`, () => {
    const usual = { level: 5, unlimited: false, list: false, accept: null, reject: null };
    assertEquals(read([URL_TEXT, "-r", ...args]).recursive, { ...usual, ...expected });
    assertEquals(read([URL_TEXT]).recursive, null);
  });
}

const BAD: [string, string[], string[]][] = [
  ["a collector that is no URL", [URL_TEXT, "--jaeger", "localhost:4318"], ["--jaeger", "localhost:4318", "http"]],
  ["a port that is none", [URL_TEXT, "--pprof-port", "http"], ["--pprof-port", "http", "65535"]],
  ["a port that is too high", [URL_TEXT, "--pprof-port", "65536"], ["--pprof-port", "65536"]],
  ["a port below -1", [URL_TEXT, "--pprof-port=-2"], ["--pprof-port", "-2"]],
  ["no URL", [], ["no URL"]],
  ["an empty URL", [""], ["URL"]],
  ["two URLs", [URL_TEXT, "http://other.test/"], ["two URLs", URL_TEXT, "http://other.test/"]],
  ["two URLs, one by option", [URL_TEXT, "-u", "http://other.test/"], ["two URLs"]],
  ["a relative URL", ["file.bin"], ["file.bin", "absolute"]],
  ["a URL that is too long", [`http://a/${"x".repeat(9000)}`], ["at most 8192"]],
  ["a scheme without a source", ["gopher://a/b"], ["gopher", "http, https"]],
  ["a local file", ["file:///etc/passwd"], ["file", "http, https"]],
  ["an object store, as long as there is no source for it", ["oss://bucket/key"], ["oss", "http, https"]],
  ["a folder on stdout", [URL_TEXT, "-r", "-O", "-"], ["--output -", "--recursive"]],
  ["URLs and log on stdout", [URL_TEXT, "-r", "--list", "--console"], ["--list", "--console"]],
  ["a level that is no number", [URL_TEXT, "-r", "--level", "deep"], ["--level", "deep", "0 to 100"]],
  ["a negative level", [URL_TEXT, "-r", "--level=-1"], ["--level", "-1"]],
  ["a level beyond the bound", [URL_TEXT, "-r", "--level", "101"], ["--level", "101"]],
  ["a broken regular expression", [URL_TEXT, "-r", "--accept-regex", "a("], ["--accept-regex", "a(", "no regular"]],
  ["another broken one", [URL_TEXT, "-r", "--reject-regex", "["], ["--reject-regex", "[", "no regular"]],
  ["an empty output", [URL_TEXT, "-O", ""], ["--output", "empty"]],
  ["stdout for content and log", [URL_TEXT, "-O", "-", "--console"], ["--output -", "--console"]],
  ["ranges in place on stdout", [URL_TEXT, "--range", "0-1", "--original-offset", "-O", "-"], [
    "--output -",
    "--original-offset",
  ]],
  ["a header without colon", [URL_TEXT, "-H", "Authorization Bearer secret"], ["--header", "colon"]],
  ["a header without name", [URL_TEXT, "-H", ": x"], ["--header", "name"]],
  ["a header name with a space", [URL_TEXT, "-H", "A b: x"], ["A b"]],
  ["a header value with a line end", [URL_TEXT, "-H", "A: x\r\nB: y"], ["--header A"]],
  ["a header value with NUL", [URL_TEXT, "-H", "A: x\0"], ["--header A"]],
  ["a header value outside of Latin-1", [URL_TEXT, "-H", "A: \u4e2d"], ["--header A"]],
  ["a header that is too long", [URL_TEXT, "-H", `A: ${"x".repeat(9000)}`], ["--header A"]],
  ["too many headers", [URL_TEXT, ...Array.from({ length: 101 }, () => ["-H", "A: b"]).flat()], ["at most 100"]],
  ["Range as a header", [URL_TEXT, "-H", "range: bytes=0-1"], ["--range"]],
  ["a digest without algorithm", [URL_TEXT, "--digest", MD5], ["--digest", "md5"]],
  ["a digest of an unknown algorithm", [URL_TEXT, "--digest", "crc32:00"], ["--digest", "crc32"]],
  ["a digest that is too short", [URL_TEXT, "--digest", "md5:00"], ["--digest", "32 hex digits"]],
  ["a digest with other characters", [URL_TEXT, "--digest", `md5:${"g".repeat(32)}`], ["--digest"]],
  ["an empty digest", [URL_TEXT, "--digest", ""], ["--digest"]],
  ["a range without numbers", [URL_TEXT, "--range", "-"], ["--range"]],
  ["a range that runs backwards", [URL_TEXT, "--range", "9-0"], ["--range", "before"]],
  ["several ranges", [URL_TEXT, "--range", "0-1,3-4"], ["--range"]],
  ["a range in the form of a header", [URL_TEXT, "--range", "bytes=0-1"], ["--range"]],
  ["a timeout without unit", [URL_TEXT, "--timeout", "30"], ["--timeout", "30s"]],
  ["a negative timeout", [URL_TEXT, "--timeout", "-5s"], ["--timeout"]],
  ["an empty timeout", [URL_TEXT, "--timeout", ""], ["--timeout"]],
  ["a rate in words", [URL_TEXT, "--ratelimit", "fast"], ["--ratelimit"]],
  ["a negative rate", [URL_TEXT, "--ratelimit", "-1"], ["--ratelimit"]],
  ["a rate in another unit", [URL_TEXT, "--ratelimit", "10Mbit"], ["--ratelimit"]],
  ["a tag that is too long", [URL_TEXT, "--tag", "x".repeat(257)], ["--tag", "256"]],
  ["a filter that is too long", [URL_TEXT, "--filter", "x".repeat(1025)], ["--filter", "1024"]],
  ["an empty socket", [URL_TEXT, "--daemon-sock", ""], ["--daemon-sock"]],
  ["an empty configuration", [URL_TEXT, "--config", ""], ["--config"]],
];
for (const [claim, args, words] of BAD) {
  Deno.test(`readDownloadSettings() refuses ${claim}`, () => {
    const error = assertThrows(() => read(args), LacewingError);
    assertEquals(error.code, "usage");
    for (const word of words) assertEquals(error.message.includes(word), true, `${word} in ${error.message}`);
  });
}

Deno.test("a wrong header is refused without showing its value", () => {
  const error = assertThrows(() => read([URL_TEXT, "-H", "Authorization: Bearer secret\nX: y"]), LacewingError);
  assertEquals(error.message.includes("secret"), false);
});
