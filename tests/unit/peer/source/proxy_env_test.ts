import { assertEquals } from "@std/assert";
import { bareHost, proxyFor } from "../../../../peer/source/proxy_env.ts";

const ROWS: [url: string, env: Record<string, string>, proxy: string | null][] = [
  ["http://a.test/", {}, null],
  ["http://a.test/", { HTTP_PROXY: "p" }, "p"],
  ["http://a.test/", { http_proxy: "p" }, "p"],
  ["http://a.test/", { HTTP_PROXY: "" }, null],
  ["http://a.test/", { HTTP_PROXY: "p", REQUEST_METHOD: "GET" }, null],
  ["http://a.test/", { HTTPS_PROXY: "p" }, null],
  ["https://a.test/", { HTTPS_PROXY: "p" }, "p"],
  ["https://a.test/", { https_proxy: "p" }, "p"],
  ["https://a.test/", { HTTP_PROXY: "p" }, null],
  ["https://a.test/", { ALL_PROXY: "p" }, "p"],
  ["http://a.test/", { all_proxy: "p" }, "p"],
  ["http://a.test/", { HTTP_PROXY: "p", NO_PROXY: "a.test" }, null],
  ["http://a.test/", { HTTP_PROXY: "p", no_proxy: "b.test, A.TEST" }, null],
  ["http://x.a.test/", { HTTP_PROXY: "p", NO_PROXY: "a.test" }, null],
  ["http://x.a.test/", { HTTP_PROXY: "p", NO_PROXY: ".a.test" }, null],
  ["http://a.test/", { HTTP_PROXY: "p", NO_PROXY: ".a.test" }, null],
  ["http://xa.test/", { HTTP_PROXY: "p", NO_PROXY: "a.test" }, "p"],
  ["http://a.test/", { HTTP_PROXY: "p", NO_PROXY: "*" }, null],
  ["http://a.test/", { HTTP_PROXY: "p", NO_PROXY: "" }, "p"],
  ["http://a.test/", { HTTP_PROXY: "p", NO_PROXY: "," }, "p"],
  ["http://10.1.2.3/", { HTTP_PROXY: "p", NO_PROXY: "10.0.0.0/8" }, null],
  ["http://11.1.2.3/", { HTTP_PROXY: "p", NO_PROXY: "10.0.0.0/8" }, "p"],
  ["http://[::1]:80/", { HTTP_PROXY: "p", NO_PROXY: "::1" }, null],
];

for (const [url, env, proxy] of ROWS) {
  Deno.test(`${url} with ${JSON.stringify(env)} goes ${proxy === null ? "directly" : `by ${proxy}`}`, () => {
    assertEquals(proxyFor(new URL(url), (name) => env[name]), proxy);
  });
}

Deno.test("bareHost() takes the brackets from IPv6 alone", () => {
  assertEquals(["http://[::1]:8/", "http://a.test:8/"].map((url) => bareHost(new URL(url))), ["::1", "a.test"]);
});
