/** What an earlier run has left: what is taken up, what is not, and what is never touched. */
import { assert, assertEquals } from "@std/assert";
import { partialPath } from "../../../cli/output_path.ts";
import { type PartFacts, PartialFile } from "../../../cli/partial_file.ts";

const WANTED = { taskId: "a".repeat(64), url: "http://o.test/f?Signature=secret&x=1" };
const FACTS: PartFacts = { version: { etag: '"1"' }, contentLength: 10, part: { offset: 0, length: 10 } };

async function withOutput(run: (output: string, path: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await run(`${folder}/out`, partialPath(`${folder}/out`));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** As an interrupted run leaves it. */
async function leave(output: string, text: string, facts = FACTS): Promise<void> {
  using partial = await PartialFile.open(output, WANTED);
  await partial!.begin(facts, 0);
  partial!.writeSync(new TextEncoder().encode(text));
}

async function found(output: string, wanted = WANTED) {
  using partial = await PartialFile.open(output, wanted);
  return partial?.found;
}

async function exists(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const bytes of chunks) text += new TextDecoder().decode(bytes);
  return text;
}

Deno.test("the next run finds the bytes, of which content they are, and goes on after them", () =>
  withOutput(async (output, path) => {
    await leave(output, "01234");
    using partial = await PartialFile.open(output, WANTED);
    assertEquals(partial!.found, { ...FACTS, have: 5 });
    await partial!.begin(FACTS, 4);
    assertEquals(await textOf(partial!.read(4)), "0123");
    partial!.writeSync(new TextEncoder().encode("456789"));
    assertEquals(await Deno.readTextFile(path), "0123456789");
  }));

Deno.test("a modification time is a validator too", () =>
  withOutput(async (output) => {
    const facts = { ...FACTS, version: { lastModified: "Mon, 01 Jan 2024 00:00:00 GMT" } };
    await leave(output, "0", facts);
    assertEquals(await found(output), { ...facts, have: 1 });
  }));

Deno.test("a run that learned nothing leaves nothing, and one that found something leaves it", () =>
  withOutput(async (output, path) => {
    assertEquals(await found(output), null);
    assertEquals([await exists(path), await exists(`${path}.json`)], [false, false]);
    await leave(output, "01");
    await found(output);
    assertEquals((await found(output))?.have, 2);
  }));

Deno.test("remove() leaves nothing, renamed() only what has the final name", () =>
  withOutput(async (output, path) => {
    await leave(output, "01");
    (await PartialFile.open(output, WANTED))!.remove();
    assertEquals([await exists(path), await exists(`${path}.json`)], [false, false]);
    await leave(output, "01");
    using partial = await PartialFile.open(output, WANTED);
    await Deno.rename(path, output);
    partial!.renamed();
    assertEquals([await Deno.readTextFile(output), await exists(`${path}.json`)], ["01", false]);
  }));

Deno.test("the facts hold no signature, and are for this user alone", () =>
  withOutput(async (output, path) => {
    await leave(output, "01");
    const text = await Deno.readTextFile(`${path}.json`);
    assert(!text.includes("secret") && text.includes("http://o.test/f"), text);
    assertEquals((await Deno.lstat(`${path}.json`)).mode! & 0o777, 0o600);
  }));

const RUBBISH: [string, (text: string) => string][] = [
  ["that are no JSON", () => "{"],
  ["that are another kind of JSON", () => "[]"],
  ["that are null", () => "null"],
  ["that are empty", () => ""],
  ["of another version of this program", (text) => text.replace('"v":1', '"v":2')],
  ["without a validator", (text) => text.replace('"etag"', '"tag"')],
  ["with a length that is no number", (text) => text.replace('"content_length":10', '"content_length":"10"')],
  ["with a negative offset", (text) => text.replace('"offset":0', '"offset":-1')],
  ["that are too long", (text) => text + " ".repeat(20_000)],
];
for (const [claim, spoil] of RUBBISH) {
  Deno.test(`facts ${claim} count as none`, () =>
    withOutput(async (output, path) => {
      await leave(output, "01");
      await Deno.writeTextFile(`${path}.json`, spoil(await Deno.readTextFile(`${path}.json`)));
      assertEquals(await found(output), null);
    }));
}

Deno.test("bytes of another content are not taken up", () =>
  withOutput(async (output) => {
    await leave(output, "01");
    assertEquals(await found(output, { ...WANTED, taskId: "b".repeat(64) }), null);
  }));

Deno.test("one run at a time has it", () =>
  withOutput(async (output) => {
    await leave(output, "01");
    using first = await PartialFile.open(output, WANTED);
    assertEquals([first !== null, await PartialFile.open(output, WANTED)], [true, null]);
  }));

const IN_THE_WAY: [string, (path: string, other: string) => Promise<void>][] = [
  ["a symbolic link", (path, other) => Deno.symlink(other, path)],
  ["a second name of another file", (path, other) => Deno.link(other, path)],
  ["a folder", (path) => Deno.mkdir(path)],
];
for (const [claim, put] of IN_THE_WAY) {
  Deno.test(`${claim} in its place is left alone`, () =>
    withOutput(async (output, path) => {
      await Deno.writeTextFile(`${output}-other`, "mine");
      await put(path, `${output}-other`);
      assertEquals(await PartialFile.open(output, WANTED), null);
      assertEquals(await Deno.readTextFile(`${output}-other`), "mine");
    }));
}

Deno.test("facts that are a symbolic link are neither read nor written through", () =>
  withOutput(async (output, path) => {
    await leave(output, "01");
    await Deno.rename(`${path}.json`, `${output}-other`);
    await Deno.symlink(`${output}-other`, `${path}.json`);
    const before = await Deno.readTextFile(`${output}-other`);
    assertEquals(await found(output), null);
    await leave(output, "0123");
    assertEquals(await Deno.readTextFile(`${output}-other`), before);
    assertEquals((await found(output))?.have, 4);
  }));
