import { assertEquals } from "@std/assert";
import {
  isListed,
  mayTunnel,
  mayUse,
  type ProxyRule,
  tunnelTarget,
  wayOf,
  type WhiteListEntry,
} from "../../../../peer/proxy/rules.ts";

function rule(regx: string, over: Partial<ProxyRule> = {}): ProxyRule {
  return { regx: new RegExp(regx), useHTTPS: false, direct: false, redirect: "", ...over };
}

for (
  const [rules, method, url, wanted, isShared] of [
    [[], "GET", "http://h/blobs/sha256:1", "http://h/blobs/sha256:1", false],
    [[rule("blobs/sha256.*")], "GET", "http://h/blobs/sha256:1", "http://h/blobs/sha256:1", true],
    [[rule("blobs/sha256.*")], "HEAD", "http://h/blobs/sha256:1", "http://h/blobs/sha256:1", false],
    [[rule("blobs/sha256.*")], "GET", "http://h/other", "http://h/other", false],
    [[rule("x", { direct: true }), rule(".")], "GET", "http://h/x", "http://h/x", false],
    [[rule("x", { direct: true }), rule(".")], "GET", "http://h/y", "http://h/y", true],
    [[rule(".", { useHTTPS: true })], "GET", "http://h/x?a=b", "https://h/x?a=b", true],
    [[rule(".", { useHTTPS: true })], "GET", "http://h:81/x", "https://h:81/x", true],
    [[rule(".", { redirect: "n.test" })], "GET", "http://h:81/x", "http://n.test/x", true],
    [[rule(".", { redirect: "n.test:5000" })], "GET", "http://h/x", "http://n.test:5000/x", true],
    [[rule(".", { redirect: "https://n.test" })], "POST", "http://h:81/x", "https://n.test/x", false],
    [[rule(".", { redirect: "n.test", useHTTPS: true })], "GET", "http://h/x", "https://n.test/x", true],
  ] as [ProxyRule[], string, string, string, boolean][]
) {
  Deno.test(`wayOf(${method} ${url}) by ${JSON.stringify(rules.map(({ regx }) => regx.source))} is ${wanted}`, () => {
    const way = wayOf(new URL(url), { rules, method });
    assertEquals([way.url.href, way.isShared], [wanted, isShared]);
  });
}

const LIST: WhiteListEntry[] = [
  { host: "a.test", regx: null, ports: [] },
  { host: "b.test", regx: null, ports: [5000] },
  { host: "", regx: /\.c\.test$/, ports: [80, 8080] },
];

for (
  const [url, isAllowed] of [
    ["http://a.test:1/x", true],
    ["https://A.TEST/", true],
    ["http://sub.a.test/", false],
    ["http://b.test:5000/", true],
    ["https://b.test/", false],
    ["http://x.c.test/", true],
    ["https://x.c.test/", false],
    ["http://c.test/", false],
  ] as const
) {
  Deno.test(`isListed(${url}) is ${isAllowed}`, () => assertEquals(isListed(new URL(url), LIST), isAllowed));
}

Deno.test("isListed() allows all where there is no list", () => assertEquals(isListed(new URL("http://x"), []), true));

for (
  const [host, port, list, isAllowed] of [
    ["any.test", 443, [], true],
    ["any.test", 80, [], false],
    ["a.test", 443, LIST, true],
    ["a.test", 22, LIST, false],
    ["b.test", 5000, LIST, true],
    ["b.test", 443, LIST, true],
    ["other.test", 443, LIST, false],
  ] as [string, number, WhiteListEntry[], boolean][]
) {
  Deno.test(`mayTunnel() to ${host}:${port} by ${list.length} entries is ${isAllowed}`, () => {
    assertEquals(mayTunnel({ host, port }, list), isAllowed);
  });
}

for (
  const [target, place] of [
    ["h.test:443", { host: "h.test", port: 443 }],
    ["[::1]:443", { host: "::1", port: 443 }],
    ["10.1:443", { host: "10.0.0.1", port: 443 }],
    ["h.test", null],
    ["h.test:0", null],
    ["h.test:65536", null],
    ["http://h.test:443", null],
    ["h.test:443/x", null],
    ["u@h.test:443", null],
    ["", null],
  ] as const
) {
  Deno.test(`tunnelTarget(${target})`, () => assertEquals(tunnelTarget(target), place));
}

const AUTH = { username: "user", password: "pa:ss" };
for (
  const [given, isAllowed] of [
    [`Basic ${btoa("user:pa:ss")}`, true],
    [`bAsIc  ${btoa("user:pa:ss")}`, true],
    [`Basic ${btoa("user:pa:s")}`, false],
    [`Basic ${btoa("user:pa:sss")}`, false],
    [`Bearer ${btoa("user:pa:ss")}`, false],
    ["Basic ===", false],
    ["Basic", false],
    ["", false],
    [null, false],
  ] as const
) {
  Deno.test(`mayUse(${given}) is ${isAllowed}`, () => assertEquals(mayUse(given, AUTH), isAllowed));
}

Deno.test("mayUse() asks nothing where no name is configured", () => {
  assertEquals(mayUse(null, { username: "", password: "" }), true);
});
