import { assert, assertEquals, assertRejects } from "@std/assert";
import { validateDaemonConfig } from "../../../../peer/config.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { mirrorCertificates, proxySettings, withUnverified } from "../../../../peer/proxy/proxy_settings.ts";
import { FakeSource } from "../../../testutil/fake_source.ts";

const ORIGINS = { caCerts: ["PEM"], insecure: false, allowPrivateNetworks: true };

function sectionOf(proxy: Record<string, unknown>) {
  return validateDaemonConfig({ proxy }, "the test").proxy!;
}

Deno.test("proxySettings() gives every key of the section its place", () => {
  const settings = proxySettings(
    sectionOf({
      tcpListen: { port: 0 },
      listenIP: "127.0.0.2",
      defaultFilter: "a&b",
      defaultTag: "t",
      registryMirror: {
        url: "http://m.test",
        dynamic: false,
        authorize: false,
        registries: [{ host: "r.test", url: "http://x.test" }],
      },
      proxies: [{ regx: "a.c", redirect: "h.test" }],
      whiteList: [{ host: "h" }, { regx: "^x", ports: [80, "5000"] }],
      basicAuth: { username: "u", password: "p" },
    }),
    ORIGINS,
  );
  const { rules, isInsecure, ...rest } = settings;
  assertEquals(rules.map((rule) => [rule.regx.source, rule.redirect, rule.direct]), [["a.c", "h.test", false]]);
  assertEquals(isInsecure(new URL("http://m.test")), false);
  assertEquals(rest, {
    port: 0,
    listenIP: "127.0.0.2",
    defaultFilter: "a&b",
    defaultTag: "t",
    url: "http://m.test",
    dynamic: false,
    authorize: false,
    registries: [{ host: "r.test", url: "http://x.test" }],
    whiteList: [{ host: "h", regx: null, ports: [] }, { host: "", regx: /^x/, ports: [80, 5000] }],
    basicAuth: { username: "u", password: "p" },
    caCerts: ["PEM"],
    allowPrivateNetworks: true,
  });
});

Deno.test("insecure holds for the configured registries only", async () => {
  const section = sectionOf({
    registryMirror: { url: "https://m.test:5000", insecure: true, registries: [{ host: "r", url: "https://r.test" }] },
  });
  const { isInsecure } = proxySettings(section, ORIGINS);
  const [verified, unverified] = [new FakeSource(new Uint8Array(1)), new FakeSource(new Uint8Array(1))];
  const source = withUnverified(verified, unverified, section);
  for (
    const [url, expected] of [
      ["https://m.test:5000/v2/", true],
      ["https://r.test/v2/", true],
      ["https://m.test/v2/", false],
      ["https://other.test/", false],
    ] as const
  ) {
    assertEquals(isInsecure(new URL(url)), expected, url);
    await source.open({ url, headers: [], range: null }, { signal: new AbortController().signal });
    assertEquals((expected ? unverified : verified).requests.at(-1)?.url, url);
  }
});

Deno.test("a certificate that cannot be read is named with its key", async () => {
  for (const path of ["/none/such.pem", "/dev/null"]) {
    const section = sectionOf({ registryMirror: { certs: [path] } });
    const error = await assertRejects(() => mirrorCertificates(section), LacewingError);
    assertEquals(error.code, "config_invalid");
    assert(error.message.includes("proxy.registryMirror.certs") && error.message.includes(path), error.message);
  }
});
