import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { Resolver } from "../../../../peer/source/resolver.ts";
import { NEVER } from "./helpers.ts";

function makeResolver(answers: Record<string, string[]>, allowPrivateNetworks = true) {
  const clock = { ms: 0, nowMs: () => clock.ms, sleep: () => Promise.resolve() };
  const asked: string[] = [];
  const lookup = (host: string) => {
    asked.push(host);
    const found = answers[host];
    return found === undefined
      ? Promise.reject(Object.assign(new Error("getaddrinfo"), { code: "ENOTFOUND" }))
      : Promise.resolve(found);
  };
  return { resolver: new Resolver({ clock, lookup }, { allowPrivateNetworks }), asked, clock };
}

Deno.test("resolve() gives every address of a name, and an address as itself", async () => {
  const { resolver, asked } = makeResolver({ "a.test": ["192.0.2.1", "2600::1"] });
  assertEquals(await resolver.resolve(new URL("http://a.test/"), NEVER), ["192.0.2.1", "2600::1"]);
  assertEquals(await resolver.resolve(new URL("http://192.0.2.7/"), NEVER), ["192.0.2.7"]);
  assertEquals(await resolver.resolve(new URL("http://[2600::2]:8/"), NEVER), ["2600::2"]);
  assertEquals(asked, ["a.test"]);
});

Deno.test("resolve() asks again after 30 s, and for each name alone", async () => {
  const { resolver, asked, clock } = makeResolver({ "a.test": ["192.0.2.1"], "b.test": ["192.0.2.2"] });
  const resolve = (host: string) => resolver.resolve(new URL(`http://${host}/`), NEVER);
  await resolve("a.test");
  clock.ms = 29_999;
  await resolve("a.test");
  await resolve("b.test");
  clock.ms = 30_000;
  await resolve("a.test");
  assertEquals(asked, ["a.test", "b.test", "a.test"]);
});

Deno.test("resolve() remembers a bounded number of names", async () => {
  const names = Array.from({ length: 300 }, (_, index) => `n${index}.test`);
  const { resolver, asked } = makeResolver(Object.fromEntries(names.map((name) => [name, ["192.0.2.1"]])));
  for (const name of [...names, "n0.test", "n299.test"]) await resolver.resolve(new URL(`http://${name}/`), NEVER);
  assertEquals(asked.length, 301);
});

for (const [claim, answers] of [["is unknown", {}], ["has no address", { "a.test": [] }]] as const) {
  Deno.test(`resolve() fails with network when the name ${claim}, and asks again next time`, async () => {
    const { resolver, asked } = makeResolver({ ...answers } as Record<string, string[]>);
    for (const _ of [1, 2]) {
      const error = await assertRejects(() => resolver.resolve(new URL("http://a.test:81/"), NEVER), LacewingError);
      assertEquals(error.code, "network");
      assert(error.message.includes("a.test:81"), error.message);
    }
    assertEquals(asked.length, 2);
  });
}

for (
  const [addresses, allowPrivateNetworks, passes] of [
    [["8.8.8.8"], false, true],
    [["10.0.0.1"], true, true],
    [["10.0.0.1"], false, false],
    [["8.8.8.8", "10.0.0.1"], false, false],
    [["8.8.8.8", "169.254.1.1"], true, false],
    [["not an address"], true, false],
  ] as const
) {
  Deno.test(`a name with ${addresses} ${passes ? "passes" : "is refused"}, private networks ${allowPrivateNetworks}`, async () => {
    const { resolver } = makeResolver({ "a.test": [...addresses] }, allowPrivateNetworks);
    const resolving = resolver.resolve(new URL("http://a.test/"), NEVER);
    if (passes) assertEquals(await resolving, [...addresses]);
    else assertEquals((await assertRejects(() => resolving, LacewingError)).code, "policy");
  });
}

Deno.test("resolve() rejects with the reason of an abort while the lookup goes on", async () => {
  const lookup = () => new Promise<string[]>(() => {});
  const clock = { nowMs: () => 0, sleep: () => Promise.resolve() };
  const resolver = new Resolver({ clock, lookup }, { allowPrivateNetworks: true });
  const aborted = new AbortController();
  const resolving = resolver.resolve(new URL("http://a.test/"), aborted.signal);
  const reason = new Error("enough");
  aborted.abort(reason);
  assertEquals(await assertRejects(() => resolving), reason);
});

Deno.test("judgeLiteral() judges addresses and lets names pass", () => {
  const { resolver } = makeResolver({}, false);
  resolver.judgeLiteral(new URL("http://a.test/"));
  for (const url of ["http://10.0.0.1/", "http://[fe80::1]/", "http://127.1/"]) {
    assertThrows(() => resolver.judgeLiteral(new URL(url)), LacewingError);
  }
});

Deno.test("the system's own lookup knows localhost", async () => {
  const clock = { nowMs: () => 0, sleep: () => Promise.resolve() };
  const resolver = new Resolver({ clock }, { allowPrivateNetworks: true });
  const addresses = await resolver.resolve(new URL("http://localhost/"), NEVER);
  assert(addresses.includes("127.0.0.1") || addresses.includes("::1"), addresses.join());
});
