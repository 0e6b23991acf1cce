import { assert, assertEquals } from "@std/assert";
import { toAscii } from "../../../.ci/ascii.ts";

/** What a module says when it is run. */
async function run(program: string): Promise<unknown> {
  return (await import(`data:text/javascript,${encodeURIComponent(program)}`)).default;
}

const PROGRAMS: readonly (readonly [string, string])[] = [
  ["a string", `export default "naïve → 😀";`],
  ["a string with an escaped character", String.raw`export default "a\é \\é \\\é";`],
  ["a template", "export default `é ${1 + 1} 😀`;"],
  ["a regex", `export default ["é😀z".replace(/[é]/, "-"), /^[à-ü]$/.test("é")];`],
  ["a regex of code points", `export default ["😀".match(/^[😀-😎]$/u)?.[0], /^\\é$/.test("\\\\é")];`],
  ["a name", `const größe = 3; export default { größe }.größe;`],
  ["a comment", `export default 1; // — ∞`],
];

for (const [claim, program] of PROGRAMS) {
  Deno.test(`toAscii() keeps what ${claim} means`, async () => {
    const ascii = toAscii(program);
    assert(!/[\u0080-\uffff]/.test(ascii), ascii);
    assertEquals(await run(ascii), await run(program));
  });
}

Deno.test("toAscii() leaves a program alone whose raw strings would change", () => {
  const program = "export default String.raw`é\\n`;";
  assertEquals(toAscii(program), program);
});
