/**
 * Makes a bundle load a module of node when the code that uses it is first
 * run. `deno bundle` keeps static imports of `node:` at the top of the file even
 * for modules that are only imported dynamically, so that each start of the
 * client waits for `node:sqlite`, `node:http` and others of the daemon: 164 ms
 * for 1 KiB with them, 66 ms without (Deno 2.9.6, 2 busy cores).
 *
 * Works on the text that esbuild writes: a section a module, `// path` at its
 * head, and where it is not run at once `var init_x = __esm({ "path"() {…} })`.
 * A section that looks otherwise keeps its imports: slower, never wrong.
 */

/** Loads what is bundled from npm, which asks for node's modules by `require`. */
const REQUIRE_HEAD =
  /^import \{ createRequire as (\w+) \} from "node:module";\nvar __require = \1\(import\.meta\.url\);$/m;
const SECTION_HEAD = /^(?=\/\/ [^\n]+\.[cm]?[jt]sx?\n)/m;
const BUILTIN_IMPORT = /^import (?:(\w+)|\* as (\w+)|\{([^}]*)\}) from ("node:[\w/]+");\n/mg;

/** The bundle's text with its builtins loaded where they are first needed. */
export function loadBuiltinsLate(text: string): string {
  const late = text.replace(REQUIRE_HEAD, "var __require = (name) => process.getBuiltinModule(name);");
  return late.split(SECTION_HEAD).map(loadSectionLate).join("");
}

function loadSectionLate(section: string): string {
  const path = /^\/\/ ([^\n]+)\n/.exec(section)?.[1] ?? "";
  const init = ` = __esm({\n  ${JSON.stringify(path)}() {\n`;
  if (!section.includes(init)) return section;
  const loads: string[] = [];
  const body = section.replace(BUILTIN_IMPORT, (_, whole, namespace, list, name) => {
    const load = `process.getBuiltinModule(${name})`;
    const own = whole ?? namespace;
    if (own !== undefined) {
      loads.push(`    ${own} = ${load};\n`);
      return `var ${own};\n`;
    }
    const names = (list as string).split(",").map((item) => item.trim().split(" as ")).filter(([first]) =>
      first !== ""
    );
    loads.push(`    ({ ${names.map((pair) => pair.join(": ")).join(", ")} } = ${load});\n`);
    return `var ${names.map((pair) => pair.at(-1)).join(", ")};\n`;
  });
  return body.replace(init, () => init + loads.join(""));
}
