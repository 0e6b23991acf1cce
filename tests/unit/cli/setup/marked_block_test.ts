/** Blocks come and go, and what stands around them stays byte for byte. */
import { assertEquals } from "@std/assert";
import { blocksOf, dropBlocks, outsideOf, putBlock } from "../../../../cli/setup/marked_block.ts";

const A = { name: "a.test", body: "x = 1\ny = 2" };
const B = { name: "b.test:5000", body: "[t]" };

for (const text of ["", "k = 1\n", "k = 1\n\n[t]\nv = 2\n", "# comment\n[[a]]\n[[b]]\n"]) {
  for (const before of [null, /^\s*\[/]) {
    Deno.test(`a block put into ${JSON.stringify(text)} (${before}) is found, and goes without a trace`, () => {
      const one = putBlock(text, A, before);
      assertEquals(blocksOf(one), [A]);
      const two = putBlock(one, B, before);
      assertEquals(blocksOf(two).map(({ name }) => name).sort(), [A.name, B.name]);
      assertEquals(putBlock(two, A, before), two);
      assertEquals(outsideOf(two), text);
      assertEquals(dropBlocks(two, (name) => name === B.name), one);
      assertEquals(dropBlocks(two), text);
    });
  }
}

Deno.test("a block stands before the first matching line, and never inside another block", () => {
  const text = putBlock("k = 1\n[t]\n", B, /^\[/);
  assertEquals(text.split("\n").indexOf("[t]") < text.split("\n").lastIndexOf("[t]"), true);
  const both = putBlock(text, A, /^\[/);
  assertEquals(blocksOf(both), [B, A]);
  assertEquals(outsideOf(both), "k = 1\n[t]\n");
});

Deno.test("a block with another body takes the old one's place", () => {
  const text = putBlock(`${putBlock("", A)}after = 1\n`, { name: A.name, body: "new" });
  assertEquals(blocksOf(text), [{ name: A.name, body: "new" }]);
  assertEquals(text.endsWith("after = 1\n"), true);
});

const UNTOUCHED = [
  "# >>> lacewing setup: x\nno end\n",
  "# <<< lacewing setup\n",
  "# >>> somebody else: x\n# <<< somebody else\n",
];
for (const text of UNTOUCHED) {
  Deno.test(`${JSON.stringify(text)} holds no block`, () => {
    assertEquals(blocksOf(text), []);
    assertEquals(dropBlocks(text), text);
  });
}

Deno.test("text that does not end its line gets its newline", () => {
  assertEquals(dropBlocks(putBlock("k = 1", A)), "k = 1\n");
});

Deno.test("a block tells for whom it stands; without a word it is for everybody", () => {
  const users = ["crio", "podman"];
  const text = putBlock(putBlock("", { ...A, users }), B);
  assertEquals(blocksOf(text), [{ ...A, users }, B]);
  assertEquals(blocksOf(putBlock(text, { ...A, users: ["crio"] })), [{ ...A, users: ["crio"] }, B]);
  assertEquals(dropBlocks(text), "");
});
