/**
 * The rules of the house as tests: who may import whom, what every source file needs, what nobody may call.
 * Each prints all offenders as `file:line: what`, so that one run shows all there is to mend.
 *
 * Looks at text, not at types; comments and strings are blanked first where they could mislead.
 */
import { assert, assertEquals } from "@std/assert";

const ROOT = new URL("..", import.meta.url);
const LINES_MAX = 400;

interface Source {
  /** From the project's root, as `peer/core/piece.ts`. */
  path: string;
  text: string;
  /** The same text with comments, and the insides of strings, blanked out; line by line as long as before. */
  code: string;
}

interface Import {
  line: number;
  /** Where it leads: a path from the root, or the bare specifier as written. */
  target: string;
  typeOnly: boolean;
}

async function* walk(folder: string): AsyncGenerator<string> {
  const skipped = ["dist", "coverage", "node_modules", ".git"];
  for await (const { name, isDirectory, isFile } of Deno.readDir(new URL(folder || ".", ROOT))) {
    if (isDirectory && !skipped.includes(name)) yield* walk(`${folder}${name}/`);
    if (isFile && name.endsWith(".ts")) yield folder + name;
  }
}

/**
 * Blanks comments and the insides of plain strings. Template and regular expression literals are not known to it,
 * so it takes a block comment only where one usually stands, and no other mistake reaches beyond its line.
 */
function blank(text: string): string {
  const tokens = /\/\/[^\n]*|(?<=^|[\s(,;{[=])\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g;
  return text.replace(tokens, (token) => {
    const quote = token.startsWith("/") ? "" : token[0]!;
    return quote + token.slice(quote.length, token.length - quote.length).replace(/[^\n]/g, " ") + quote;
  });
}

async function readSources(): Promise<Source[]> {
  const paths = (await Array.fromAsync(walk(""))).sort();
  return await Promise.all(paths.map(async (path) => {
    const text = await Deno.readTextFile(new URL(path, ROOT));
    return { path, text, code: blank(text) };
  }));
}

const SOURCES = await readSources();

const ROOMS = ["manager/", "peer/", "cli/"];
const inRooms = (path: string) => path === "mod.ts" || ROOMS.some((room) => path.startsWith(room));
const isEntry = (path: string) => path.endsWith("/main.ts");

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

/** Every place where `pattern` matches the code of a source. */
function finds({ path, code }: Source, pattern: RegExp): string[] {
  return [...code.matchAll(pattern)].map((match) => `${path}:${lineOf(code, match.index)}: ${match[0].trim()}`);
}

function importsOf({ path, text, code }: Source): Import[] {
  // The specifier is read from the text, the rest from the code, where no comment looks like an import.
  const statement = /\b(import|export)\s+(type\s)?[^"';]*?\bfrom\s*["']|\bimport\s*\(?\s*["']/g;
  return [...code.matchAll(statement)].map((match) => {
    const start = match.index + match[0].length;
    const specifier = text.slice(start, text.indexOf(text[start - 1]!, start));
    const target = specifier.startsWith(".") ? new URL(specifier, `file:///${path}`).pathname.slice(1) : specifier;
    // `import type { A }`, or `import { type A, type B }`.
    const typeOnly = match[2] !== undefined || /^\w+\s*\{(\s*type\s[^,}]*,?)+\s*\}/.test(match[0]);
    return { line: lineOf(code, match.index), target, typeOnly };
  });
}

type Verdict = (target: string, typeOnly: boolean, from: string) => boolean;

const isPackage = (target: string) => !/^(manager|peer|cli|tests|\.ci)\/|^mod\.ts$/.test(target);
const under = (...folders: string[]) => (target: string) => folders.some((folder) => target.startsWith(folder));

/** Asserts that every import of the files under `folder` is allowed, and names each that is not. */
function assertImports(folder: string, allowed: Verdict): void {
  const offenders = SOURCES.filter(({ path }) => path.startsWith(folder)).flatMap((source) =>
    importsOf(source)
      .filter(({ target, typeOnly }) => !isPackage(target) && !allowed(target, typeOnly, source.path))
      .map(({ target, line }) => `${source.path}:${line}: imports ${target}`)
  );
  assertNone(offenders);
}

function assertNone(offenders: string[]): void {
  assert(offenders.length === 0, `\n${offenders.join("\n")}\n`);
}

Deno.test("the rules see every form of import, and none in comments", () => {
  const text = [
    'import { a } from "./a.ts";',
    '// import { no } from "./comment.ts";',
    '/* import { no } from "./block.ts"; */',
    'import type { B } from "../b.ts";',
    "import {",
    "  type C,",
    "  type D as E,",
    "} from '../c/d.ts';",
    'import { type F, g } from "npm-package";',
    'export * from "./h.ts";',
    'const url = "http://x"; const late = await import("./i.ts");',
    'import "./j.ts";',
  ].join("\n");
  const found = importsOf({ path: "peer/task/x.ts", text, code: blank(text) });
  assertEquals(found.map(({ line, target, typeOnly }) => [line, target, typeOnly]), [
    [1, "peer/task/a.ts", false],
    [4, "peer/b.ts", true],
    [5, "peer/c/d.ts", true],
    [9, "npm-package", false],
    [10, "peer/task/h.ts", false],
    [11, "peer/task/i.ts", false],
    [12, "peer/task/j.ts", false],
  ]);
});

Deno.test("peer/core imports packages and itself only", () => {
  assertImports("peer/core/", under("peer/core/"));
});

Deno.test("peer imports neither manager nor cli", () => {
  assertImports("peer/", under("peer/"));
});

Deno.test("manager imports manager and peer/core only", () => {
  assertImports("manager/", under("manager/", "peer/core/"));
});

Deno.test("cli imports cli, peer/core, peer/ipc/client and peer/source only, and its daemon command peer/main", () => {
  assertImports("cli/", (target, _, from) => {
    if (from === "cli/commands/daemon.ts" && target === "peer/main.ts") return true;
    // Without a daemon the origin is read by the daemon's own code, set up by the daemon's own configuration.
    if (from === "cli/direct/origin_source.ts" && target === "peer/config.ts") return true;
    return under("cli/", "peer/core/", "peer/source/")(target) || target === "peer/ipc/client.ts";
  });
});

Deno.test("storage, source, transfer and proxy know peer/task by import type only", () => {
  for (const room of ["storage", "source", "transfer", "proxy"]) {
    assertImports(`peer/${room}/`, (target, typeOnly) => typeOnly || !target.startsWith("peer/task/"));
  }
});

Deno.test("mod.ts imports no tests and no build files", () => {
  assertImports("mod.ts", under("manager/", "peer/", "cli/"));
});

Deno.test("no source imports tests or .ci", () => {
  for (const room of ROOMS) assertImports(room, (target) => !under("tests/", ".ci/")(target));
});

Deno.test("both import maps hold the same keys, and the same npm packages", async () => {
  const read = async (name: string): Promise<Record<string, string>> =>
    JSON.parse(await Deno.readTextFile(new URL(name, ROOT))).imports;
  const npmOf = (map: Record<string, string>) => Object.entries(map).filter(([key]) => !key.startsWith("@std/")).sort();
  const [jsr, npm] = [await read("deno.json"), await read("import_map.npm.json")];
  assertEquals(Object.keys(npm).sort(), Object.keys(jsr).sort());
  assertEquals(npmOf(npm), npmOf(jsr));
});

Deno.test("every npm package is pinned to one version", async () => {
  const { imports } = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));
  const loose = Object.entries<string>(imports).filter(([, target]) =>
    target.startsWith("npm:") && !/^npm:\/?(@[\w-]+\/)?[\w.-]+@\d+\.\d+\.\d+[\w.-]*(\/.*)?$/.test(target)
  );
  assertNone(loose.map(([key, target]) => `deno.json:1: ${key}: ${target}`));
});

/** Whether a module exports nothing that exists at run time, so that there is nothing to test. */
function isTypesOnly({ code }: Source): boolean {
  return !/^export\s+(?!type\b|interface\b|declare\b)/m.test(code);
}

Deno.test("every source file has its mirror test, or a test that says `// covers: path`", () => {
  const paths = new Set(SOURCES.map(({ path }) => path));
  const tests = SOURCES.filter(({ path }) => path.startsWith("tests/"));
  const covered = new Set(
    tests.flatMap(({ text }) => text.split("\n").slice(0, 20))
      .flatMap((line) => /^\s*(?:\/\/|\*)\s*covers:\s*(.+)$/.exec(line)?.[1]?.split(/[\s,]+/) ?? []),
  );
  const offenders = SOURCES.filter((source) => {
    const { path } = source;
    if (!inRooms(path) || isEntry(path) || path.endsWith("mod.ts") || isTypesOnly(source)) return false;
    return !paths.has(`tests/unit/${path.replace(/\.ts$/, "_test.ts")}`) && !covered.has(path);
  });
  assertNone(offenders.map(({ path }) => `${path}:1: wants tests/unit/${path.replace(/\.ts$/, "_test.ts")}`));
});

Deno.test("every mirror test and every covers line names a source file that exists", () => {
  const paths = new Set(SOURCES.map(({ path }) => path));
  const offenders = SOURCES.filter(({ path }) => path.startsWith("tests/")).flatMap(({ path, text }) =>
    text.split("\n").slice(0, 20).flatMap((line, i) =>
      (/^\s*(?:\/\/|\*)\s*covers:\s*(.+)$/.exec(line)?.[1]?.trim().split(/[\s,]+/) ?? [])
        .filter((covered) => !paths.has(covered))
        .map((covered) => `${path}:${i + 1}: covers ${covered}, which is not there`)
    )
  );
  assertNone(offenders);
});

Deno.test(`no file has more than ${LINES_MAX} lines`, () => {
  const lengths = SOURCES.map(({ path, text }) => ({ path, count: text.trimEnd().split("\n").length }));
  assertNone(lengths.filter(({ count }) => count > LINES_MAX).map(({ path, count }) => `${path}:${count}: too long`));
});

Deno.test("the console belongs to the edges", () => {
  const inner = SOURCES.filter(({ path }) => inRooms(path) && !isEntry(path) && !path.startsWith("cli/"));
  assertNone(inner.flatMap((source) => finds(source, /\bconsole\.\w+/g)));
});

Deno.test("the environment and the exit code belong to the entries, cli and config files", () => {
  const inner = SOURCES.filter(({ path }) =>
    inRooms(path) && !isEntry(path) && !path.startsWith("cli/") && !/(^|\/|_)config\.ts$/.test(path) &&
    // The facts of this machine, for both daemon and client.
    path !== "peer/core/machine.ts"
  );
  assertNone(inner.flatMap((source) => finds(source, /\bDeno\.(env|exit)\b|\bprocess\.(env|exit)\b/g)));
});

Deno.test("no unfinished work is marked in the sources", () => {
  const mark = new RegExp(
    `\\b(${["TO", "FIX"].map((head) => head + (head === "TO" ? "DO" : "ME")).join("|")})\\b`,
    "g",
  );
  assertNone(
    SOURCES.flatMap(({ path, text }) =>
      [...text.matchAll(mark)].map((match) => `${path}:${lineOf(text, match.index)}: ${match[0]}`)
    ),
  );
});

Deno.test("no test is switched off", () => {
  const off = /\bignore:\s*true\b|\bDeno\.test\.(ignore|only)\b|\bonly:\s*true\b/g;
  assertNone(SOURCES.filter(({ path }) => path.startsWith("tests/")).flatMap((source) => finds(source, off)));
});

Deno.test("files are named in snake_case", () => {
  const named = (path: string) => /^[a-z0-9_]+(\.d)?\.ts$/.test(path.split("/").at(-1)!);
  assertNone(SOURCES.filter(({ path }) => !named(path)).map(({ path }) => `${path}:1: not snake_case`));
});

Deno.test("every source file says at its head what it is for", () => {
  const headless = SOURCES.filter(({ path, text }) => inRooms(path) && !/^(#!.*\n)?\/(\/|\*\*)/.test(text));
  assertNone(headless.map(({ path }) => `${path}:1: opens without a module head`));
});

Deno.test("nothing is exported by default", () => {
  assertNone(SOURCES.flatMap((source) => finds(source, /^export default\b/gm)));
});
