import { assertEquals, assertThrows } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import type { Field } from "../../../../peer/proxy/http_message.ts";
import { type MirrorConfig, override, registryTarget } from "../../../../peer/proxy/registry_target.ts";

const CONFIG: MirrorConfig = {
  url: "https://mirror.test/base",
  dynamic: true,
  registries: [{ host: "registry.test", url: "http://10.0.0.1:6010" }, {
    host: "own.test:5000",
    url: "https://own.test",
  }],
};
const DIGEST = `sha256:${"ab".repeat(32)}`;

for (
  const [target, fields, url] of [
    ["/v2/lib/app/manifests/v1", [], "https://mirror.test/base/v2/lib/app/manifests/v1"],
    ["/v2/", [], "https://mirror.test/base/v2/"],
    ["/v2/app/manifests/v1?ns=h.test", [], "https://h.test/v2/app/manifests/v1?ns=h.test"],
    ["/v2/app/manifests/v1?ns=h.test%3A5443", [], "https://h.test:5443/v2/app/manifests/v1?ns=h.test%3A5443"],
    ["/v2/app/manifests/v1?ns=registry.test", [], "http://10.0.0.1:6010/v2/app/manifests/v1?ns=registry.test"],
    ["/v2/app/manifests/v1?ns=own.test:5000", [], "https://own.test/v2/app/manifests/v1?ns=own.test:5000"],
    ["/v2/app/tags/list?n=5&ns=mirror.test", [], "https://mirror.test/base/v2/app/tags/list?n=5&ns=mirror.test"],
    ["/v2/library/a/tags/list?ns=docker.io", [], "https://index.docker.io/v2/library/a/tags/list?ns=docker.io"],
    ["/v2/a/tags/list?ns=127.0.0.1:5000", [], "http://127.0.0.1:5000/v2/a/tags/list?ns=127.0.0.1:5000"],
    ["/v2/a/tags/list?ns=localhost", [], "http://localhost/v2/a/tags/list?ns=localhost"],
    ["/v2/h.test/app/manifests/v1", [], "https://h.test/v2/app/manifests/v1"],
    ["/v2/h.test%3A5000/app/manifests/v1", [], "https://h.test:5000/v2/app/manifests/v1"],
    ["/v2/h.test__5000/app/manifests/v1", [], "https://h.test:5000/v2/app/manifests/v1"],
    ["/v2/registry__5000/app/manifests/v1", [], "https://registry:5000/v2/app/manifests/v1"],
    ["/v2/own.test__5000/app/manifests/v1", [], "https://own.test/v2/app/manifests/v1"],
    ["/v2/a_b__5000/app/manifests/v1", [], "https://mirror.test/base/v2/a_b__5000/app/manifests/v1"],
    ["/v2/lib__x/app/manifests/v1", [], "https://mirror.test/base/v2/lib__x/app/manifests/v1"],
    ["/v2/h.test__99999/app/manifests/v1", [], "https://mirror.test/base/v2/h.test__99999/app/manifests/v1"],
    ["/v2/localhost:5000/a/b/manifests/v1", [], "http://localhost:5000/v2/a/b/manifests/v1"],
    ["/v2/registry.test/app/tags/list", [], "http://10.0.0.1:6010/v2/app/tags/list"],
    [
      "/v2/app/tags/list?ns=h.test",
      [["X-Dragonfly-Registry", "http://x.test:1"]],
      "http://x.test:1/v2/app/tags/list?ns=h.test",
    ],
    ["/v2/app/tags/list", [["x-lacewing-registry", "registry.test"]], "http://10.0.0.1:6010/v2/app/tags/list"],
    ["/v2/app/tags/list", [["x-lacewing-registry", "https://x.test/p/"]], "https://x.test/p/v2/app/tags/list"],
    ["/v2/../../x", [], "https://mirror.test/x"],
    ["/v2//evil.test/x/y", [], "https://mirror.test/base/v2//evil.test/x/y"],
  ] as [string, Field[], string][]
) {
  Deno.test(`registryTarget() of ${target} ${fields.join()} is ${url}`, () => {
    assertEquals(registryTarget(target, fields, CONFIG).url.href, url);
  });
}

Deno.test("registryTarget() names nothing but the configured registry where it is not dynamic", () => {
  const target = registryTarget("/v2/h.test/app/tags/list?ns=h.test", [["X-Lacewing-Registry", "h.test"]], {
    ...CONFIG,
    dynamic: false,
  });
  assertEquals([target.url.host, target.isNamed, target.namespace], ["mirror.test", false, null]);
});

for (
  const [path, kind, repository, digest] of [
    ["/v2", "ping", "", null],
    ["/v2/", "ping", "", null],
    [`/v2/a/b/blobs/${DIGEST}`, "blob", "a/b", DIGEST],
    [`/v2/a/b/blobs/${DIGEST.replace(":", "%3A")}`, "blob", "a/b", DIGEST],
    ["/v2/a/blobs/sha256:short", "blob", "a", null],
    ["/v2/a/manifests/v1", "manifest", "a", null],
    [`/v2/a/manifests/${DIGEST}`, "manifest", "a", DIGEST],
    ["/v2/a/tags/list", "other", "a", null],
    [`/v2/a/referrers/${DIGEST}`, "other", "a", null],
    ["/v2/_catalog", "other", "", null],
    ["/v2/a/blobs/uploads/", "other", "", null],
    ["/v2/public/../private/manifests/v1", "manifest", "private", null],
    ["/v2/a%2Fb/manifests/v1", "manifest", "a%2Fb", null],
    ["/v2/%zz/manifests/v1", "manifest", "%zz", null],
  ] as const
) {
  Deno.test(`registryTarget() sees ${kind} in ${path}`, () => {
    const target = registryTarget(path, [], CONFIG);
    assertEquals([target.kind, target.repository, target.digest], [kind, repository, digest]);
  });
}

for (
  const [target, fields] of [
    ["/v2/a/tags/list?ns=a%20b", []],
    ["/v2/a/tags/list?ns=http://h", []],
    ["/v2/a/tags/list?ns=u@h", []],
    ["/v2/a/tags/list?ns=h/p", []],
    ["/v2/a/tags/list?ns=h:99999", []],
    ["/v2/", [["X-Lacewing-Registry", "ftp://h"]]],
    ["/v2/", [["X-Lacewing-Registry", "https://u:p@h"]]],
    ["/v2/", [["X-Lacewing-Registry", ""]]],
  ] as [string, Field[]][]
) {
  Deno.test(`registryTarget() refuses ${target} ${fields.join()}`, () => {
    const error = assertThrows(() => registryTarget(target, fields, CONFIG), LacewingError) as LacewingError;
    assertEquals(error.code, "bad_request");
  });
}

Deno.test("override() takes our own header before Dragonfly's", () => {
  const fields: Field[] = [["X-Dragonfly-Filter", "a"], ["X-LACEWING-FILTER", "b"], ["X-Dragonfly-Tag", "t"]];
  assertEquals([override(fields, "filter"), override(fields, "tag"), override(fields, "registry")], ["b", "t", null]);
});

for (
  const [target, fields, isByPath] of [
    ["/v2/h.test/app/manifests/v1", [], true],
    ["/v2/app/manifests/v1?ns=h.test", [], false],
    ["/v2/app/manifests/v1", [["X-Lacewing-Registry", "h.test"]], false],
    ["/v2/lib/app/manifests/v1", [], false],
  ] as [string, Field[], boolean][]
) {
  Deno.test(`the registry of ${target} ${fields.join()} is ${isByPath ? "" : "not "}named by the path`, () => {
    assertEquals(registryTarget(target, fields, CONFIG).isNamedByPath, isByPath);
  });
}
