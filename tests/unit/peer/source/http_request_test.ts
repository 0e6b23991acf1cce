import { assert, assertEquals, assertThrows } from "@std/assert";
import { type ErrorCode, LacewingError } from "../../../../peer/core/errors.ts";
import {
  firstHop,
  hostAndPort,
  nextHop,
  portOf,
  requestHeaders,
  shownUrl,
} from "../../../../peer/source/http_request.ts";

const OPTIONS = { range: null, userAgent: "test/1" };

function fails(code: ErrorCode, run: () => unknown): string {
  const error = assertThrows(run, LacewingError);
  assertEquals(error.code, code, error.message);
  return error.message;
}

for (
  const [from, to, kept] of [
    ["http://a.test/x", "/y", true],
    ["http://a.test/x", "http://a.test:80/y", true],
    ["https://a.test/x", "https://A.test:443/y", true],
    ["http://a.test/x", "//a.test/y", true],
    ["http://a.test/x", "http://a.test:81/y", false],
    ["http://a.test/x", "https://a.test/y", false],
    ["http://a.test/x", "http://b.a.test/y", false],
    ["http://a.test/x", "http://a.test./y", false],
    ["http://a.test/x", "http://a.test@b.test/y", false],
    ["http://a.test/x", "http://127.0.0.1/y", false],
  ] as const
) {
  Deno.test(`headers ${kept ? "go" : "do not go"} from ${from} to ${to}`, () => {
    const hop = nextHop(firstHop(from, [["X-Any", "1"], ["Accept", "a/b"]]), to);
    const names = hop.headers.map(([name]) => name).filter((name) => name !== "authorization");
    assertEquals(names, kept ? ["x-any", "accept"] : ["accept"]);
  });
}

Deno.test("what was dropped at a foreign origin stays dropped", () => {
  const first = firstHop("http://a.test/1", [["Authorization", "Bearer x"]]);
  const hop = nextHop(nextHop(first, "http://b.test/2"), "http://a.test/3");
  assertEquals(hop.headers, []);
});

Deno.test("user info becomes credentials unless the caller gave some, and leaves the URL", () => {
  const hop = firstHop("http://user:p%3Aw@a.test/x", []);
  assertEquals(hop.headers, [["authorization", `Basic ${btoa("user:p:w")}`]]);
  assertEquals([hop.url.href, hop.trail], ["http://a.test/x", ["http://a.test/x"]]);
  assertEquals(firstHop("http://user@a.test/", []).headers, [["authorization", `Basic ${btoa("user:")}`]]);
  assertEquals(firstHop("http://u:p@a.test/", [["Authorization", "mine"]]).headers, [["authorization", "mine"]]);
  assertEquals(firstHop("http://u:%zz@a.test/", []).headers, [["authorization", `Basic ${btoa("u:%zz")}`]]);
});

Deno.test("user info of a redirect is for its own origin", () => {
  const hop = nextHop(firstHop("http://a.test/", [["Authorization", "mine"]]), "http://u:p@b.test/");
  assertEquals(hop.headers, [["authorization", `Basic ${btoa("u:p")}`]]);
  assertEquals(nextHop(hop, "http://a.test/2").headers, []);
});

for (
  const [headers, code] of [
    [[["Authorization", "x"]], "policy"],
    [[["X-Secret-Thing", "x"]], "policy"],
    [[["Accept", "x"]], null],
    [[], null],
  ] as const
) {
  Deno.test(`https to http with ${JSON.stringify(headers)} is ${code ?? "followed"}`, () => {
    const hop = firstHop("https://a.test/", headers);
    if (code === null) assertEquals(nextHop(hop, "http://a.test/").url.href, "http://a.test/");
    else fails(code, () => nextHop(hop, "http://a.test/"));
  });
}

for (const location of [null, "ftp://a.test/", "javascript:1", "data:,x", "http://", "http://[::1/"]) {
  Deno.test(`a redirect to ${JSON.stringify(location)} is refused`, () => {
    fails("source_failed", () => nextHop(firstHop("http://a.test/", []), location));
  });
}

Deno.test("a loop is named without its queries", () => {
  let hop = firstHop("http://a.test/?token=s3cret", []);
  hop = nextHop(hop, "/b?token=s3cret");
  hop = nextHop(hop, "/c");
  const message = fails("source_failed", () => nextHop(hop, "/b?token=s3cret"));
  assert(message.includes("http://a.test/b to http://a.test/c to http://a.test/b"), message);
  assert(!message.includes("s3cret"));
});

Deno.test("requestHeaders() overrides the encoding and adds what is missing", () => {
  const headers = requestHeaders(firstHop("http://a.test/", [["Accept-Encoding", "br"], ["X-A", "1"]]), OPTIONS);
  assertEquals(headers, [["x-a", "1"], ["accept-encoding", "identity"], ["accept", "*/*"], ["user-agent", "test/1"]]);
});

Deno.test("requestHeaders() writes a range with its inclusive end", () => {
  const range = { offset: 2 ** 40, length: 1 };
  const headers = requestHeaders(firstHop("http://a.test/", []), { ...OPTIONS, range });
  assertEquals(headers.at(-1), ["range", "bytes=1099511627776-1099511627776"]);
});

for (
  const [url, text] of [
    ["https://u:p@a.test/x/y?sig=abc#f", "https://a.test/x/y"],
    ["http://a.test:8080/", "http://a.test:8080/"],
    [`http://a.test/${"x".repeat(400)}`, `http://a.test/${"x".repeat(286)}...`],
  ] as const
) {
  Deno.test(`shownUrl() shows ${text.slice(0, 40)}`, () => assertEquals(shownUrl(new URL(url)), text));
}

for (const [url, port] of [["http://a.test", 80], ["https://a.test", 443], ["https://a.test:80", 80]] as const) {
  Deno.test(`${url} has port ${port}`, () => {
    assertEquals([portOf(new URL(url)), hostAndPort(new URL(url))], [port, `a.test:${port}`]);
  });
}

Deno.test("a refused URL is shown without user info and query", () => {
  const message = fails("usage", () => firstHop("ftp://user:s3cret@a.test/x?token=s3cret", []));
  assert(!message.includes("s3cret"), message);
});
