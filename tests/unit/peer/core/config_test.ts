import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { z } from "zod";
import {
  byteSize,
  describeIssues,
  duration,
  httpUrl,
  nearest,
  parseConfig,
  port,
  section,
  validateConfig,
} from "../../../../peer/core/config.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

const schema = section({
  aliveTime: duration().default(300_000),
  mode: z.enum(["fast", "safe"]).default("safe"),
  keep: z.boolean().default(true),
  origin: httpUrl().default("http://127.0.0.1"),
  joinToken: z.string().min(8).default("00000000"),
  storage: section({ capacity: byteSize().default(50), percent: z.number().int().min(1).max(100).default(90) }),
  proxy: section({
    tcpListen: section({ port: port().default(65001) }),
    proxies: z.array(z.strictObject({ regx: z.string(), direct: z.boolean().default(false) })).default([]),
  }),
});
const read = (text: string) => parseConfig(text, { schema, origin: "client.yaml" });

const DEFAULTS = {
  aliveTime: 300_000,
  mode: "safe" as const,
  keep: true,
  origin: "http://127.0.0.1",
  joinToken: "00000000",
  storage: { capacity: 50, percent: 90 },
  proxy: { tcpListen: { port: 65001 }, proxies: [] },
};

for (const text of ["", "\n", "# only a comment", "---", "{}", "null", "storage: {}", "proxy: { tcpListen: {} }"]) {
  Deno.test(`parseConfig() of ${JSON.stringify(text)} gives every default`, () => assertEquals(read(text), DEFAULTS));
}

Deno.test("parseConfig() takes what is given and defaults beside it", () => {
  const text = "aliveTime: 1h30m\nstorage:\n  capacity: 50Gi\nproxy:\n  proxies:\n    - regx: blobs/.*\n";
  assertEquals(read(text), {
    ...DEFAULTS,
    aliveTime: 5_400_000,
    storage: { capacity: 50 * 2 ** 30, percent: 90 },
    proxy: { tcpListen: { port: 65001 }, proxies: [{ regx: "blobs/.*", direct: false }] },
  });
});

const VALUES: [string, (config: ReturnType<typeof read>) => unknown, unknown][] = [
  ["aliveTime: 0", (config) => config.aliveTime, 0],
  ["aliveTime: 0s", (config) => config.aliveTime, 0],
  ["aliveTime: 250ms", (config) => config.aliveTime, 250],
  ["storage: { capacity: 0 }", (config) => config.storage.capacity, 0],
  ["storage: { capacity: 1048576 }", (config) => config.storage.capacity, 1048576],
  ["storage: { capacity: '1048576' }", (config) => config.storage.capacity, 1048576],
  ["storage: { capacity: 100MB }", (config) => config.storage.capacity, 104857600],
  ["proxy: { tcpListen: { port: 0 } }", (config) => config.proxy.tcpListen.port, 0],
  ["proxy: { tcpListen: { port: 65535 } }", (config) => config.proxy.tcpListen.port, 65535],
  ["origin: HTTPS://Host:8443/x", (config) => config.origin, "HTTPS://Host:8443/x"],
  ["mode: fast", (config) => config.mode, "fast"],
  ["keep: false", (config) => config.keep, false],
];
for (const [text, pick, value] of VALUES) {
  Deno.test(`parseConfig() reads ${text}`, () => assertEquals(pick(read(text)), value));
}

/** Each names the path, what is wanted and, where it helps, what is. */
const WRONG: [string, string][] = [
  ["aliveTime: 5", "aliveTime: want a duration such as 30s, 5m or 1h30m, not 5"],
  ["aliveTime: soon", 'aliveTime: want a duration such as 30s, 5m or 1h30m, not "soon"'],
  ["aliveTime: -1s", 'aliveTime: want a duration such as 30s, 5m or 1h30m, not "-1s"'],
  ["aliveTime: [1s]", "aliveTime: want a duration such as 30s, 5m or 1h30m, not a list"],
  ["storage: { capacity: lots }", 'storage.capacity: want a size such as 100Mi, 1Gi or 100MB, not "lots"'],
  ["storage: { capacity: -1 }", "storage.capacity: want a size such as 100Mi, 1Gi or 100MB, not -1"],
  ["storage: { capacity: 1.5 }", "storage.capacity: want a size such as 100Mi, 1Gi or 100MB, not 1.5"],
  ["storage: { capacity: null }", "storage.capacity: want a size such as 100Mi, 1Gi or 100MB, not null"],
  ["storage: { percent: 0 }", "storage.percent: Too small: expected number to be >=1, not 0"],
  ["storage: { percent: '90' }", 'storage.percent: want a number, not "90"'],
  ["proxy: { tcpListen: { port: 65536 } }", "proxy.tcpListen.port: want a port number from 0 to 65535, not 65536"],
  ["proxy: { tcpListen: { port: -1 } }", "proxy.tcpListen.port: want a port number from 0 to 65535, not -1"],
  ["proxy: { tcpListen: { port: 80.5 } }", "proxy.tcpListen.port: want a port number from 0 to 65535, not 80.5"],
  ["proxy: { tcpListen: { port: http } }", 'proxy.tcpListen.port: want a port number from 0 to 65535, not "http"'],
  ["origin: ftp://host", 'origin: want an http or https URL, not "ftp://host"'],
  ["origin: /path", 'origin: want an http or https URL, not "/path"'],
  ["origin: 5", "origin: want an http or https URL, not 5"],
  ["mode: slow", 'mode: want one of "fast", "safe", not "slow"'],
  ["keep: 1", "keep: want true or false, not 1"],
  ["keep: 'yes'", 'keep: want true or false, not "yes"'],
  ["storage: 5", "storage: want a section, not 5"],
  ["storage: null", "storage: want a section, not null"],
  ["storage: []", "storage: want a section, not a list"],
  ["proxy: { proxies: {} }", "proxy.proxies: want a list, not a section"],
  ["proxy: { proxies: [{ direct: true }] }", "proxy.proxies.0.regx: missing: want a text"],
  ["proxy: { proxies: [{ regx: a }, 7] }", "proxy.proxies.1: want a section, not 7"],
  ["just text", '(top): want a section, not "just text"'],
  ["- a", "(top): want a section, not a list"],
  ["storge: {}", 'storge: unknown key; did you mean "storage"?'],
  ["Mode: fast", 'Mode: unknown key; did you mean "mode"?'],
  ["alive_time: 1s", 'alive_time: unknown key; did you mean "aliveTime"?'],
  ["storage: { capcity: 1 }", 'storage.capcity: unknown key; did you mean "capacity"?'],
  ["proxy: { tcpListen: { prot: 1 } }", 'proxy.tcpListen.prot: unknown key; did you mean "port"?'],
  ["proxy: { proxies: [{ regx: a, dirct: true }] }", 'proxy.proxies.0.dirct: unknown key; did you mean "direct"?'],
  ["completelyElse: 1", "completelyElse: unknown key"],
  ["__proto__: { keep: false }", "__proto__: unknown key"],
];
for (const [text, problem] of WRONG) {
  Deno.test(`parseConfig() refuses ${text}: ${problem}`, () => {
    const error = assertThrows(() => read(text), LacewingError);
    assertEquals([error.code, error.message], ["config_invalid", `Cannot use client.yaml: ${problem}`]);
  });
}

Deno.test("parseConfig() names everything that is wrong, not only the first", () => {
  const { message } = assertThrows(() => read("keep: 1\nnoSuch: 2\nstorage: { percent: 200 }"), LacewingError);
  for (const path of ["keep: ", "noSuch: ", "storage.percent: "]) assertStringIncludes(message, path);
});

Deno.test("parseConfig() keeps secrets out of its messages", () => {
  for (const text of ["joinToken: s3cret", "joinToken: [s3cret]", "origin: ftp://u:s3cret@h/?sig=s3cret"]) {
    const { message } = assertThrows(() => read(text), LacewingError);
    assert(!message.includes("s3cret"), message);
  }
});

Deno.test("parseConfig() cuts a long wrong value", () => {
  assert(assertThrows(() => read(`mode: ${"x".repeat(100_000)}`), LacewingError).message.length < 300);
});

const NO_YAML: [string, number][] = [
  ["keep: [", 1],
  ["a: 1\nb: }", 2],
  ["keep: true\n\tmode: fast", 2],
  ["keep: 'open", 1],
  ["keep: true\nmode: safe\nkeep: false", 3],
  ["storage:\n  percent: 1\n  percent: 2", 3],
  ["keep: *nobody", 1],
];
for (const [text, line] of NO_YAML) {
  Deno.test(`parseConfig() refuses ${JSON.stringify(text)} naming line ${line}`, () => {
    const error = assertThrows(() => read(text), LacewingError);
    assertEquals(error.code, "config_invalid");
    assertStringIncludes(error.message, "Cannot read client.yaml: not YAML: ");
    assert(new RegExp(`line (${line}|${line + 1})\\b`).test(error.message), error.message);
    assert(error.cause instanceof Error);
  });
}

Deno.test("parseConfig() shows no text of a file that is not YAML: it may hold secrets", () => {
  const { message } = assertThrows(() => read("joinToken: s3cret\nkeep: true\nkeep: false"), LacewingError);
  assert(!message.includes("s3cret") && !message.includes("\n"), message);
  assertStringIncludes(message, "duplicat");
});

Deno.test("parseConfig() refuses two documents in one file", () => {
  assertThrows(() => read("keep: true\n---\nkeep: false"), LacewingError, "not YAML");
});

Deno.test("validateConfig() reads a value as parseConfig() its text", () => {
  assertEquals(validateConfig({ keep: false }, { schema, origin: "flags" }).keep, false);
  assertThrows(() => validateConfig({ kep: 1 }, { schema, origin: "flags" }), LacewingError, "Cannot use flags: kep");
});

Deno.test("describeIssues() gives dotted paths, and without a schema no hints", () => {
  const { error } = z.strictObject({ a: z.strictObject({ b: z.number() }) }).safeParse({ a: { b: "x", c: 1 } });
  assertEquals(describeIssues(error!.issues), [
    { path: "a.b", message: "Invalid input: expected number, received string" },
    { path: "a.c", message: "unknown key" },
  ]);
});

const NEAREST: [string, string[], string | null][] = [
  ["prot", ["port", "path"], "port"],
  ["PORT", ["port"], "port"],
  ["diskGCTreshold", ["diskGCThreshold", "diskGCThresholdPercent"], "diskGCThreshold"],
  ["dataDir", ["logDir", "dataDir"], "dataDir"],
  ["ab", ["abcd"], "abcd"],
  ["a", ["abcd"], null],
  ["zebra", ["port", "path"], null],
  ["x", [], null],
];
for (const [word, candidates, best] of NEAREST) {
  Deno.test(`nearest() to ${word} of [${candidates}] is ${best}`, () => assertEquals(nearest(word, candidates), best));
}
