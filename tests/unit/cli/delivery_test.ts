/** Where bytes go, and that only the right ones get a name. */
import { assertEquals, assertRejects } from "@std/assert";
import { type Digest, parseDigest, sha256Hex } from "../../../peer/core/digest.ts";
import { LacewingError } from "../../../peer/core/errors.ts";
import { Delivery } from "../../../cli/delivery.ts";
import { OutputFile } from "../../../cli/output_file.ts";

const TEXT = "the content";
const RIGHT = parseDigest(`sha256:${sha256Hex(TEXT)}`);
const WRONG = parseDigest(`sha256:${"0".repeat(64)}`);
const EMPTY = parseDigest(`sha256:${sha256Hex("")}`);

function chunks(...texts: string[]): () => Promise<Uint8Array | null> {
  const rest = texts.map((text) => new TextEncoder().encode(text));
  return () => Promise.resolve(rest.shift() ?? null);
}

async function withDelivery(
  digest: Digest | null,
  run: (delivery: Delivery, place: { folder: string; stop: AbortController }) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const stop = new AbortController();
  try {
    using output = await OutputFile.prepare(`${folder}/out`);
    await run(new Delivery({ output, digest, signal: stop.signal }), { folder, stop });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a right digest lets the output have its name, and progress is told", () =>
  withDelivery(RIGHT, async (delivery, { folder }) => {
    const seen: number[] = [];
    const length = await delivery.writeAll(chunks("the ", "content"), { onWritten: (done) => seen.push(done) });
    await delivery.finish(length);
    assertEquals([await Deno.readTextFile(`${folder}/out`), seen], [TEXT, [4, 11]]);
  }));

Deno.test("a wrong digest is told with both digests", () =>
  withDelivery(WRONG, async (delivery) => {
    const error = await assertRejects(() => delivery.writeAll(chunks(TEXT)), LacewingError, RIGHT.hex);
    assertEquals([error.code, error.message.includes(WRONG.hex)], ["digest_mismatch", true]);
  }));

Deno.test("nothing has a digest as well", async () => {
  await withDelivery(EMPTY, async (delivery) => assertEquals(await delivery.writeAll(chunks()), 0));
  await withDelivery(RIGHT, async (delivery) => {
    await assertRejects(() => delivery.writeAll(chunks()), LacewingError);
  });
});

Deno.test("the digest of a part is that of the part", () =>
  withDelivery(parseDigest(`sha256:${sha256Hex("cont")}`), async (delivery, { folder }) => {
    await Deno.writeTextFile(`${folder}/store`, TEXT);
    assertEquals(await delivery.takeFile(`${folder}/store`, { offset: 4, length: 4 }), true);
    await delivery.finish(4);
    assertEquals(await Deno.readTextFile(`${folder}/out`), "cont");
  }));

Deno.test("a delivery that begins anew forgets what was written, also in its digest", () =>
  withDelivery(RIGHT, async (delivery, { folder }) => {
    await assertRejects(() => delivery.writeAll(chunks("half")));
    delivery.restart();
    await delivery.finish(await delivery.writeAll(chunks(TEXT)));
    assertEquals(await Deno.readTextFile(`${folder}/out`), TEXT);
  }));

Deno.test("a delivery that is stopped writes no more, and gives no name", () =>
  withDelivery(null, async (delivery, { folder, stop }) => {
    let count = 0;
    const endless = () => {
      if (++count === 3) stop.abort(new Error("stopped"));
      return Promise.resolve(new Uint8Array(10));
    };
    await assertRejects(() => delivery.writeAll(endless), Error, "stopped");
    assertEquals(count, 3);
    await assertRejects(() => delivery.finish(30), Error, "stopped");
    await assertRejects(() => Deno.stat(`${folder}/out`), Deno.errors.NotFound);
  }));
