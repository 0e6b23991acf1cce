/** The table holds what SEED section 4.3 lists, with its short names and defaults. */
// covers: cli/options.ts
import { assertEquals } from "@std/assert";
import { OPTIONS, optionsOf } from "../../../cli/options.ts";

/** Name, short name, default: common to client and daemon. */
const COMMON: [string, string | undefined, string | null][] = [
  ["accept-regex", undefined, null],
  ["config", undefined, null],
  ["console", undefined, null],
  ["digest", undefined, null],
  ["disable-back-source", undefined, null],
  ["filter", undefined, null],
  ["header", "H", null],
  ["help", "h", null],
  ["jaeger", undefined, null],
  ["level", undefined, "5"],
  ["list", "l", null],
  ["logdir", undefined, null],
  ["output", "O", null],
  ["pprof-port", undefined, "-1"],
  ["recursive", "r", null],
  ["reject-regex", undefined, null],
  ["service-name", undefined, "lacewing-client"],
  ["show-progress", "b", null],
  ["tag", undefined, null],
  ["timeout", undefined, "0"],
  ["url", "u", null],
  ["verbose", undefined, null],
  ["workhome", undefined, null],
];
const CLIENT: typeof COMMON = [
  ["daemon-sock", undefined, "/var/run/daemon.sock"],
  ["original-offset", undefined, null],
  ["range", undefined, null],
  ["ratelimit", undefined, "100.0MB"],
];

for (const [name, short, value] of [...COMMON, ...CLIENT]) {
  Deno.test({
    name: `client knows --${name} as the specification has it`,
    ignore: name === "daemon-sock" && Deno.build.os !== "linux",
    fn: () => {
      const option = optionsOf("download").find((candidate) => candidate.name === name);
      assertEquals([option?.short, option?.default], [short, value]);
    },
  });
}
for (const [name, short, value] of [...COMMON, ["limit", undefined, "0.0B"] as const]) {
  Deno.test(`daemon knows --${name} as the specification has it`, () => {
    const option = optionsOf("daemon").find((candidate) => candidate.name === name);
    assertEquals([option?.short, option?.default], [short, value]);
  });
}

Deno.test("no two options of a command share a name, and conflicts name options that exist", () => {
  const names = OPTIONS.map(({ name }) => name);
  assertEquals(names.length, new Set(names).size);
  const letters = OPTIONS.flatMap(({ short }) => short ?? []);
  assertEquals(letters.length, new Set(letters).size);
  for (const { conflicts = [], needs = [] } of OPTIONS) {
    for (const name of [...conflicts, ...needs]) assertEquals(names.includes(name), true, name);
  }
});

Deno.test("an option has a name for its value exactly when it takes one", () => {
  for (const { name, type, value } of OPTIONS) assertEquals(value === undefined, type === "bool", name);
});
