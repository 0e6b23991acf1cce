/** What may reach a terminal. */
import { assert, assertEquals } from "@std/assert";
import { safeLine } from "../../../cli/terminal.ts";

const ROWS: [string, string, string][] = [
  ["text", "Cannot read /a b: no", "Cannot read /a b: no"],
  ["other scripts", "\u4e2d\u6587 \u00e9", "\u4e2d\u6587 \u00e9"],
  ["line ends", "a\n  b\r\nc", "a b c"],
  ["escape sequences", "a\x1b[2Jb", "a\\u001b[2Jb"],
  ["C1 controls", "a\x9b2J", "a\\u009b2J"],
  ["bells, backspaces, NUL", "\x07\x08\0", "\\u0007\\u0008\\u0000"],
  ["what turns the direction of writing", "a\u202egpj", "a\\u202egpj"],
  ["line separators of Unicode", "a\u2028b", "a b"],
  ["passwords in URLs", "http://me:secret@host/", "http://***@host/"],
  ["signed query values", "http://h/x?Signature=abc&y=1", "http://h/x?Signature=***&y=1"],
];
for (const [claim, text, line] of ROWS) {
  Deno.test(`safeLine() of ${claim}`, () => {
    const result = safeLine(text);
    assertEquals(result.replaceAll("\\u2028", " "), line);
    assert(!result.includes("\n"));
  });
}

Deno.test("safeLine() bounds its length", () => assert(safeLine("x".repeat(1e6)).length < 2100));
