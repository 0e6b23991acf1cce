/** Bundles in the form that esbuild gives them: what is loaded late, and what stays as it is. */
// covers: .ci/lazy_builtins.ts
import { assertEquals } from "@std/assert";
import { loadBuiltinsLate } from "../../../.ci/lazy_builtins.ts";

const LATE = `// a/late.ts
import { createHash, randomBytes as randomBytes2 } from "node:crypto";
import * as http from "node:http";
import Path from "node:path";
function digest() {
  return createHash("md5");
}
var init_late = __esm({
  "a/late.ts"() {
    init_other();
  }
});
`;

Deno.test("a module that is not run at once loads its builtins when it is", () => {
  assertEquals(
    loadBuiltinsLate(LATE),
    `// a/late.ts
var createHash, randomBytes2;
var http;
var Path;
function digest() {
  return createHash("md5");
}
var init_late = __esm({
  "a/late.ts"() {
    ({ createHash, randomBytes: randomBytes2 } = process.getBuiltinModule("node:crypto"));
    http = process.getBuiltinModule("node:http");
    Path = process.getBuiltinModule("node:path");
    init_other();
  }
});
`,
  );
});

const SAME: [string, string][] = [
  ["a module that is run at once", '// a/early.ts\nimport { open } from "node:fs";\nopen();\n'],
  [
    "a module that is run at once before one that is not",
    '// a/early.ts\nimport { open } from "node:fs";\n\n// a/late.ts\nvar init_late = __esm({\n  "a/late.ts"() {\n  }\n});\n',
  ],
  [
    "imports of other things",
    '// a/late.ts\nimport { a } from "npm:a";\nvar init_late = __esm({\n  "a/late.ts"() {\n  }\n});\n',
  ],
  ["what is no bundle", "console.log(1);\n"],
  ["nothing", ""],
];
for (const [claim, text] of SAME) {
  Deno.test(`${claim}: stays as it is`, () => assertEquals(loadBuiltinsLate(text), text));
}

Deno.test("packages get node's modules without one of their own", () => {
  assertEquals(
    loadBuiltinsLate(
      'import { createRequire as own } from "node:module";\nvar __require = own(import.meta.url);\nvar x = 1;\n',
    ),
    "var __require = (name) => process.getBuiltinModule(name);\nvar x = 1;\n",
  );
});

Deno.test("what was changed runs, and loads nothing before", async () => {
  const head = `var __getOwnPropNames = Object.getOwnPropertyNames;
var __esm = (fn, res) => function __init() {
  return fn && (res = (0, fn[__getOwnPropNames(fn)[0]])(fn = 0)), res;
};
var init_other = () => {};
`;
  const tail = `// main.ts
export const before = typeof createHash;
init_late();
export const after = digest().update("a").digest("hex") + typeof http.request + typeof Path.join + typeof randomBytes2;
`;
  const url = `data:text/javascript,${encodeURIComponent(head + loadBuiltinsLate(LATE + tail))}`;
  const { before, after } = await import(url);
  assertEquals([before, after], ["undefined", "0cc175b9c0f1b6a831c399e269772661functionfunctionfunction"]);
});
