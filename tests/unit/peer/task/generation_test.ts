import { assertEquals, assertNotEquals } from "@std/assert";
import { expectedVersion, metaOf } from "../../../../peer/task/generation.ts";

const FACTS = {
  url: "http://origin/f",
  contentLength: 10,
  ranges: true,
  version: { etag: '"a"', lastModified: "Mon, 01 Jan 2024 00:00:00 GMT" },
};
const BLOB = `http://registry/v2/app/blobs/sha256:${"a".repeat(64)}`;

Deno.test("metaOf() gives hosts that read one version the same generation", () => {
  assertEquals(metaOf(FACTS, "n1").generation, metaOf(FACTS, "n2").generation);
});

for (
  const [what, other] of [
    ["another ETag", { ...FACTS, version: { etag: '"b"' } }],
    ["another length", { ...FACTS, contentLength: 11 }],
    ["another modification time", { ...FACTS, version: { lastModified: "Tue, 02 Jan 2024 00:00:00 GMT" } }],
  ] as const
) {
  Deno.test(`metaOf() gives ${what} another generation`, () => {
    assertNotEquals(metaOf(FACTS, "n").generation, metaOf(other, "n").generation);
  });
}

Deno.test("metaOf() names a content without validator by the nonce, and reads it as one stream", () => {
  const meta = metaOf({ ...FACTS, version: {} }, "nonce");
  assertEquals([meta.generation, meta.ranges], ["nonce", false]);
});

Deno.test("metaOf() names a blob by its digest, whatever validator a registry sends", () => {
  const one = metaOf({ ...FACTS, url: BLOB, version: {} }, "n1");
  const two = metaOf({ ...FACTS, url: BLOB, version: { etag: '"x"' } }, "n2");
  assertEquals([one.generation, one.ranges], [two.generation, true]);
});

Deno.test("expectedVersion() wants the recorded validators, and nothing of a blob", () => {
  assertEquals(expectedVersion("http://origin/f", metaOf(FACTS, "n")), FACTS.version);
  assertEquals(expectedVersion(BLOB, metaOf(FACTS, "n")), undefined);
  assertEquals(expectedVersion("http://origin/f", metaOf({ ...FACTS, version: {} }, "n")), undefined);
});
