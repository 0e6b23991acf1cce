/** What an origin called a content is what the next answer calls it. */
import { assertEquals } from "@std/assert";
import { ContentTypes } from "../../../../peer/proxy/content_types.ts";

const URL_A = new URL("https://h.test/a?x=1");
const typed = (type: string, status = 200) => ({ status, fields: [["content-type", type] as const] });

Deno.test("the type of the last answer counts, for its URL alone", () => {
  const types = new ContentTypes();
  assertEquals(types.of(URL_A), null);
  types.learn(URL_A, typed("text/html; charset=utf-8"));
  assertEquals(types.of(new URL(URL_A)), "text/html; charset=utf-8");
  assertEquals(types.of(new URL("https://h.test/a?x=2")), null);
  types.learn(URL_A, typed("text/plain"));
  assertEquals(types.of(URL_A), "text/plain");
  types.learn(URL_A, { status: 200, fields: [] });
  assertEquals(types.of(URL_A), null);
});

for (
  const [what, answer] of [
    ["a redirect", typed("text/html", 302)],
    ["a refusal", typed("text/html", 403)],
    ["an empty type", typed("")],
    ["an endless type", typed("a".repeat(300))],
  ] as const
) {
  Deno.test(`${what} says nothing of the content`, () => {
    const types = new ContentTypes();
    types.learn(URL_A, answer);
    assertEquals(types.of(URL_A), null);
  });
}

Deno.test("10,000 URLs are remembered, the latest ones", () => {
  const types = new ContentTypes();
  for (let index = 0; index <= 10_000; index++) types.learn(new URL(`https://h.test/${index}`), typed("text/x"));
  assertEquals([types.of(new URL("https://h.test/0")), types.of(new URL("https://h.test/1"))], [null, "text/x"]);
});
