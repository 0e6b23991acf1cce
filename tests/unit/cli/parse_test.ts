/** Every option of the table, as users write and miswrite it. */
import { assertEquals, assertThrows } from "@std/assert";
import { LacewingError } from "../../../peer/core/errors.ts";
import { COMMANDS, OPTIONS, type OptionSpec } from "../../../cli/options.ts";
import { NotKnown, parseCommand } from "../../../cli/parse.ts";

function values(...args: string[]): Record<string, unknown> {
  return Object.fromEntries(parseCommand(args).values);
}

const GOOD: [string, string[], Record<string, unknown>][] = [
  ["nothing", [], {}],
  ["a value after the name", ["--output", "/a"], { output: "/a" }],
  ["a value after =", ["--output=/a"], { output: "/a" }],
  ["a value with = in it", ["--header=A: b=c"], { header: ["A: b=c"] }],
  ["an empty value", ["--tag="], { tag: "" }],
  ["a short name", ["-O", "/a"], { output: "/a" }],
  ["a short name with its value at once", ["-O/a"], { output: "/a" }],
  ["a short name with its value at once that begins with a letter", ["-Oout"], { output: "out" }],
  ["a short name with =", ["-O=/a"], { output: "/a" }],
  ["stdout", ["-O", "-"], { output: "-" }],
  ["stdout at once", ["-O-"], { output: "-" }],
  ["several short names", ["-bO", "/a"], { "show-progress": true, output: "/a" }],
  ["a value that begins with a dash", ["--range", "-50"], { range: "-50" }],
  ["a value that looks like a number as text", ["--tag", "007"], { tag: "007" }],
  ["a value that says true", ["--tag", "true"], { tag: "true" }],
  ["a flag that is true", ["--verbose=true"], { verbose: true }],
  ["a flag that is false", ["--verbose=false"], { verbose: false }],
  ["a flag before an argument", ["--verbose", "true"], { verbose: true }],
  ["repeated headers", ["-H", "A: 1, 2", "--header", "B: 2"], { header: ["A: 1, 2", "B: 2"] }],
  ["the last of two values", ["--tag", "a", "--tag", "b"], { tag: "b" }],
  ["a value like another option's name when it is glued", ["--tag=--verbose"], { tag: "--verbose" }],
  ["a value that begins with two dashes and is no option", ["--tag", "--x"], { tag: "--x" }],
  ["a conflict that is switched off", ["--console=false", "--show-progress"], {
    console: false,
    "show-progress": true,
  }],
];
for (const [claim, args, expected] of GOOD) {
  Deno.test(`parseCommand() reads ${claim}`, () => assertEquals(values(...args), expected));
}

Deno.test("parseCommand() keeps arguments, also after --, as text", () => {
  assertEquals(parseCommand(["http://a/1", "-O", "/x", "12", "--", "-O", "--none"]).positionals, [
    "http://a/1",
    "12",
    "-O",
    "--none",
  ]);
});

Deno.test("parseCommand() takes the command from the first argument alone", () => {
  for (const command of COMMANDS.filter((name) => name !== "download")) {
    assertEquals(parseCommand([command, "x"]), { command, positionals: ["x"], values: new Map() });
  }
  assertEquals(parseCommand(["-O", "daemon", "--tag", "task", "http://a/version"]).command, "download");
  assertEquals(parseCommand(["download"]).command, "download");
});

const BAD: [string, string[], string[]][] = [
  ["an unknown option", ["--nothing-like-it"], ["--nothing-like-it", "no such option"]],
  ["an unknown short option", ["-Z"], ["-Z", "no such option"]],
  ["an unknown option among short ones", ["-bZ"], ["-Z"]],
  ["a short option given by its long spelling", ["-output", "/a"], ["-o"]],
  ["an option of another command", ["--json"], ["--json", "no such option"]],
  ["an option of another command before its name", ["--json", "task", "explain"], ['"task"', "comes first"]],
  ["an option before the command", ["--daemon-sock", "/s", "task", "explain", "http://a/1"], ["task", "comes first"]],
  ["a command after a flag", ["--verbose", "daemon"], ["daemon", "comes first"]],
  ["an option of the client for the daemon", ["daemon", "--ratelimit", "1"], ["--ratelimit", '"daemon"']],
  ["a missing value at the end", ["--output"], ["--output", "missing", "PATH"]],
  ["a missing value before an option", ["-O", "--verbose"], ["-O", "missing", "--verbose"]],
  ["a missing value before a short option", ["--tag", "-b"], ["--tag", "missing", "-b"]],
  ["a flag with a value", ["--verbose=loud"], ["--verbose=loud", "true or false"]],
  ["--show-progress with --console", ["--show-progress", "--console"], ["--show-progress", "--console"]],
  ["-b with --console", ["-b", "--console"], ["--show-progress", "--console"]],
  ["--original-offset without --range", ["--original-offset"], ["--original-offset", "--range"]],
  ["--tag with --digest", ["--tag", "a", "--digest", "b"], ["--tag", "--digest"]],
];
for (const [claim, args, words] of BAD) {
  Deno.test(`parseCommand() refuses ${claim}`, () => {
    const error = assertThrows(() => parseCommand(args), LacewingError);
    assertEquals(error.code, "usage");
    for (const word of words) assertEquals(error.message.includes(word), true, `${word} in ${error.message}`);
  });
}

Deno.test("an unknown option knows what there is", () => {
  const error = assertThrows(() => parseCommand(["--outptu"]), NotKnown);
  assertEquals([error.word, error.known.includes("--output"), error.known.includes("--json")], [
    "--outptu",
    true,
    false,
  ]);
});

const SAMPLE: Record<OptionSpec["type"], string | null> = {
  bool: null,
  string: "x",
  list: "A: b",
  integer: "3",
  size: "1K",
  duration: "1s",
  file: "/a",
  folder: "/a",
  url: "http://a/",
};

// The whole table: everything is read, long and short, with and without value.
for (const option of OPTIONS) {
  for (const command of option.commands) {
    const before = command === "download" ? [] : [command];
    const sample = SAMPLE[option.type];
    // What an option has no meaning without comes in front of it.
    const needed = (option.needs ?? []).flatMap((name) => {
      const other = OPTIONS.find((candidate) => candidate.name === name)!;
      return SAMPLE[other.type] === null ? [`--${name}`] : [`--${name}`, SAMPLE[other.type]!];
    });
    const spellings = [
      sample === null ? [`--${option.name}`] : [`--${option.name}`, sample],
      ...(option.short === undefined ? [] : [sample === null ? [`-${option.short}`] : [`-${option.short}`, sample]]),
    ];
    for (const spelling of spellings) {
      Deno.test(`${command} reads ${spelling.join(" ")}`, () => {
        const isList = option.type === "list" || option.type === "url";
        const expected = sample === null ? true : isList ? [sample] : sample;
        assertEquals(values(...before, ...needed, ...spelling)[option.name], expected);
      });
    }
  }
}
