import { assert, assertEquals, assertRejects } from "@std/assert";
import { parseDigest, sha256Hex } from "../../../../peer/core/digest.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { DirectReader, type DirectWish } from "../../../../peer/proxy/direct_reader.ts";
import { contentBytes } from "../../../testutil/content.ts";
import { FakeSource } from "../../../testutil/fake_source.ts";

const SIGNAL = new AbortController().signal;
const SIZE = 300_000;
const CONTENT = contentBytes(3, 0, SIZE);
const DIGEST = parseDigest(`sha256:${sha256Hex(CONTENT)}`);

function wish(over: Partial<DirectWish> = {}): DirectWish {
  const bytes = { offset: 0, length: SIZE };
  return { url: "http://origin/f", headers: [], digest: DIGEST, contentLength: SIZE, bytes, ...over };
}

/** Reads until the end or the error, as often as an answer breaks off. @returns the bytes that came */
async function readOn(reader: DirectReader, from: number, end: number): Promise<{ bytes: Uint8Array; breaks: number }> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let [at, breaks] = [from, 0];
  while (at < end) {
    try {
      for await (const chunk of reader.read(at, SIGNAL)) {
        parts.push(chunk.slice());
        at += chunk.length;
      }
    } catch (error) {
      if (!(error instanceof LacewingError) || error.code !== "network") throw error;
      breaks += 1;
    }
  }
  return { bytes: new Uint8Array(await new Blob(parts).arrayBuffer()), breaks };
}

for (const ranges of [true, false]) {
  for (const done of [0, 1, 65_536, SIZE - 1]) {
    Deno.test(`bytes from ${done} on come with the digest of all of them, ranges ${ranges}`, async () => {
      const source = new FakeSource(CONTENT);
      source.ranges = ranges;
      source.cutAfter = [70_000, 150_000];
      const { bytes, breaks } = await readOn(new DirectReader(source, wish(), done), done, SIZE);
      assertEquals([bytes, breaks], [CONTENT.slice(done), 2]);
      assertEquals(source.requests[0]!.range, { offset: 0, length: SIZE });
    });
  }
}

for (const wrong of [0, 100_000, SIZE - 1]) {
  Deno.test(`a wrong byte at ${wrong} keeps the last bytes back, wherever the reader was`, async () => {
    const bytes = CONTENT.slice();
    bytes[wrong]! ^= 1;
    for (const done of [0, 120_000, SIZE - 1]) {
      const reader = new DirectReader(new FakeSource(bytes), wish(), done);
      let given = done;
      const error = await assertRejects(async () => {
        for await (const chunk of reader.read(done, SIGNAL)) given += chunk.length;
      }, LacewingError);
      assertEquals(error.code, "digest_mismatch");
      assert(given < SIZE);
    }
  });
}

Deno.test("a part is read from where the reader is, and has no digest to check", async () => {
  const source = new FakeSource(CONTENT);
  const part = wish({ bytes: { offset: 1000, length: 5000 } });
  const { bytes } = await readOn(new DirectReader(source, part, 200), 1200, 6000);
  assertEquals(bytes, CONTENT.slice(1200, 6000));
  assertEquals(source.requests.map(({ range }) => range), [{ offset: 1200, length: 4800 }]);
});

Deno.test("answers of two versions are never put together", async () => {
  const source = new FakeSource(CONTENT);
  source.cutAfter = [70_000];
  const reader = new DirectReader(source, wish({ digest: null }), 0);
  await assertRejects(async () => {
    for await (const _ of reader.read(0, SIGNAL));
  }, LacewingError);
  source.version = { etag: '"2"' };
  const error = await assertRejects(() => reader.read(reader.position, SIGNAL).next(), LacewingError);
  assertEquals(error.code, "content_changed");
});

Deno.test("another version than the one given so far, or another length, ends the reading", async () => {
  for (const over of [{ expect: { etag: '"0"' } }, { contentLength: SIZE + 1 }]) {
    const reader = new DirectReader(new FakeSource(CONTENT), wish({ digest: null, ...over }), 10);
    const error = await assertRejects(() => reader.read(10, SIGNAL).next(), LacewingError);
    assertEquals(error.code, "content_changed");
  }
});

Deno.test("a digest in the URL counts", async () => {
  const reader = new DirectReader(
    new FakeSource(CONTENT),
    wish({ url: `http://origin/v2/a/blobs/sha256:${"0".repeat(64)}`, digest: null }),
    5,
  );
  const error = await assertRejects(async () => {
    for await (const _ of reader.read(5, SIGNAL));
  }, LacewingError);
  assertEquals(error.code, "digest_mismatch");
});
