import { assertEquals } from "@std/assert";
import { manifestMediaType } from "../../../../peer/proxy/media_type.ts";

for (
  const [text, type] of [
    [
      '{"mediaType":"application/vnd.docker.distribution.manifest.v2+json"}',
      "application/vnd.docker.distribution.manifest.v2+json",
    ],
    ['{"schemaVersion":2,"manifests":[]}', "application/vnd.oci.image.index.v1+json"],
    ['{"schemaVersion":2,"config":{},"layers":[]}', "application/vnd.oci.image.manifest.v1+json"],
    ['{"schemaVersion":1,"signatures":[]}', "application/vnd.docker.distribution.manifest.v1+prettyjws"],
    ['{"schemaVersion":1}', "application/vnd.docker.distribution.manifest.v1+json"],
    ['{"mediaType":"a/b\\r\\nX: y","manifests":[]}', "application/vnd.oci.image.index.v1+json"],
    ["{}", null],
    ["[]", null],
    ["null", null],
    ["not json", null],
    ["", null],
  ] as const
) {
  Deno.test(`manifestMediaType() of ${text} is ${type}`, () => {
    assertEquals(manifestMediaType(new TextEncoder().encode(text)), type);
  });
}
