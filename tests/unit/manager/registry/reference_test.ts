import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { blobUrl, isOciDigest, manifestUrl, parseManifestUrl } from "../../../../manager/registry/reference.ts";

const SHA256 = `sha256:${"0a".repeat(32)}`;
const SHA512 = `sha512:${"0a".repeat(64)}`;

const GOOD: [url: string, base: string, name: string, reference: string][] = [
  ["https://registry.example.com/v2/app/manifests/v1", "https://registry.example.com", "app", "v1"],
  ["http://127.0.0.1:5000/v2/lab/app/manifests/latest", "http://127.0.0.1:5000", "lab/app", "latest"],
  ["http://[::1]:5000/v2/lab/app/manifests/latest", "http://[::1]:5000", "lab/app", "latest"],
  ["https://H.example.com:443/v2/a/manifests/_A.b-C", "https://h.example.com", "a", "_A.b-C"],
  ["https://h/mirror/one/v2/a/b/c/manifests/1", "https://h/mirror/one", "a/b/c", "1"],
  ["https://h/v2/lib/v2/app/manifests/1", "https://h", "lib/v2/app", "1"],
  ["https://h/v2/registry.example.com/lib/app/manifests/1", "https://h", "registry.example.com/lib/app", "1"],
  ["https://h/v2/manifests/manifests/manifests", "https://h", "manifests", "manifests"],
  ["https://h/v2/a__b/c-d--e/f.g_h/manifests/1", "https://h", "a__b/c-d--e/f.g_h", "1"],
  [`https://h/v2/a/manifests/${SHA256}`, "https://h", "a", SHA256],
  [`https://h/v2/a/manifests/${SHA512}`, "https://h", "a", SHA512],
  [`https://h/v2/a/manifests/${SHA256.replace(":", "%3A")}`, "https://h", "a", SHA256],
  [`https://h/v2/a/manifests/${"t".repeat(128)}`, "https://h", "a", "t".repeat(128)],
];

for (const [url, base, name, reference] of GOOD) {
  Deno.test(`parseManifestUrl() reads ${url.slice(0, 80)}`, () => {
    const parsed = parseManifestUrl(url);
    assertEquals({ base: parsed.base, name: parsed.name, reference: parsed.reference }, { base, name, reference });
    assertEquals(parsed.isDigest, reference.includes(":"));
    assertEquals(manifestUrl(parsed, reference), `${base}/v2/${name}/manifests/${reference}`);
  });
}

const BAD: [url: string, reason: string][] = [
  ["", "not an absolute URL"],
  ["registry.example.com/app:v1", "not an absolute URL"],
  ["localhost:5000/app:v1", "neither http nor https"],
  ["/v2/app/manifests/v1", "not an absolute URL"],
  ["ftp://h/v2/app/manifests/v1", "neither http nor https"],
  ["docker://h/v2/app/manifests/v1", "neither http nor https"],
  ["https://user:secret@h/v2/app/manifests/v1", "it carries credentials"],
  ["https://h/v2/app/manifests/v1?ns=docker.io", "no query"],
  ["https://h/v2/app/manifests/v1#x", "no fragment"],
  ["https://h/v2/app/manifests/", "not a manifest URL"],
  ["https://h/v2/app/manifests/v1/", "not a manifest URL"],
  ["https://h/v2/manifests/v1", "not a manifest URL"],
  ["https://h/v1/app/manifests/v1", "not a manifest URL"],
  ["https://h/v2/app/blobs/v1", "not a manifest URL"],
  ["https://h/app:v1", "not a manifest URL"],
  ["https://h/v2/App/manifests/v1", `repository name "App"`],
  ["https://h/v2/a//b/manifests/v1", `repository name "a//b"`],
  ["https://h/v2/-a/manifests/v1", `repository name "-a"`],
  ["https://h/v2/a_/manifests/v1", `repository name "a_"`],
  ["https://h/v2/a..b/manifests/v1", `repository name "a..b"`],
  ["https://h/v2/a%2f..%2fb/manifests/v1", "repository name"],
  ["https://h/v2/a%00/manifests/v1", "repository name"],
  ["https://h/v2/a%zz/manifests/v1", "percent-encoding"],
  [`https://h/v2/${"a".repeat(256)}/manifests/v1`, "256 characters"],
  ["https://h/v2/a/manifests/.v1", `tag ".v1"`],
  ["https://h/v2/a/manifests/-v1", `tag "-v1"`],
  ["https://h/v2/a/manifests/v%201", `tag "v 1"`],
  [`https://h/v2/a/manifests/${"t".repeat(129)}`, "tag"],
  ["https://h/v2/a/manifests/v1@sha256:00", "digest"],
  ["https://h/v2/a/manifests/sha256:00", "digest"],
  [`https://h/v2/a/manifests/sha256:${"0A".repeat(32)}`, "digest"],
  [`https://h/v2/a/manifests/md5:${"00".repeat(16)}`, "digest"],
  [`https://h/v2/a/manifests/${"x".repeat(5000)}`, "longer than 4096"],
];

for (const [url, reason] of BAD) {
  Deno.test(`parseManifestUrl() refuses ${url.slice(0, 80) || "nothing"}`, () => {
    const error = assertThrows(() => parseManifestUrl(url), LacewingError);
    assertEquals(error.code, "invalid");
    assertStringIncludes(error.message, reason);
  });
}

Deno.test("parseManifestUrl() does not repeat a password in its message", () => {
  const error = assertThrows(() => parseManifestUrl("https://user:secret@h/v2/app/manifests/v1"), LacewingError);
  assertEquals(error.message.includes("secret"), false);
});

Deno.test("blobUrl() stays below the prefix of the manifest URL", () => {
  const reference = parseManifestUrl("https://h/mirror/v2/lab/app/manifests/v1");
  assertEquals(blobUrl(reference, SHA256), `https://h/mirror/v2/lab/app/blobs/${SHA256}`);
});

for (const text of ["sha256:", `${SHA256}0`, SHA256.toUpperCase(), "latest", 7, null]) {
  Deno.test(`isOciDigest() is false for ${String(text).slice(0, 20)}`, () => assertEquals(isOciDigest(text), false));
}
