/** The origin of the tests does what the tests believe. covers: tests/testutil/origin.ts, tests/testutil/content.ts */
// covers: tests/testutil/origin.ts
import { assert, assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { contentBytes, contentDigest } from "../../testutil/content.ts";
import { startOrigin } from "../../testutil/origin.ts";

async function get(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers });
  return { status: response.status, headers: response.headers, body: await response.bytes() };
}

Deno.test("contentBytes() gives the same bytes for a part as for the whole, and no two blocks alike", () => {
  const whole = contentBytes(7, 0, 200_000);
  for (const [offset, length] of [[0, 1], [3, 9], [65_530, 20], [65_536, 65_536], [131_072, 68_928]] as const) {
    assertEquals(contentBytes(7, offset, length), whole.slice(offset, offset + length));
  }
  assertNotEquals(whole.slice(0, 65_536), whole.slice(65_536, 131_072));
  assertNotEquals(contentBytes(8, 0, 64), contentBytes(7, 0, 64));
});

Deno.test("origin serves contents by query and by registration, whole and in ranges, and counts the bytes", async () => {
  await using origin = startOrigin();
  const path = "/f?size=300000&seed=5";
  assertEquals((await get(origin.url(path))).body, contentBytes(5, 0, 300000));
  assertEquals(origin.bytesSent(path), 300000);
  assertEquals(origin.digest(path), contentDigest({ seed: 5, size: 300000 }));
  const url = origin.put("/small", { bytes: new TextEncoder().encode("0123456789") });
  for (
    const [range, status, text] of [
      ["bytes=0-3", 206, "0123"],
      ["bytes=8-", 206, "89"],
      ["bytes=-3", 206, "789"],
      ["bytes=5-99", 206, "56789"],
      ["bytes=10-", 416, ""],
      ["rubbish", 200, "0123456789"],
    ] as const
  ) {
    const answer = await get(url, { range });
    assertEquals([answer.status, new TextDecoder().decode(answer.body)], [status, text]);
  }
  assertEquals(origin.requests.at(-1)?.range, "rubbish");
  assertEquals((await get(origin.url("/none"))).status, 404);
});

Deno.test("origin does faults on demand", async () => {
  await using origin = startOrigin();
  const twice = origin.put("/twice", { size: 10, status: 500, failures: 2 });
  assertEquals([(await get(twice)).status, (await get(twice)).status, (await get(twice)).status], [500, 500, 200]);
  const plain = await get(origin.put("/plain", { size: 10, ranges: false, chunked: true, etag: false }), {
    range: "bytes=0-1",
  });
  assertEquals([plain.status, plain.headers.get("content-length"), plain.headers.get("etag")], [200, null, null]);
  const cut = origin.put("/cut", { size: 1_000_000, cutAfter: 100_000, cuts: 1 });
  await assertRejects(() => get(cut));
  assertEquals((await get(cut)).body.length, 1_000_000);
  const closed = origin.put("/closed", { size: 10, authorization: "Basic x" });
  assertEquals([(await get(closed)).status, (await get(closed, { authorization: "Basic x" })).status], [401, 200]);
});

Deno.test("origin holds a body at its gate, and stops while somebody waits there", async () => {
  const origin = startOrigin();
  const gate = Promise.withResolvers<void>();
  const response = await fetch(origin.put("/gated", { size: 200_000, gate: { after: 100_000, open: gate.promise } }));
  const reader = response.body!.getReader();
  let seen = 0;
  while (seen < 100_000) seen += (await reader.read()).value?.length ?? 0;
  assertEquals(seen, 100_000);
  gate.resolve();
  while (true) {
    const { value, done } = await reader.read();
    if (done) break;
    seen += value.length;
  }
  assertEquals(seen, 200_000);
  const held = await fetch(origin.put("/held", { size: 200_000, gate: { after: 0, open: new Promise(() => {}) } }));
  const never = held.bytes();
  const failed = assertRejects(() => never);
  await origin[Symbol.asyncDispose]();
  await failed;
  assert(origin.bytesSent("/held") === 0);
});
