/**
 * Preheat jobs for images: a real image of two platforms, pushed by skopeo into
 * Debian's docker-registry, preheated by a POST, and downloaded from the swarm
 * by every daemon after the registry was switched off.
 */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { connectDaemon } from "../../peer/ipc/client.ts";
import { assertDownloaded, type Cluster, jobEnded, startCluster } from "../testutil/cluster.ts";
import { fileDigest } from "../testutil/content.ts";
import { DOCKER_TYPES, makeImage, type PlatformImage } from "../testutil/image.ts";
import type { ManagerProcess } from "../testutil/process.ts";
import { hasTools, type RegistryOptions, startRegistry, type TestRegistry } from "../testutil/registry.ts";

const TOOLS = ["docker-registry", "skopeo", "openssl"];
const ignore = !hasTools(TOOLS);
if (ignore) console.log(`preheat_image_test: skipped, these programs are not all there: ${TOOLS.join(", ")}`);

const NAME = "lab/app";
const IMAGE = makeImage();
const HOST_PLATFORM = `linux/${Deno.build.arch === "aarch64" ? "arm64" : "amd64"}`;
const USER = { username: "user", password: "pass" };

/** A URL that a host pulls, and what must come. */
interface Part {
  readonly url: string;
  readonly digest: string;
}

interface Task {
  url: string;
  digest: string | null;
  state: string;
  error: { code: string; message: string } | null;
  hosts: { hostname: string; state: string }[];
}

// deno-lint-ignore no-explicit-any
async function preheat(manager: ManagerProcess, args: Record<string, unknown>): Promise<any> {
  const answer = await manager.api("POST", "/api/v1/jobs", { type: "preheat", args: { type: "image", ...args } });
  assertEquals(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}

/** Preheats to SUCCESS. @returns the tasks of the one cluster */
async function preheated(manager: ManagerProcess, args: Record<string, unknown>): Promise<Task[]> {
  const ended = await jobEnded(manager, (await preheat(manager, args)).id);
  assertEquals(ended.status, "SUCCESS", JSON.stringify(ended.result));
  const { tasks, bytes, clusters: [{ tasks: list }] } = ended.result;
  assertEquals([tasks.total, tasks.done, tasks.failed, bytes.done], [list.length, list.length, 0, bytes.total]);
  return list;
}

function partsOf(host: string, images: readonly PlatformImage[]): Part[] {
  const at = (kind: string, digest: string) => ({ url: `${host}/v2/${NAME}/${kind}/${digest}`, digest });
  const blobs = images.flatMap(({ config, layers }) => [config, ...layers]).map(({ digest }) => digest);
  return [
    { url: `${host}/v2/${NAME}/manifests/v1`, digest: IMAGE.index.digest },
    at("manifests", IMAGE.index.digest),
    ...images.map(({ manifest }) => at("manifests", manifest.digest)),
    ...[...new Set(blobs)].map((digest) => at("blobs", digest)),
  ];
}

function imagesOf(platforms: readonly string[]): PlatformImage[] {
  return IMAGE.images.filter(({ platform }) => platforms.some((wanted) => platform.startsWith(wanted)));
}

/** What stands under a tag, read as a client reads it, with nothing of ours in between. */
async function readParts(registry: TestRegistry, tag: string): Promise<Part[]> {
  const read = async (reference: string, accept: string) => {
    const response = await fetch(registry.manifestUrl(NAME, reference), { headers: { accept } });
    assertEquals([response.status, response.headers.get("content-type")], [200, accept]);
    return { json: await response.json(), digest: response.headers.get("docker-content-digest") ?? "" };
  };
  const list = await read(tag, DOCKER_TYPES.index);
  const parts = [tag, list.digest].map((reference) => ({
    url: registry.manifestUrl(NAME, reference),
    digest: list.digest,
  }));
  const blobs = new Set<string>();
  for (const { digest } of list.json.manifests) {
    const { json } = await read(digest, DOCKER_TYPES.manifest);
    parts.push({ url: registry.manifestUrl(NAME, digest), digest });
    for (const blob of [json.config, ...json.layers]) blobs.add(blob.digest);
  }
  return [...parts, ...[...blobs].map((digest) => ({ url: `${registry.url}/v2/${NAME}/blobs/${digest}`, digest }))];
}

function byUrl<T extends { url: string }>(parts: readonly T[]): T[] {
  return [...parts].sort((a, b) => a.url < b.url ? -1 : 1);
}

function assertTasks(tasks: readonly Task[], parts: readonly Part[]): void {
  const shown = byUrl(tasks).map(({ url, digest, state, error }) => ({ url, digest, state, error }));
  assertEquals(shown, byUrl(parts).map((part) => ({ ...part, state: "SUCCESS", error: null })));
}

/** Downloads every part on every daemon at once. */
async function assertEverywhere({ daemons }: Cluster, parts: readonly Part[]): Promise<void> {
  await Promise.all(daemons.map(async ({ socket }) => {
    for (const { url, digest } of parts) {
      using connection = await connectDaemon(socket);
      const { path } = await connection.download({ url }, { signal: AbortSignal.timeout(20_000) });
      assertEquals(await fileDigest(path), digest, url);
    }
  }));
}

/** The whole image by the client of the last daemon, with its digest given. */
async function assertByClient({ daemons }: Cluster, parts: readonly Part[]): Promise<void> {
  const daemon = daemons.at(-1)!;
  for (const { url, digest } of parts) {
    const out = daemon.out(`out-${digest.slice(-12)}`);
    const result = await daemon.client(url, "-O", out, "--digest", digest, "--disable-back-source");
    await assertDownloaded(result, out, digest);
  }
}

const WAYS: [claim: string, options: RegistryOptions, args: Record<string, unknown>, platforms: string[]][] = [
  ["an open registry, platform left out", {}, {}, [HOST_PLATFORM]],
  ["an open registry, platform all", {}, { platform: "all" }, ["linux/amd64", "linux/arm64"]],
  ["Basic, one platform", { auth: "htpasswd" }, { ...USER, platform: "linux/arm64" }, ["linux/arm64"]],
  [
    "Basic by a given header, a list of platforms",
    { auth: "htpasswd" },
    { headers: { Authorization: `Basic ${btoa("user:pass")}` }, platform: ["linux/amd64", "linux/arm64"] },
    ["linux/amd64", "linux/arm64"],
  ],
  ["a token, platform all", { auth: "token" }, { ...USER, platform: "all" }, ["linux/amd64", "linux/arm64"]],
  ["a token for anyone, one platform", { auth: "token", token: { anonymous: true } }, { platform: "linux/amd64" }, [
    "linux/amd64",
  ]],
  ["a token that lives 2 s", { auth: "token", token: { lifeSeconds: 2 } }, USER, [HOST_PLATFORM]],
];

Deno.test({
  name: "a preheated image downloads on every daemon with its registry gone",
  ignore,
  async fn(test) {
    await using cluster = await startCluster({ daemons: 2, seeds: 1 });
    for (const [claim, options, args, platforms] of WAYS) {
      await test.step(claim, async () => {
        await using registry = await startRegistry(options);
        await registry.push(IMAGE, { name: NAME, tag: "v1" });
        const parts = partsOf(registry.url, imagesOf(platforms));
        assertTasks(await preheated(cluster.manager, { url: registry.manifestUrl(NAME, "v1"), ...args }), parts);
        await registry.stop();
        await assertEverywhere(cluster, parts);
      });
    }
  },
});

Deno.test({
  name: "an image of Docker schema 2 downloads on every daemon, some of it by the client, with its registry gone",
  ignore,
  async fn() {
    await using registry = await startRegistry();
    await registry.push(IMAGE, { name: NAME, tag: "docker", format: "v2s2" });
    const parts = await readParts(registry, "docker");
    assertEquals(parts.length, 2 + 2 + 2 + 8);
    await using cluster = await startCluster({ daemons: 2 });
    const url = registry.manifestUrl(NAME, "docker");
    assertTasks(await preheated(cluster.manager, { url, platform: "all", scope: "all_peers" }), parts);
    await registry.stop();
    await assertEverywhere(cluster, parts);
    await assertByClient(cluster, [0, 2, 4, parts.length - 1].map((index) => parts[index]!));
  },
});

Deno.test({
  name: "a job shows the seed's fields from the first answer on, and its result fills while it runs",
  ignore,
  async fn() {
    await using registry = await startRegistry();
    await registry.push(IMAGE, { name: NAME, tag: "v1" });
    // Slow enough to be seen at work: some 3 s.
    const daemon = { config: { download: { totalRateLimit: 1_000_000 } } };
    await using cluster = await startCluster({ daemons: 1, daemon });
    const url = registry.manifestUrl(NAME, "v1");
    const created = await preheat(cluster.manager, { url, platform: "all" });
    assert(Number.isInteger(created.id) && created.id > 0);
    const seedFields = { id: created.id, type: "preheat", task_id: created.task_id, status: "PENDING" };
    assertMatch(created.task_id, /^group_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
    const poll = async () => (await cluster.manager.api("GET", `/api/v1/jobs/${created.id}`)).body;
    const seen: number[] = [];
    let job = created;
    for (; job.status === "PENDING"; job = await poll()) {
      const { id, type, task_id, status, args } = job;
      assertEquals({ id, type, task_id, status }, seedFields);
      const { filter, headers, type: kind, url: echoed } = args;
      assertEquals({ filter, headers, kind, echoed }, { filter: "", headers: null, kind: "image", echoed: url });
      const done: number = job.result?.bytes.done ?? 0;
      assert(done >= (seen.at(-1) ?? 0) && done <= (job.result?.bytes.total ?? 0), `${done} after ${seen}`);
      if (done !== seen.at(-1)) seen.push(done);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assertEquals([job.status, job.id, job.task_id], ["SUCCESS", created.id, created.task_id]);
    assert(seen.length >= 4, `the result did not fill: ${seen}`);
    assertStringIncludes(job.result.clusters[0].tasks[0].hosts[0].hostname, "host-0");
  },
});
