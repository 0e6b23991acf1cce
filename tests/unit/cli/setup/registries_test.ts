/** How registries are named, and which of them a daemon serves. */
import { assertEquals, assertThrows } from "@std/assert";
import { knownTo, readRegistry, serves, theOne } from "../../../../cli/setup/registries.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { order, PROXY } from "./memory_files.ts";

const GOOD: [string, string, boolean][] = [
  ["registry.example.com", "registry.example.com", false],
  ["Registry.Example.COM:5000", "registry.example.com:5000", false],
  ["https://r.test", "r.test", false],
  ["http://10.0.0.5:5000/", "10.0.0.5:5000", true],
  ["[::1]:5000", "[::1]:5000", false],
  ["localhost", "localhost", false],
  ["index.docker.io", "docker.io", false],
  ["https://registry-1.docker.io", "docker.io", false],
];
for (const [text, host, isPlain] of GOOD) {
  Deno.test(`readRegistry() takes ${text}`, () => assertEquals(readRegistry(text), { host, isPlain }));
}

const BAD = [
  "",
  "/",
  "a/b",
  "http://",
  "http://h/v2/",
  "ftp://h",
  "h:port",
  "h:123456",
  "a b",
  "-h",
  "h?x",
  "u:p@h",
  'h"',
  "h\n",
];
for (const text of BAD) {
  Deno.test(`readRegistry() refuses ${JSON.stringify(text)}`, () => {
    assertEquals(assertThrows(() => readRegistry(text), LacewingError, "Cannot use --registry").code, "usage");
  });
}

Deno.test("a daemon knows the registry of nameless requests, and its configured ones once each", () => {
  const proxy = { ...PROXY, registries: ["R.test:5000", "docker.io", "r.test:5000"] };
  assertEquals(knownTo(proxy).map(({ host }) => host), ["docker.io", "r.test:5000"]);
  assertEquals(knownTo({ ...PROXY, url: "http://10.0.0.5:5000/" }), [{ host: "10.0.0.5:5000", isPlain: true }]);
});

Deno.test("a daemon that does not go by names serves its own registry alone", () => {
  const proxy = { ...PROXY, dynamic: false };
  const one = order("podman", { proxy, registries: ["docker.io", "r.test"] });
  assertEquals(theOne(one)?.host, "docker.io");
  assertEquals(theOne(order("podman", { proxy: PROXY })), null);
  assertEquals(theOne(order("podman")), null);
  serves(one, one.registries[0]!);
  const error = assertThrows(() => serves(one, one.registries[1]!), LacewingError, "dynamic");
  assertEquals(error.code, "policy");
});
