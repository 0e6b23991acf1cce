// covers: peer/core/digest_text.ts
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import fc from "fast-check";
import { digestInUrl, formatDigest, parseDigest, sha256Hex, startDigest } from "../../../../peer/core/digest.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

/** Digests of the text `abc`: RFC 1321 A.5, FIPS 180-2 appendices A to C. */
const ABC = {
  md5: "900150983cd24fb0d6963f7d28e17f72",
  sha1: "a9993e364706816aba3e25717850c26c9cd0d89d",
  sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  sha512: "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a" +
    "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
} as const;

for (const [algorithm, hex] of Object.entries(ABC) as [keyof typeof ABC, string][]) {
  Deno.test(`parseDigest() reads ${algorithm} and formatDigest() writes it back`, () => {
    assertEquals(parseDigest(`${algorithm}:${hex}`), { algorithm, hex });
    assertEquals(formatDigest(parseDigest(`${algorithm}:${hex}`)), `${algorithm}:${hex}`);
  });
  Deno.test(`startDigest() gives the standard's ${algorithm} of abc, whatever the parts`, () => {
    assertEquals(startDigest(algorithm).update("abc").digest("hex"), hex);
    assertEquals(startDigest(algorithm).update("a").update("").update("bc").digest("hex"), hex);
  });
  Deno.test(`parseDigest() refuses a ${algorithm} of one digit more or less`, () => {
    assertThrows(() => parseDigest(`${algorithm}:${hex}0`), LacewingError, `${hex.length} hex digits`);
    assertThrows(() => parseDigest(`${algorithm}:${hex.slice(1)}`), LacewingError, `not ${hex.length - 1}`);
  });
}

Deno.test("parseDigest() makes hex digits lower-case", () => {
  assertEquals(parseDigest(`sha256:${ABC.sha256.toUpperCase()}`), { algorithm: "sha256", hex: ABC.sha256 });
});

const BAD = [
  "",
  ":",
  "sha256",
  "sha256:",
  ABC.sha256,
  `:${ABC.sha256}`,
  `SHA256:${ABC.sha256}`,
  `sha384:${ABC.sha256}`,
  `crc32:00000000`,
  `toString:${ABC.sha256}`,
  `__proto__:${ABC.sha256}`,
  `sha256:${ABC.sha256}:`,
  `sha256:sha256:${ABC.sha256}`,
  ` sha256:${ABC.sha256}`,
  `sha256: ${ABC.sha256.slice(1)}`,
  `sha256:${"g".repeat(64)}`,
  `sha256:${ABC.sha256.slice(2)}0x`,
  `md5:${ABC.sha256}`,
];
for (const text of BAD) {
  Deno.test(`parseDigest() refuses ${JSON.stringify(text)} as usage and repeats it`, () => {
    const error = assertThrows(() => parseDigest(text), LacewingError);
    assertEquals(error.code, "usage");
    assertStringIncludes(error.message, JSON.stringify(text));
  });
}

Deno.test("parseDigest() names the algorithms it knows", () => {
  assertThrows(() => parseDigest("sha3:00"), LacewingError, "md5, sha1, sha256, sha512");
});

Deno.test("sha256Hex() digests bytes and text alike", () => {
  assertEquals(sha256Hex("abc"), ABC.sha256);
  assertEquals(sha256Hex(new TextEncoder().encode("abc")), ABC.sha256);
  assertEquals(sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
});

Deno.test("an incremental digest does not depend on how the bytes are cut", () => {
  fc.assert(fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), (parts) => {
    const whole = new Uint8Array(parts.flatMap((part) => [...part]));
    const digest = startDigest("sha256");
    for (const part of parts) digest.update(part);
    assertEquals(digest.digest("hex"), sha256Hex(whole));
  }));
});

const HEX = ABC.sha256;
const PROMISES: [string, string][] = [
  [`https://r.example/v2/library/alpine/blobs/sha256:${HEX}`, `sha256:${HEX}`],
  [`https://r.example/v2/a/b/c/manifests/sha256:${HEX}`, `sha256:${HEX}`],
  [`https://r.example/v2/a/blobs/sha512:${ABC.sha512}`, `sha512:${ABC.sha512}`],
  [`http://127.0.0.1:5000/v2/a/blobs/sha256:${HEX}?ns=docker.io#x`, `sha256:${HEX}`],
  [`https://r.example/v2/a/blobs/sha256%3A${HEX}`, `sha256:${HEX}`],
  [`https://proxy.example/prefix/v2/a/blobs/sha256:${HEX}`, `sha256:${HEX}`],
];
for (const [url, digest] of PROMISES) {
  Deno.test(`digestInUrl() finds the digest in ${url}`, () => {
    const found = digestInUrl(url);
    assert(found !== null);
    assertEquals(formatDigest(found), digest);
  });
}

const NO_PROMISES = [
  "",
  "not a URL",
  "https://r.example/v2/a/manifests/latest",
  `https://r.example/v2/blobs/sha256:${HEX}`,
  `https://r.example/a/blobs/sha256:${HEX}`,
  `https://r.example/v2/a/blobs/sha256:${HEX.slice(1)}`,
  `https://r.example/v2/a/blobs/sha256:${HEX}0`,
  `https://r.example/v2/a/blobs/sha256:${HEX.toUpperCase()}`,
  `https://r.example/v2/a/blobs/sha256:${HEX}/x`,
  `https://r.example/v2/a/blobs/md5:${ABC.md5}`,
  `https://r.example/v2/a/blobs/sha512:${HEX}`,
  `https://r.example/v2/a/layers/sha256:${HEX}`,
  `https://r.example/x?path=/v2/a/blobs/sha256:${HEX}`,
  `https://r.example/%E0%A4%A/v2/a/tags/list`,
];
for (const url of NO_PROMISES) {
  Deno.test(`digestInUrl() finds none in ${JSON.stringify(url)}`, () => assertEquals(digestInUrl(url), null));
}
