import { assertEquals, assertRejects } from "@std/assert";
import { createHash } from "node:crypto";
import { parseDigest } from "../../../../peer/core/digest.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { verifiedBody } from "../../../../peer/proxy/verified_body.ts";

function setUp(parts: string[], { isRight, isLong }: { isRight: boolean; isLong: boolean }) {
  const text = parts.join("");
  const hex = createHash("sha256").update(isRight ? text : `${text}x`).digest("hex");
  const buffer = new Uint8Array(100);
  const left = [...parts];
  const body = {
    // As the readers do it: one buffer for all.
    read: () => {
      const part = left.shift();
      if (part === undefined) return Promise.resolve(null);
      return Promise.resolve(buffer.subarray(0, new TextEncoder().encodeInto(part, buffer).written));
    },
  };
  return verifiedBody(body, { digest: parseDigest(`sha256:${hex}`), length: isLong ? text.length : null });
}

async function read(body: ReturnType<typeof setUp>, seen: string[]): Promise<void> {
  for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) {
    seen.push(new TextDecoder().decode(bytes));
  }
}

for (const isLong of [true, false]) {
  for (const parts of [["one", "two", "three"], ["one"], []]) {
    const what = `${parts.length} parts of ${isLong ? "known" : "unknown"} length`;
    Deno.test(`${what} with the right digest pass`, async () => {
      const seen: string[] = [];
      await read(setUp(parts, { isRight: true, isLong }), seen);
      assertEquals(seen, parts);
    });
    Deno.test(`${what} with a wrong digest never pass whole`, async () => {
      const seen: string[] = [];
      const error = await assertRejects(() => read(setUp(parts, { isRight: false, isLong }), seen), LacewingError);
      assertEquals(error.code, "digest_mismatch");
      assertEquals(seen, parts.slice(0, -1));
    });
  }
}
