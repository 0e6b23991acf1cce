import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import fc from "fast-check";
import { LacewingError } from "../../../../../peer/core/errors.ts";
import {
  type ByteReader,
  LINE_LENGTH_MAX,
  LineReader,
  LineWriter,
  writeAll,
} from "../../../../../peer/core/wire/json_lines.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** Gives its bytes in parts of at most `partLength`, as a connection may. */
function reader(content: string | Uint8Array, partLength = Infinity): ByteReader & { reads: number } {
  const bytes = typeof content === "string" ? encode(content) : content;
  let at = 0;
  return {
    reads: 0,
    read(target) {
      this.reads += 1;
      const length = Math.min(target.length, partLength, bytes.length - at);
      target.set(bytes.subarray(at, at + length));
      at += length;
      return Promise.resolve(length === 0 ? null : length);
    },
  };
}

async function allLines(lines: LineReader): Promise<string[]> {
  const result: string[] = [];
  for (let line = await lines.readLine(); line !== undefined; line = await lines.readLine()) result.push(line);
  return result;
}

const TEXT = 'first\n\n{"a":"ü€😀"}\r\nlast one\n';
const LINES = ["first", "", '{"a":"ü€😀"}', "last one"];

Deno.test("readLine() gives the same lines for reads of every size", async () => {
  for (let partLength = 1; partLength <= encode(TEXT).length; partLength++) {
    assertEquals(await allLines(new LineReader(reader(TEXT, partLength))), LINES);
  }
});

Deno.test("readLine() gives the same lines for buffers of every size", async () => {
  for (let chunkLength = 1; chunkLength <= 40; chunkLength++) {
    assertEquals(await allLines(new LineReader(reader(TEXT), { chunkLength })), LINES);
  }
});

const CUTS: [string, string[]][] = [
  ["", []],
  ["\n", [""]],
  ["\r\n", [""]],
  ["\n\n\n", ["", "", ""]],
  ["a\r\nb\n", ["a", "b"]],
  ["a\rb\n", ["a\rb"]],
  ["a\r\r\n", ["a\r"]],
];
for (const [text, lines] of CUTS) {
  Deno.test(`readLine() cuts ${JSON.stringify(text)} into ${JSON.stringify(lines)}`, async () => {
    assertEquals(await allLines(new LineReader(reader(text, 1))), lines);
  });
}

for (const text of ["a", "\r", "a\nb", '{"type":"status"}']) {
  Deno.test(`readLine() refuses ${JSON.stringify(text)}: it ends in the middle of a line`, async () => {
    const error = await assertRejects(() => allLines(new LineReader(reader(text))), LacewingError, "in the middle");
    assertEquals(error.code, "protocol");
  });
}

Deno.test("readLine() says undefined again and again after the end", async () => {
  const lines = new LineReader(reader("a\n"));
  assertEquals([await lines.readLine(), await lines.readLine(), await lines.readLine()], ["a", undefined, undefined]);
});

for (const partLength of [1000, 65_536, 100_001, Infinity]) {
  Deno.test(`a line may have ${LINE_LENGTH_MAX} bytes with its newline, read by ${partLength}`, async () => {
    const lines = new LineReader(reader("x".repeat(LINE_LENGTH_MAX - 1) + "\nnext\n", partLength));
    assertEquals((await lines.readLine())?.length, LINE_LENGTH_MAX - 1);
    assertEquals(await lines.readLine(), "next");
  });
  Deno.test(`a line of one byte more is refused, read by ${partLength}`, async () => {
    const lines = new LineReader(reader("short\n" + "x".repeat(LINE_LENGTH_MAX) + "\n", partLength));
    assertEquals(await lines.readLine(), "short");
    const error = await assertRejects(() => lines.readLine(), LacewingError, `longer than ${LINE_LENGTH_MAX} bytes`);
    assertEquals(error.code, "protocol");
  });
}

Deno.test("a line without end is refused after its bound, not read into memory", async () => {
  const endless: ByteReader & { given: number } = {
    given: 0,
    read(target) {
      this.given += target.fill(120).length;
      return Promise.resolve(target.length);
    },
  };
  await assertRejects(() => new LineReader(endless).readLine(), LacewingError);
  assertEquals(endless.given, LINE_LENGTH_MAX);
});

for (const lineLengthMax of [1, 10, 100]) {
  Deno.test(`a reader told so takes lines of ${lineLengthMax} bytes and none longer`, async () => {
    const text = "x".repeat(lineLengthMax - 1);
    assertEquals(await new LineReader(reader(`${text}\n`), { lineLengthMax }).readLine(), text);
    await assertRejects(() => new LineReader(reader(`${text}x\n`), { lineLengthMax }).readLine(), LacewingError);
    await assertRejects(() => new LineReader(reader(`${text}x\n`, 1), { lineLengthMax }).readLine(), LacewingError);
  });
}

Deno.test("readJson() gives values, then undefined at the end", async () => {
  const lines = new LineReader(reader('{"a":[1,null]}\n"text"\nnull\n'));
  assertEquals(await lines.readJson(), { a: [1, null] });
  assertEquals([await lines.readJson(), await lines.readJson()], ["text", null]);
  assertEquals(await lines.readJson(), undefined);
});

for (const text of ["\n", "{\n", "{'a':1}\n", "GET / HTTP/1.1\r\n", "undefined\n", "\u0000\n", "{}{}\n"]) {
  Deno.test(`readJson() refuses ${JSON.stringify(text)}`, async () => {
    const error = await assertRejects(() => new LineReader(reader(text)).readJson(), LacewingError, "not JSON");
    assertEquals(error.code, "protocol");
  });
}

Deno.test("readJson() refuses bytes that are no UTF-8 where they break the JSON, and throws nothing else", async () => {
  const bytes = new Uint8Array([0xff, 0xfe, 0x7b, 0x80, 0x7d, 10]);
  await assertRejects(() => new LineReader(reader(bytes)).readJson(), LacewingError, "not JSON");
});

/** Reads `length` raw bytes with targets of `targetLength`. */
async function readRaw(lines: LineReader, length: number, targetLength: number): Promise<string> {
  let text = "";
  while (text.length < length) {
    const target = new Uint8Array(Math.min(targetLength, length - text.length));
    const read = await lines.readBytes(target);
    assert(read !== null && read >= 1);
    text += decode(target.subarray(0, read));
  }
  return text;
}

Deno.test("raw bytes after a line come whole, and the next line after them, for reads of every size", async () => {
  const raw = "raw\nbytes\r\n\n";
  for (let partLength = 1; partLength < 40; partLength++) {
    for (const targetLength of [1, 5, 100]) {
      const lines = new LineReader(reader(`{"length":12}\n${raw}{"type":"done"}\n`, partLength));
      assertEquals(await lines.readJson(), { length: 12 });
      assertEquals(await readRaw(lines, raw.length, targetLength), raw);
      assertEquals(await lines.readJson(), { type: "done" });
      assertEquals(await lines.readBytes(new Uint8Array(1)), null);
    }
  }
});

Deno.test("bufferedLength counts what came behind the last line, and readBytes() takes it without a read", async () => {
  const source = reader("line\nraw bytes");
  const lines = new LineReader(source);
  assertEquals([await lines.readLine(), lines.bufferedLength, source.reads], ["line", 9, 1]);
  assertEquals(await readRaw(lines, 3, 3), "raw");
  assertEquals([lines.bufferedLength, source.reads], [6, 1]);
});

Deno.test("an error of the connection comes through untouched", async () => {
  const reset = new Deno.errors.ConnectionReset("gone");
  const lines = new LineReader({ read: () => Promise.reject(reset) });
  assertEquals(await assertRejects(() => lines.readLine()), reset);
});

/** Takes at most `partLength` bytes a write, as a kernel may, and lets others run in between. */
function sink(partLength = Infinity) {
  const taken: number[] = [];
  return {
    text: () => decode(new Uint8Array(taken)),
    async write(bytes: Uint8Array): Promise<number> {
      await Promise.resolve();
      const part = bytes.subarray(0, partLength);
      taken.push(...part);
      return part.length;
    },
  };
}

for (const partLength of [1, 3, 1000]) {
  Deno.test(`a writer keeps the order of the calls when the sink takes ${partLength} bytes a time`, async () => {
    const out = sink(partLength);
    const writer = new LineWriter(out);
    await Promise.all([
      writer.writeJson({ type: "data", length: 3 }),
      writer.writeBytes(encode("abc")),
      writer.writeBytes(new Uint8Array()),
      writer.writeJson(["ü\n"]),
    ]);
    assertEquals(out.text(), '{"type":"data","length":3}\nabc["ü\\n"]\n');
  });
}

Deno.test("writeBytes() resolves when all is taken, so that the buffer may be reused", async () => {
  const out = sink(2);
  const writer = new LineWriter(out);
  const buffer = encode("first");
  await writer.writeBytes(buffer);
  buffer.set(encode("again"));
  await writer.writeBytes(buffer);
  assertEquals(out.text(), "firstagain");
});

Deno.test("writeJson() throws on a line over the bound and writes none of it", async () => {
  const out = sink();
  const writer = new LineWriter(out);
  assertThrows(() => writer.writeJson("x".repeat(LINE_LENGTH_MAX)), RangeError);
  await writer.writeJson("next");
  assertEquals(out.text(), '"next"\n');
});

Deno.test("the longest line a writer writes is one a reader reads", async () => {
  const value = "x".repeat(LINE_LENGTH_MAX - 3);
  const parts: Uint8Array[] = [];
  const write = (bytes: Uint8Array) => (parts.push(bytes.slice()), Promise.resolve(bytes.length));
  await new LineWriter({ write }).writeJson(value);
  assertEquals(await new LineReader(reader(parts[0]!)).readJson(), value);
});

Deno.test("a failed write rejects its own call, and the ones behind it try for themselves", async () => {
  let calls = 0;
  const writer = new LineWriter({
    write: (bytes) =>
      ++calls === 1 ? Promise.reject(new Deno.errors.BrokenPipe("gone")) : Promise.resolve(bytes.length),
  });
  const first = assertRejects(() => writer.writeBytes(encode("a")), Deno.errors.BrokenPipe);
  await writer.writeBytes(encode("b"));
  await first;
  assertEquals(calls, 2);
});

Deno.test("writeAll() of nothing does not write", async () => {
  await writeAll({ write: () => Promise.reject(new Error("called")) }, new Uint8Array());
});

Deno.test("any values go through a writer and a reader unchanged, whatever the cuts", async () => {
  const cases = fc.asyncProperty(fc.array(fc.jsonValue()), fc.integer({ min: 1, max: 50 }), async (values, part) => {
    const out = sink();
    const writer = new LineWriter(out);
    await Promise.all(values.map((value) => writer.writeJson(value)));
    const lines = new LineReader(reader(out.text(), part), { chunkLength: 16 });
    for (const value of values) assertEquals(await lines.readJson(), JSON.parse(JSON.stringify(value)));
    assertEquals(await lines.readJson(), undefined);
  });
  await fc.assert(cases, { numRuns: 50 });
});
