/** Holds the parts of `@std/streams` and `@std/crypto` that are used here, or what stands in for them, to their behaviour. */
import { TextLineStream } from "@std/streams/text-line-stream";
import { toText } from "@std/streams/to-text";
import { timingSafeEqual } from "@std/crypto/timing-safe-equal";
import { assert, assertEquals } from "@std/assert";

const LINES: Array<[string, string[], string[]]> = [
  ["nothing from nothing", [], []],
  ["nothing from empty chunks", ["", ""], []],
  ["an empty line", ["\n"], [""]],
  ["a last line without an end", ["a\nb"], ["a", "b"]],
  ["no line after the last end", ["a\nb\n"], ["a", "b"]],
  ["a line over many chunks", ["a", "b", "", "c\nd"], ["abc", "d"]],
  ["many lines in one chunk", ["a\n\nb\nc\n"], ["a", "", "b", "c"]],
  ["lines that end by CR LF, also across chunks", ["a\r\nb\r", "\nc\r\n"], ["a", "b", "c"]],
  ["a CR inside a line", ["a\rb\n"], ["a\rb"]],
];
for (const [claim, chunks, wanted] of LINES) {
  Deno.test(`TextLineStream gives ${claim}`, async () => {
    assertEquals(await Array.fromAsync(ReadableStream.from(chunks).pipeThrough(new TextLineStream())), wanted);
  });
}

Deno.test("TextLineStream takes time linear in the text when a line spans many chunks", async () => {
  const chunk = "x".repeat(64);
  const chunks = Array.from({ length: 50_000 }, () => chunk);
  const [line] = await Array.fromAsync(ReadableStream.from(chunks).pipeThrough(new TextLineStream()));
  assertEquals(line!.length, 3_200_000);
});

Deno.test("toText() joins strings", async () => {
  assertEquals(await toText(ReadableStream.from(["a", "", "b"])), "ab");
});

Deno.test("toText() decodes a character that is cut between chunks", async () => {
  const [a, b] = [new Uint8Array([0xe2, 0x82]), new Uint8Array([0xac])];
  assertEquals(await toText(ReadableStream.from([a, b])), "\u20ac");
});

Deno.test("toText() replaces bytes that are not UTF-8", async () => {
  assertEquals(await toText(ReadableStream.from([new Uint8Array([0x61, 0xff])])), "a\ufffd");
});

Deno.test("timingSafeEqual() tells equal bytes from others, in views too", () => {
  const bytes = new Uint8Array([9, 1, 2, 3]);
  assert(timingSafeEqual(bytes.subarray(1), new Uint8Array([1, 2, 3])));
  assert(timingSafeEqual(new Uint8Array([1, 2, 3]).buffer, new DataView(bytes.buffer, 1)));
  assert(!timingSafeEqual(bytes.subarray(1), new Uint8Array([1, 2, 4])));
  assert(timingSafeEqual(new Uint8Array(), new Uint8Array()));
});
