/** Holds `@std/cli/parse-args`, or what stands in for it, to the behaviour that the client relies on. */
import { parseArgs } from "@std/cli/parse-args";
import { assertEquals } from "@std/assert";

interface Row {
  claim: string;
  args: string[];
  options?: Parameters<typeof parseArgs>[1];
  wanted: Record<string, unknown>;
}

const ROWS: Row[] = [
  { claim: "gives only positionals without options", args: ["a", "-", "b"], wanted: { _: ["a", "-", "b"] } },
  { claim: "gives nothing for nothing", args: [], wanted: { _: [] } },
  { claim: "reads a value after a space", args: ["--out", "x"], wanted: { _: [], out: "x" } },
  { claim: "reads a value after =", args: ["--out=x=y"], wanted: { _: [], out: "x=y" } },
  { claim: "reads an empty value after =", args: ["--out="], options: { string: ["out"] }, wanted: { _: [], out: "" } },
  {
    claim: "does not take an option as the value of another",
    args: ["--out", "--tag", "t"],
    options: { string: ["out", "tag"] },
    wanted: { _: [], out: "", tag: "t" },
  },
  { claim: "makes numbers of what looks like one", args: ["--n", "0x10", "7"], wanted: { _: [7], n: 16 } },
  {
    claim: "keeps strings that look like a number",
    args: ["--n", "0x10", "007"],
    options: { string: ["n", "_"] },
    wanted: { _: ["007"], n: "0x10" },
  },
  {
    claim: "gives no value to a boolean",
    args: ["--quiet", "x"],
    options: { boolean: ["quiet", "all"] },
    wanted: { _: ["x"], quiet: true, all: false },
  },
  {
    claim: "reads true and false after a boolean",
    args: ["--a", "false", "--b=false", "--c=true", "-d", "false"],
    options: { boolean: ["a", "b", "c", "d"] },
    wanted: { _: [], a: false, b: false, c: true, d: false },
  },
  {
    claim: "takes no value at all under boolean: true",
    args: ["--a", "x", "--b=y"],
    options: { boolean: true },
    wanted: { _: ["x"], a: true, b: "y" },
  },
  {
    claim: "sets every alias",
    args: ["-O", "x", "-q"],
    options: { string: ["output"], boolean: ["quiet"], alias: { output: ["O", "o"], quiet: "q" } },
    wanted: { _: [], output: "x", O: "x", o: "x", quiet: true, q: true },
  },
  {
    claim: "takes the last of several",
    args: ["--a", "1", "--a", "2"],
    options: { string: ["a"] },
    wanted: { _: [], a: "2" },
  },
  {
    claim: "collects, in order, over aliases",
    args: ["-H", "a: 1", "--header", "b: 2"],
    options: { string: ["header"], collect: ["header"], alias: { header: "H" } },
    wanted: { _: [], header: ["a: 1", "b: 2"], H: ["a: 1", "b: 2"] },
  },
  {
    claim: "collects nothing into an empty list",
    args: [],
    options: { string: ["h"], collect: ["h"] },
    wanted: { _: [], h: [] },
  },
  {
    claim: "leaves absent strings away and fills defaults with their aliases",
    args: [],
    options: { string: ["a", "b"], default: { a: "x" }, alias: { a: "A" } },
    wanted: { _: [], a: "x", A: "x" },
  },
  {
    claim: "prefers what is given over a default",
    args: ["--a=y", "--flag=false"],
    options: { string: ["a"], boolean: ["flag"], default: { a: "x", flag: true } },
    wanted: { _: [], a: "y", flag: false },
  },
  {
    claim: "negates what is negatable",
    args: ["--no-color"],
    options: { boolean: ["color"], negatable: ["color"], default: { color: true } },
    wanted: { _: [], color: false },
  },
  {
    claim: "takes --no- as a part of the name of anything else",
    args: ["--no-color", "x"],
    wanted: { _: [], "no-color": "x" },
  },
  {
    claim: "reads groups of short options",
    args: ["-abc", "x"],
    options: { boolean: ["a", "b"], string: ["c"] },
    wanted: { _: [], a: true, b: true, c: "x" },
  },
  { claim: "reads a number glued to a short option", args: ["-n5", "-m-1.5"], wanted: { _: [], n: 5, m: -1.5 } },
  { claim: "reads a path glued to a short option", args: ["-o/tmp/x"], wanted: { _: [], o: "/tmp/x" } },
  {
    claim: "reads = after a short option",
    args: ["-o=x", "-p="],
    options: { string: ["o", "p"] },
    wanted: { _: [], o: "x", p: "" },
  },
  { claim: "takes a lone dash after a short option as its value", args: ["-O", "-"], wanted: { _: [], O: "-" } },
  {
    claim: "moves what follows -- to the positionals",
    args: ["a", "--", "--b", "c"],
    wanted: { _: ["a", "--b", "c"] },
  },
  {
    claim: 'keeps what follows -- apart with "--": true',
    args: ["a", "--", "--b", "1"],
    options: { "--": true },
    wanted: { _: ["a"], "--": ["--b", "1"] },
  },
  {
    claim: "stops at the first positional with stopEarly",
    args: ["--a=1", "run", "--b", "2"],
    options: { stopEarly: true },
    wanted: { _: ["run", "--b", "2"], a: 1 },
  },
  {
    claim: "drops what unknown() refuses",
    args: ["--known", "--other", "-x", "word"],
    options: { boolean: ["known"], unknown: () => false },
    wanted: { _: [], known: true },
  },
];

for (const { claim, args, options, wanted } of ROWS) {
  Deno.test(`parseArgs() ${claim}`, () => {
    assertEquals<unknown>({ ...parseArgs(args, options) }, wanted);
  });
}

Deno.test("parseArgs() tells unknown() the argument, the name and the value", () => {
  const seen: unknown[][] = [];
  parseArgs(["--no-such=1", "--flag", "word"], { boolean: ["flag"], unknown: (...told) => void seen.push(told) });
  assertEquals(seen.map((told) => told.filter((item) => item !== undefined)), [["--no-such=1", "such", "1"], ["word"]]);
});

Deno.test("parseArgs() does not touch prototypes", () => {
  parseArgs(["--__proto__=x", "--constructor=x"]);
  assertEquals(({} as Record<string, unknown>).x, undefined);
  assertEquals(Object.getPrototypeOf(parseArgs(["--__proto__", "x"])), Object.prototype);
});
