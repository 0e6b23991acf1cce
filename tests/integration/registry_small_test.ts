/**
 * The small registry of the tests and the demo is good enough for a real
 * client: skopeo pulls from it, and what it pulled has the digests.
 */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { runBytes } from "../testutil/child.ts";
import { makeImage, writeLayout } from "../testutil/image.ts";
import { hasTools } from "../testutil/registry.ts";
import { type SmallRegistryOptions, startSmallRegistry } from "../testutil/small_registry.ts";

const IMAGE = makeImage({ scale: 0.05 });
const NAMED = { name: "lab/app", tag: "v1" };

async function skopeo(folder: string, args: readonly string[]): Promise<{ code: number; stderr: string }> {
  await Deno.writeTextFile(`${folder}/policy.json`, `{"default":[{"type":"insecureAcceptAnything"}]}`);
  await Deno.writeTextFile(`${folder}/registries.conf`, "");
  const own = ["--policy", `${folder}/policy.json`, "--registries-conf", `${folder}/registries.conf`];
  return await runBytes("skopeo", { args: [...own, "--tmpdir", folder, ...args] });
}

for (
  const [name, options] of [["openly", {}], ["with Basic", { auth: "basic" }], ["with tokens", {
    auth: "token",
  }]] as const
) {
  Deno.test({
    name: `skopeo pulls an image from the small registry ${name}, with the digests it was made with`,
    ignore: !hasTools(["skopeo"]),
    async fn() {
      const folder = await Deno.makeTempDir();
      await using registry = startSmallRegistry(options satisfies SmallRegistryOptions);
      try {
        registry.add(IMAGE, NAMED);
        const from = ["--src-tls-verify=false", ...("auth" in options ? ["--src-creds", "user:pass"] : [])];
        const to = [`docker://${registry.host}/lab/app:v1`, `oci:${folder}/out:v1`];
        const pulled = await skopeo(folder, ["copy", "--all", "--preserve-digests", "--quiet", ...from, ...to]);
        assertEquals(pulled.code, 0, pulled.stderr);
        const index = JSON.parse(await Deno.readTextFile(`${folder}/out/index.json`));
        assertEquals(index.manifests[0].digest, IMAGE.index.digest);
        for (const { digest, bytes } of [...IMAGE.blobs.values(), ...IMAGE.manifests.values()]) {
          assertEquals((await Deno.stat(`${folder}/out/blobs/${digest.replace(":", "/")}`)).size, bytes.length);
        }
        const total = [...IMAGE.blobs.values()].reduce((sum, { bytes }) => sum + bytes.length, 0);
        assertEquals(registry.sent.blobs, total);
        assertEquals(registry.bytesSent(), total + registry.sent.manifests);
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    },
  });
}

Deno.test({
  name: "skopeo is refused by the small registry with a wrong password",
  ignore: !hasTools(["skopeo"]),
  async fn() {
    const folder = await Deno.makeTempDir();
    await using registry = startSmallRegistry({ auth: "token" });
    try {
      registry.add(IMAGE, NAMED);
      const args = [
        "inspect",
        "--raw",
        "--tls-verify=false",
        "--creds",
        "user:no",
        `docker://${registry.host}/lab/app:v1`,
      ];
      const { code, stderr } = await skopeo(folder, args);
      assert(code !== 0);
      assertStringIncludes(stderr, "unauthorized");
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

Deno.test("the small registry serves a layout from disk like the image from memory", async () => {
  const folder = await Deno.makeTempDir();
  await using registry = startSmallRegistry();
  try {
    await writeLayout(IMAGE, { folder, tag: "v1" });
    await registry.addLayout(folder, NAMED);
    for (const { digest, bytes } of IMAGE.blobs.values()) {
      const response = await fetch(registry.blobUrl("lab/app", digest));
      assertEquals(await response.bytes(), bytes);
    }
    const index = await fetch(registry.manifestUrl("lab/app", "v1"), { headers: { accept: IMAGE.index.mediaType } });
    assertEquals(await index.bytes(), IMAGE.index.bytes);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

const LAYER = IMAGE.images[0]?.layers[2];

const RANGES: [range: string, status: number, part: [start: number, end: number] | null][] = [
  ["bytes=0-0", 206, [0, 1]],
  ["bytes=100-199", 206, [100, 200]],
  ["bytes=100-", 206, [100, Infinity]],
  ["bytes=0-99999999", 206, [0, Infinity]],
  ["bytes=-10", 206, [-10, Infinity]],
  ["bytes=99999999-", 416, null],
  ["bytes=-0", 416, null],
  ["bytes=9-1", 416, null],
  ["bytes=x", 200, [0, Infinity]],
  ["bytes=0-1,4-5", 200, [0, Infinity]],
];

for (const [range, status, part] of RANGES) {
  Deno.test(`the small registry answers ${range} with ${status}, from memory and from disk`, async () => {
    assert(LAYER !== undefined);
    const folder = await Deno.makeTempDir();
    await using registry = startSmallRegistry();
    try {
      await writeLayout(IMAGE, { folder, tag: "v1" });
      await registry.addLayout(folder, { name: "on/disk", tag: "v1" });
      registry.add(IMAGE, NAMED);
      for (const name of ["lab/app", "on/disk"]) {
        const response = await fetch(registry.blobUrl(name, LAYER.digest), { headers: { range } });
        const bytes = await response.bytes();
        assertEquals(response.status, status);
        if (part !== null) assertEquals(bytes, LAYER.bytes.slice(part[0], Math.min(part[1], LAYER.bytes.length)));
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

Deno.test("the small registry answers HEAD with length and digest, and counts no bytes", async () => {
  assert(LAYER !== undefined);
  await using registry = startSmallRegistry();
  registry.add(IMAGE, NAMED);
  const response = await fetch(registry.blobUrl("lab/app", LAYER.digest), { method: "HEAD" });
  assertEquals(response.headers.get("content-length"), String(LAYER.bytes.length));
  assertEquals(response.headers.get("docker-content-digest"), LAYER.digest);
  assertEquals(registry.sent, { manifests: 0, blobs: 0 });
});

Deno.test("the small registry hides a manifest whose type is not accepted, and comes back on its port", async () => {
  await using registry = startSmallRegistry();
  registry.add(IMAGE, NAMED);
  const url = registry.manifestUrl("lab/app", "v1");
  const statusOf = async (accept: string) => {
    const response = await fetch(url, { headers: { accept } });
    await response.body?.cancel();
    return response.status;
  };
  assertEquals(await statusOf("application/vnd.oci.image.manifest.v1+json"), 404);
  assertEquals(await statusOf(`text/html, ${IMAGE.index.mediaType};q=0.5`), 200);
  await registry.stop();
  registry.start();
  assertEquals(await statusOf("*/*"), 200);
});
