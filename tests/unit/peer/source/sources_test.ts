import { assert, assertEquals } from "@std/assert";
import { systemClock } from "../../../../peer/core/clock.ts";
import type { Source } from "../../../../peer/source/source.ts";
import { createSources, SourceRegistry } from "../../../../peer/source/sources.ts";
import { ask, CONTENT, failure, partOf, readAll } from "./helpers.ts";
import { TestServer } from "./servers.ts";

const OPTIONS = {
  config: { caCerts: [], insecure: false, allowPrivateNetworks: true },
  clock: systemClock,
  random: () => 0.5,
};

Deno.test("createSources() reads http and https", async () => {
  await using server = new TestServer((request) => partOf(request));
  await using sources = createSources(OPTIONS);
  assertEquals(sources.schemes, ["http", "https"]);
  await using body = await ask(sources, server.url().replace("http:", "HTTP:"));
  assertEquals(await readAll(body), CONTENT);
});

for (const url of ["ftp://a.test/x", "file:///etc/passwd", "oss://bucket/x", "data:,x", "no url", "", "//a.test/"]) {
  Deno.test(`open() refuses ${JSON.stringify(url)} and lists what can be read`, async () => {
    await using sources = createSources(OPTIONS);
    const message = await failure("usage", () => ask(sources, url));
    assert(message.includes("http, https"), message);
  });
}

Deno.test("a registry asks the source of the scheme, and closes each source once", async () => {
  const seen: string[] = [];
  const make = (name: string): Source & AsyncDisposable => ({
    open: ({ url }) => Promise.reject(new Error(`${name} was asked for ${url}`)),
    [Symbol.asyncDispose]: () => {
      seen.push(name);
      return Promise.resolve();
    },
  });
  const [one, two] = [make("one"), make("two")];
  const registry = new SourceRegistry(new Map([["a", one], ["b", two], ["c", one]]));
  const error = await ask(registry, "b://x/").catch((error) => error);
  assertEquals(error.message, "two was asked for b://x/");
  await registry[Symbol.asyncDispose]();
  assertEquals(seen, ["one", "two"]);
});
